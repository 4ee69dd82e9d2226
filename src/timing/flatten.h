#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kymo/scope.h"

namespace kymo {

// One row of a flattened tree.
struct FlatScope {
  std::string name;  // with the names of the wrappers around it: "wrapper:name"
  std::string category;
  std::string error;
  std::uint64_t start_ns = 0;
  std::uint64_t duration_ns = 0;  // its own: without its parts
  std::uint64_t bytes = 0;
  bool time_counted = true;  // in the total; not where it, or what it is part of, is parallel or
                             // redundant
  bool bytes_counted = true;
  bool unfinished = false;
  std::size_t depth = 0;  // the rows that it is a part of

  friend bool operator==(const FlatScope&, const FlatScope&) = default;
};

// A tree as rows, each moment of the root's time in exactly one of them:
//   sum of the counted rows' durations + unaccounted_ns = total_ns + overlap_ns
struct FlatTree {
  std::vector<FlatScope> rows;  // a scope before its parts, in the order of opening; no root
  std::uint64_t total_ns = 0;   // the root's
  std::uint64_t total_bytes = 0;
  // The root's own: in none of its parts.
  std::uint64_t unaccounted_ns = 0;
  // By how much parts exceed what they are part of: 0, unless durations that were added afterwards
  // say so, or what ran at once was not opened as parallel.
  std::uint64_t overlap_ns = 0;
};

FlatTree flatten(const std::vector<ScopeRecord>& records);

// What a category took, for those rows that count; in the order in which they first appear.
struct CategorySum {
  std::string category;
  std::uint64_t duration_ns = 0;
  std::uint64_t bytes = 0;
};
std::vector<CategorySum> sum_by_category(const FlatTree& tree);

}  // namespace kymo
