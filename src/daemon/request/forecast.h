#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/store.h"

namespace kymo::daemon {

// The dumps by which the times of another one are foretold, oldest first. Those that failed do not
// count.
struct EarlierDumps {
  std::vector<store::Run> own;  // of the same job, program or container
  std::vector<store::Run>
      others;  // of anything; empty for a container, about which they say nothing
};
// `owner`: as in store::Run::owner.
// Errors: those of the store.
Result<EarlierDumps> earlier_dumps(store::Store& store, const std::string& owner, bool container);

// The dump that is planned.
struct PlannedDump {
  std::uint64_t memory_bytes = 0;
  std::string disk;  // of its directory, as in store::Run::disk
};

// What a dump will probably write and take.
struct Range {
  std::uint64_t low = 0;
  std::uint64_t expected = 0;
  std::uint64_t high = 0;
};
struct DumpTimes {
  std::size_t dumps = 0;     // by which it is judged; 0: there are none
  bool of_others = false;    // it was never dumped itself
  bool other_disks = false;  // none of them wrote to this disk
  Range written_bytes;       // of memory, as those dumps wrote it
  Range stood_still_ns;
  Range total_ns;
};
// Judges by the newest twenty dumps of its own on the same disk, else on any disk, else by those of
// others. Their times are taken for a line over memory, with a fixed part: of the two, only the second
// grows with memory. If all of them wrote about the same, the time for each byte is that of others on
// this disk. If nothing tells it, each time is scaled with the memory.
// Cost: a few thousand operations, and reading the statistics of each run.
DumpTimes forecast_times(const EarlierDumps& earlier, const PlannedDump& planned);

// Whether a dump is likely to meet its deadline, judged by the time that earlier dumps took.
struct Forecast {
  enum class Verdict : std::uint8_t { unknown, likely, doubtful, unlikely };
  Verdict verdict = Verdict::unknown;
  std::uint64_t expected_ns = 0;  // 0: unknown
  std::uint64_t worst_ns = 0;     // 0: unknown
  std::string text;               // one line for the user
};
Forecast forecast_dump(const EarlierDumps& earlier, const PlannedDump& planned,
                       std::uint64_t deadline_ns);

}  // namespace kymo::daemon
