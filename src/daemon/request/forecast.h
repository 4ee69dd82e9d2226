#pragma once

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

// `earlier`: dumps of the same job, program or container, or of anything if there are none, oldest
// first. Only the newest twenty that succeeded count. The time of each is scaled from the memory
// that it wrote to `memory_bytes`.
Forecast forecast_dump(const std::vector<store::Run>& earlier, std::uint64_t memory_bytes,
                       std::uint64_t deadline_ns);

}  // namespace kymo::daemon
