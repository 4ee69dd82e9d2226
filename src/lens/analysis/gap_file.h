#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "kymo/sink.h"
#include "lens/analysis/left_out.h"

namespace kymo::analysis {

// The missed ticks of a recording. All are counted, but only the longest gaps are kept.
struct Gaps {
  static constexpr std::size_t kMaxLongest = 1000;

  std::array<std::uint64_t, 4> ticks_by_cause{};  // indexed by MissCause
  std::uint64_t count = 0;                        // gaps in the file
  std::vector<Gap> longest;                       // at most kMaxLongest, by start time
  LeftOut left_out;

  [[nodiscard]] std::uint64_t ticks() const {
    return std::accumulate(ticks_by_cause.begin(), ticks_by_cause.end(), std::uint64_t{0});
  }
};

// Reads NAME.gaps.tsv in bounded memory. Damaged lines are left out and listed in `left_out`.
// `take` is called for every gap, in the order of the file.
//
// Errors: those of opening and reading.
//         data_loss if the file is not a list of gaps.
Result<Gaps> read_gaps(const std::string& path,
                       const std::function<void(const Gap&)>& take = nullptr);

}  // namespace kymo::analysis
