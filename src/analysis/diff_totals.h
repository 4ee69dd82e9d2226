#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/diff_tests.h"
#include "analysis/recording_diff.h"

namespace kymo::analysis {

// The name of the length of what is compared, and of the growth of a counter in that time.
inline constexpr const char* kLengthName = "length";
std::string total_name(const std::string& counter);

// Compares how long the compared parts of the recordings are. Lengths that differ by less than one row
// are the same. Between two recordings, and with an unfinished one, there is no test. p is not corrected.
MetricDiff compare_lengths(const RecordingDiff& diff);

// Whether the lengths differ so much that rates do not tell the totals. `length`: corrected, if other
// metrics were tested with it.
bool lengths_differ(const MetricDiff& length);

// Compares how much a counter grew. Returns nothing if only one side has it, if it never grew, or if the
// two totals do not differ by more than the margin and cannot be tested. p is not corrected.
std::optional<MetricDiff> compare_totals(const std::string& counter, const DiffValues& values,
                                         const RecordingDiff& diff);

}  // namespace kymo::analysis
