#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/store.h"

namespace kymo::daemon {

// Whether a dump is likely to fit into its deadline, by what earlier ones took.
struct Forecast {
  enum class Verdict : std::uint8_t { unknown, likely, doubtful, unlikely };
  Verdict verdict = Verdict::unknown;
  std::uint64_t expected_ns = 0;  // 0: unknown
  std::uint64_t worst_ns = 0;     // by the slowest of them
  std::string text;               // a line for a person
};

// `earlier`: dumps of the same job, program or container, else of anything; those that succeeded
// count, the newest twenty at most. Each stands for what this one would take at its pace, for as
// much memory as there is now.
Forecast forecast_dump(const std::vector<store::Run>& earlier, std::uint64_t memory_bytes,
                       std::uint64_t deadline_ns);

}  // namespace kymo::daemon
