#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/database/store.h"

namespace kymo::daemon {

// The earlier dumps from which the times of a planned dump are estimated, oldest first. Those that
// failed, and those to other disks, are left out later.
struct EarlierDumps {
  std::vector<store::Run> own;  // of the same job, program or container
  // Of anything. Empty for a container, because dumps of other programs say nothing about it.
  std::vector<store::Run> others;
};
// What else a dump does, while the processes stand still. Dumps that differ in this are not compared.
struct Extras {
  bool prove = false;
  bool sync = false;
};
// `owner`: as in store::Run::owner.
// Errors: those of the store.
Result<EarlierDumps> earlier_dumps(store::Store& store, const std::string& owner, bool container,
                                   const Extras& extras);

// The dump that is planned.
struct PlannedDump {
  std::uint64_t bytes = 0;  // preflight::Report::bytes_to_write()
  std::string disk;         // of its directory, as in store::Run::disk
};

// What a dump will probably write and take.
struct Range {
  std::uint64_t low = 0;
  std::uint64_t expected = 0;
  std::uint64_t high = 0;
};
struct DumpTimes {
  std::size_t dumps = 0;  // how many dumps the estimate is based on; 0: there is no estimate
  bool of_others =
      false;            // they are dumps of others, because this one was never dumped to this disk
  Range written_bytes;  // before compression
  Range stood_still_ns;
  Range total_ns;
};
// Uses the newest twenty dumps of the same owner to this disk, and if there are none, those of
// others to this disk. Dumps to other disks say nothing about this one. It assumes that a time has a
// fixed part and a part that grows with what is written, which is a line over bytes. If all dumps
// wrote about the same, the slope of the line is that of dumps of others to this disk. If these have
// no slope either, each time is scaled with the bytes. No time is below the fixed part that the
// fastest small dumps to this disk had.
// Cost: a few thousand operations, and reading the statistics of each run.
DumpTimes forecast_times(const EarlierDumps& earlier, const PlannedDump& planned);

// Whether a dump is likely to meet its deadline, estimated from the times of earlier dumps.
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
