#pragma once

#include <string>
#include <vector>

#include "lens/analysis/diff_tests.h"
#include "lens/analysis/recording_diff.h"

namespace kymo::analysis {

// The name of the length of what is compared, and of the growth of a counter in that time.
inline constexpr const char* kLengthName = "length";
std::string total_name(const std::string& counter);

// Compares how long the compared parts of the recordings are. Lengths that differ by less than one row
// are the same. Between two recordings, and with an unfinished one, there is no test. p is not corrected.
MetricDiff compare_lengths(const RecordingDiff& diff);

// Whether rates do not tell the totals. Between sets this is so if any two lengths differ: a length that
// noise explains may hide a total that noise does not. Between two recordings, and with an unfinished one, the
// lengths must differ by more than 5 %. `length`: corrected, if other metrics were tested with it.
bool totals_are_needed(const MetricDiff& length, const RecordingDiff& diff);

// Whether other programs change this column: those that run in the same cgroup, or on the same CPUs and disk.
bool counts_others(const std::string& column);

// Compares how much a counter grew. It tells nothing (`tells_nothing`) if only one side has it, if it never grew,
// or if the two totals do not differ by more than the margin and cannot be tested. p is not corrected.
MetricDiff compare_totals(const std::string& counter, const DiffValues& values,
                          const RecordingDiff& diff);

}  // namespace kymo::analysis
