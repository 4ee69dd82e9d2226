#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/cache_line.h"
#include "kymo/scope.h"

// The memory for the scopes of a tree. Invariants:
//  1. The index of a node is taken once, by fetch_add. Only the thread that took it writes the
//     node, until it stores `ready` with release. A thread that loads `ready` with acquire sees the
//     whole node.
//  2. After a node is ready, only its `end_ns` and `bytes` change.
//  3. A chunk that is in its place stays there until the tree is destroyed.
//  4. A scope becomes part of a scope that its thread knows. So the parent was ready before the
//     child's index was taken, and the parent has the smaller index. fetch_add releases `next` and
//     records() acquires it. So if records() sees the index of a child, it sees its parent ready.
namespace kymo {
namespace detail {

// One cache line: threads write different nodes at the same time.
struct alignas(kCacheLine) ScopeNode {
  // Of two string_views, with sizes that leave room for the rest.
  const char* name = nullptr;
  const char* category = nullptr;
  std::uint32_t name_size = 0;
  std::uint32_t category_size = 0;
  std::uint64_t start_ns = 0;
  std::atomic<std::uint64_t> end_ns{0};  // 0: open
  std::atomic<std::uint64_t> bytes{0};
  std::uint32_t parent = 0;
  std::uint32_t thread = 0;
  std::atomic<bool> ready{false};
  bool parallel : 1 = false;
  bool redundant : 1 = false;
  bool bytes_redundant : 1 = false;
  bool wrapper : 1 = false;
};
static_assert(sizeof(ScopeNode) == kCacheLine);

}  // namespace detail

struct ScopeTree::State {
  static constexpr std::size_t kChunk = 64;
  using Chunk = std::array<detail::ScopeNode, kChunk>;

  explicit State(std::size_t most);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  struct Added {
    detail::ScopeNode* node = nullptr;  // null: there was no room, which left_out counts
    std::uint32_t index = 0;
  };
  // Adds a node and sets everything but its start and `ready`.
  Added add(const detail::ScopePosition& at, const ScopeName& name,
            const ScopeOptions& options) noexcept;
  // The node with this index; null if its chunk is not there yet.
  [[nodiscard]] detail::ScopeNode* find(std::size_t index) const noexcept;
  void note_error(std::uint32_t node, std::string_view error) noexcept;

  const std::size_t limit;
  std::atomic<std::uint32_t> next{0};
  std::atomic<std::uint64_t> left_out{0};
  std::vector<std::atomic<Chunk*>> chunks;
  // Guards `names` and `errors`. Both rarely change: names made at run time and errors are rare.
  mutable std::mutex mutex;
  std::deque<std::string> names;
  std::map<std::uint32_t, std::string> errors;

 private:
  Chunk* chunk_of(std::size_t index) noexcept;
  std::string_view keep(const ScopeName& name);
};

}  // namespace kymo
