#include "kymo/scope.h"

#include <algorithm>
#include <exception>
#include <new>

#include "base/clock.h"
#include "recorder/timing/scope_nodes.h"

namespace kymo {

using detail::ScopeNode;

constinit thread_local detail::ScopePosition detail::scope_position;

namespace {

// The clock is read last on opening and first on closing, so that the parent's time includes the
// cost of recording.
void start(ScopeNode& node, std::uint64_t start_ns) noexcept {
  node.start_ns = start_ns;
  node.ready.store(true, std::memory_order_release);  // pairs with records()
}

}  // namespace

void Scope::open(const ScopeName& name, const ScopeOptions& options) noexcept {
  detail::ScopePosition& here = detail::scope_position;
  const auto [node, index] = here.tree->state_->add(here, name, options);
  if (node == nullptr) {
    return;
  }
  node_ = node;
  index_ = index;
  outer_ = here;
  exceptions_ = std::uncaught_exceptions();
  here = {outer_.tree, index, false};
  start(*node, monotonic_ns());
}

void Scope::close() noexcept {
  const std::uint64_t now = monotonic_ns();
  if (std::uncaught_exceptions() > exceptions_) {
    note_error("ended by an exception");
  }
  // Release pairs with records(): if records() sees the scope ended, it also sees its bytes.
  node_->end_ns.store(now, std::memory_order_release);
  node_ = nullptr;
  detail::scope_position = outer_;
}

void Scope::count_bytes(std::uint64_t bytes) noexcept {
  node_->bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void Scope::note_error(std::string_view error) noexcept {
  outer_.tree->state_->note_error(index_, error);
}

void add_scope(ScopeName name, std::uint64_t start_ns, std::uint64_t duration_ns,
               std::uint64_t bytes, const ScopeOptions& options) noexcept {
  const detail::ScopePosition& here = detail::scope_position;
  if (here.tree == nullptr) {
    return;
  }
  ScopeNode* node = here.tree->state_->add(here, name, options).node;
  if (node == nullptr) {
    return;
  }
  if (start_ns == 0) {
    const std::uint64_t now = monotonic_ns();
    start_ns = now - std::min(now, duration_ns);
  }
  node->thread = 0;  // something else has measured it, perhaps of another process
  node->bytes.store(bytes, std::memory_order_relaxed);
  node->end_ns.store(start_ns + duration_ns, std::memory_order_relaxed);
  start(*node, start_ns);
}

ScopeTree::ScopeTree(ScopeName name, std::size_t limit) : state_(std::make_unique<State>(limit)) {
  ScopeNode* root = state_->add({}, name, {}).node;
  if (root == nullptr) {  // there is always room for the first scope, so its name got no memory
    throw std::bad_alloc();
  }
  start(*root, monotonic_ns());
}

ScopeTree::~ScopeTree() = default;

void ScopeTree::end() noexcept {
  std::uint64_t open = 0;
  state_->find(0)->end_ns.compare_exchange_strong(open, monotonic_ns(), std::memory_order_release,
                                                  std::memory_order_relaxed);
}

void ScopeTree::fail(std::string_view error) noexcept {
  state_->note_error(0, error);
}

std::uint64_t ScopeTree::dropped() const noexcept {
  return state_->left_out.load(std::memory_order_relaxed);
}

std::vector<ScopeRecord> ScopeTree::records() const {
  const State& state = *state_;
  const std::uint64_t now = monotonic_ns();
  const std::size_t taken =  // acquire: invariant 4 of scope_nodes.h
      std::min<std::size_t>(state.next.load(std::memory_order_acquire), state.limit);
  std::vector<ScopeRecord> records;
  std::vector<std::size_t> record_of(taken, ScopeRecord::kNoParent);  // by index of the node
  const std::lock_guard lock(state.mutex);
  for (std::size_t i = 0; i < taken; ++i) {
    const ScopeNode* node = state.find(i);
    if (node == nullptr || !node->ready.load(std::memory_order_acquire)) {
      continue;
    }
    ScopeRecord& record = records.emplace_back();
    record_of[i] = records.size() - 1;
    const std::uint64_t end = node->end_ns.load(std::memory_order_acquire);
    if (i != 0) {
      record.parent = record_of[node->parent];
    }
    record.name.assign(node->name, node->name_size);
    record.category.assign(node->category, node->category_size);
    record.thread = node->thread;
    record.start_ns = node->start_ns;
    record.unfinished = end == 0;
    if (!node->wrapper) {
      record.duration_ns = (end == 0 ? std::max(now, node->start_ns) : end) - node->start_ns;
    }
    record.bytes = node->bytes.load(std::memory_order_relaxed);
    record.parallel = node->parallel;
    record.redundant = node->redundant;
    record.bytes_redundant = node->bytes_redundant;
    if (const auto error = state.errors.find(static_cast<std::uint32_t>(i));
        error != state.errors.end()) {
      record.error = error->second;
    }
  }
  if (!records.empty()) {
    records.front().left_out = dropped();
  }
  return records;
}

}  // namespace kymo
