#include "recorder/timing/scope_nodes.h"

#include <unistd.h>

#include <algorithm>
#include <new>

#include "recorder/metrics/fork_count.h"

namespace kymo {

using detail::ScopeNode;

namespace {

// gettid(2), which is a system call, once for each thread. The thread of a child of fork() has
// another id.
std::uint32_t this_thread() noexcept {
  struct Known {
    std::uint32_t id = 0;
    std::uint64_t forks = 0;
  };
  constinit thread_local Known known;
  if (known.id == 0 || known.forks != fork_count()) {
    known = {static_cast<std::uint32_t>(::gettid()), fork_count()};
  }
  return known.id;
}

}  // namespace

ScopeTree::State::State(std::size_t most)
    : limit(std::clamp<std::size_t>(most, 1, 1U << 20U)), chunks((limit + kChunk - 1) / kChunk) {
  chunks.front().store(new Chunk, std::memory_order_relaxed);
}

ScopeTree::State::~State() {
  for (std::atomic<Chunk*>& chunk : chunks) {
    delete chunk.load(std::memory_order_relaxed);  // no thread records any more
  }
}

ScopeTree::State::Chunk* ScopeTree::State::chunk_of(std::size_t index) noexcept {
  std::atomic<Chunk*>& place = chunks[index / kChunk];
  Chunk* chunk = place.load(std::memory_order_acquire);  // pairs with the exchange below
  if (chunk != nullptr) {
    return chunk;
  }
  std::unique_ptr<Chunk> made(new (std::nothrow) Chunk);
  if (made == nullptr) {
    return nullptr;
  }
  // Release: a thread that finds this chunk sees its nodes initialised. Acquire: the same for us if
  // another thread's chunk is there already.
  if (place.compare_exchange_strong(chunk, made.get(), std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
    return made.release();
  }
  return chunk;
}

ScopeNode* ScopeTree::State::find(std::size_t index) const noexcept {
  Chunk* chunk = chunks[index / kChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[index % kChunk];
}

std::string_view ScopeTree::State::keep(const ScopeName& name) {
  if (!name.made()) {
    return name.text();
  }
  const std::lock_guard lock(mutex);
  return names.emplace_back(name.text());
}

ScopeTree::State::Added ScopeTree::State::add(const detail::ScopePosition& at,
                                              const ScopeName& name,
                                              const ScopeOptions& options) noexcept {
  try {
    // This check keeps `next` from wrapping around. Release: invariant 4.
    if (next.load(std::memory_order_relaxed) < limit) {
      const std::uint32_t index = next.fetch_add(1, std::memory_order_release);
      Chunk* chunk = index < limit ? chunk_of(index) : nullptr;
      if (chunk != nullptr) {
        ScopeNode& node = (*chunk)[index % kChunk];
        const std::string_view kept_name = keep(name);
        const std::string_view category = keep(options.category);
        node.name = kept_name.data();
        node.name_size = static_cast<std::uint32_t>(kept_name.size());
        node.category = category.data();
        node.category_size = static_cast<std::uint32_t>(category.size());
        node.parent = at.node;
        node.thread = this_thread();
        node.parallel = options.parallel || at.parallel;
        node.redundant = options.redundant;
        node.bytes_redundant = options.bytes_redundant;
        node.wrapper = options.wrapper;
        return {&node, index};
      }
    }
  } catch (...) {  // no memory for a name: the node never gets ready, and records() skips it
  }
  left_out.fetch_add(1, std::memory_order_relaxed);
  return {};
}

void ScopeTree::State::note_error(std::uint32_t node, std::string_view error) noexcept {
  try {
    const std::lock_guard lock(mutex);
    errors.try_emplace(node, error);
  } catch (...) {  // no memory: the tree does not have the reason
  }
}

}  // namespace kymo
