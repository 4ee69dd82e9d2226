#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "kymo/scope.h"

namespace kymo {

// Keeps the newest trees of a recording.
//
// Threads:   any.
// Ownership: copies what it is given.
// Cost:      add() as ScopeTree::records(), since() a copy of what is kept.
class ScopeKeeper {
 public:
  // Keeps the newest trees that have at most `most` scopes together, and at least one tree.
  explicit ScopeKeeper(std::size_t most) : most_(most) {}

  void add(const ScopeTree& tree);
  // The kept trees after the first `after`.
  [[nodiscard]] KeptScopes since(std::uint64_t after) const;
  // The scopes that had no room in the trees that were given, also in those that are not kept.
  [[nodiscard]] std::uint64_t left_out() const;

 private:
  const std::size_t most_;
  mutable std::mutex mutex_;  // guards the rest
  std::deque<std::vector<ScopeRecord>> trees_;
  std::size_t scopes_ = 0;   // in trees_
  std::uint64_t added_ = 0;  // trees
  std::uint64_t left_out_ = 0;
};

}  // namespace kymo
