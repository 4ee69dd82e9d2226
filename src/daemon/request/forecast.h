#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/store.h"

namespace kymo::daemon {

// Whether a dump is likely to meet its deadline, judged by the time that earlier dumps took.
struct Forecast {
  enum class Verdict : std::uint8_t { unknown, likely, doubtful, unlikely };
  Verdict verdict = Verdict::unknown;
  std::uint64_t expected_ns = 0;  // median of the scaled times; 0: unknown
  std::uint64_t worst_ns = 0;     // longest of the scaled times; 0: unknown
  std::string text;               // one line for the user
};

// What a dump will probably write and take, from the dumps with the smallest and the largest values
// to their median.
struct Range {
  std::uint64_t low = 0;
  std::uint64_t expected = 0;
  std::uint64_t high = 0;
};
struct DumpTimes {
  std::size_t dumps = 0;  // by which it is judged; 0: there are none
  Range written_bytes;    // of memory, as those dumps wrote it
  Range frozen_ns;        // scaled to the memory
  Range total_ns;         // scaled to the memory
};
// `earlier`: as in forecast_dump().
DumpTimes forecast_times(const std::vector<store::Run>& earlier, std::uint64_t memory_bytes);

// `earlier`: dumps of the same job, program or container, or of anything if there are none, oldest
// first. Only the newest twenty that succeeded count. The time of each is scaled from the memory
// that it wrote to `memory_bytes`.
Forecast forecast_dump(const std::vector<store::Run>& earlier, std::uint64_t memory_bytes,
                       std::uint64_t deadline_ns);

}  // namespace kymo::daemon
