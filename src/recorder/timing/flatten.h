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
  std::uint64_t duration_ns = 0;  // its own time, without its parts
  std::uint64_t bytes = 0;
  // Whether its time counts in the total. It does not if the scope, or a scope around it, is
  // parallel or redundant.
  bool time_counted = true;
  bool bytes_counted = true;
  bool unfinished = false;
  std::size_t depth = 0;  // the number of rows around it

  friend bool operator==(const FlatScope&, const FlatScope&) = default;
};

// A tree as rows. Each moment of the root's time is in exactly one row, or is unaccounted:
//   sum of the counted rows' durations + unaccounted_ns = total_ns + overlap_ns
struct FlatTree {
  std::vector<FlatScope> rows;  // a scope before its parts, in the order of opening; no root
  std::uint64_t total_ns = 0;   // the duration of the root
  std::uint64_t total_bytes = 0;
  // The time of the root that is in none of its parts.
  std::uint64_t unaccounted_ns = 0;
  // The time by which the parts of a scope take longer than the scope itself, summed over the
  // scopes whose time counts. It is 0 unless durations were added afterwards (add_scope()), or
  // scopes that ran at the same time were not opened as parallel.
  std::uint64_t overlap_ns = 0;
};

FlatTree flatten(const std::vector<ScopeRecord>& records);

// The time and bytes of one category, from the rows that count. sum_by_category() returns the
// categories in the order in which they first appear.
struct CategorySum {
  std::string category;
  std::uint64_t duration_ns = 0;
  std::uint64_t bytes = 0;
};
std::vector<CategorySum> sum_by_category(const FlatTree& tree);

}  // namespace kymo
