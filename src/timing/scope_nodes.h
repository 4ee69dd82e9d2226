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

#include "kymo/scope.h"

// Where a tree's scopes lie. Invariants:
//  1. A node's index is taken once, by fetch_add, and written by the thread that took it alone,
//     until it stores `ready` with release; whoever loads `ready` with acquire reads it whole.
//  2. Of a ready node only `end_ns` and `bytes` still change.
//  3. A chunk, once it is in its place, stays there until the tree goes.
//  4. A scope becomes part of one that its thread knows: the parent was ready before the child's
//     index was taken, and has the smaller one. fetch_add releases and records() acquires `next`,
//     so a child whose index is among those seen has a parent that is seen ready.
namespace kymo {
namespace detail {

// One cache line.
struct alignas(64) ScopeNode {
  std::string_view name;
  std::string_view category;
  std::uint64_t start_ns = 0;
  std::atomic<std::uint64_t> end_ns{0};  // 0: open
  std::atomic<std::uint64_t> bytes{0};
  std::uint32_t parent = 0;
  std::atomic<bool> ready{false};
  bool parallel : 1 = false;
  bool redundant : 1 = false;
  bool bytes_redundant : 1 = false;
  bool wrapper : 1 = false;
};
static_assert(sizeof(ScopeNode) == 64);

}  // namespace detail

struct ScopeTree::State {
  static constexpr std::size_t kChunk = 64;
  using Chunk = std::array<detail::ScopeNode, kChunk>;

  explicit State(std::size_t most);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  struct Added {
    detail::ScopeNode* node = nullptr;  // null: there was no room, which is counted
    std::uint32_t index = 0;
  };
  // A new node with everything but its start and `ready`.
  Added add(const detail::ScopePosition& at, const ScopeName& name,
            const ScopeOptions& options) noexcept;
  // The node of this index; null before it is there.
  [[nodiscard]] detail::ScopeNode* find(std::size_t index) const noexcept;
  void note_error(std::uint32_t node, std::string_view error) noexcept;

  const std::size_t limit;
  std::atomic<std::uint32_t> next{0};
  std::atomic<std::uint64_t> left_out{0};
  std::vector<std::atomic<Chunk*>> chunks;
  mutable std::mutex mutex;  // of what follows: names made at run time, and errors, are rare
  std::deque<std::string> names;
  std::map<std::uint32_t, std::string> errors;

 private:
  Chunk* chunk_of(std::size_t index) noexcept;
  std::string_view keep(const ScopeName& name);
};

}  // namespace kymo
