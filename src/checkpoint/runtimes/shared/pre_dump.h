#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/criu/drive/client.h"
#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::runtime {

// The rounds of pre-dump. Each round writes the memory that has changed since the round before,
// while the process runs. The dump, for which the process is frozen, then has little to write.
struct PreDumps {
  std::vector<PreDumpRound> rounds;
  std::string last;  // folder of the last round, relative to the images of the dump
};

// Whether another round is worth its time. It is not if the last round wrote almost nothing, or
// about as much as the round before: memory then changes as fast as CRIU writes it.
bool another_round_pays(const std::vector<PreDumpRound>& rounds);

// The folders of a round.
struct PreDumpPlace {
  std::string images_dir;  // made for this round, inside the images of the dump
  std::string parent;      // the round before, relative to images_dir; empty: this is the first
};

// Makes CRIU write a round within the deadline of the dump, with its statistics in the work
// directory. Returns how long CRIU lived, in nanoseconds. 0: unknown.
using WriteRound = std::function<Result<std::uint64_t>(const PreDumpPlace& place)>;

// Makes at most spec.pre_dumps rounds in the folders pre-1, pre-2, ... of spec.images_dir.
// Errors: those of a dump. The process or container runs on; clean_up_failed_dump() makes sure of that.
Result<PreDumps> pre_dump(const DumpSpec& spec, const Observer& observer, const WriteRound& write);

// Returns the function that writes the rounds of a plain process. It refers to `client` and `spec`.
WriteRound write_round_by(const criu::Client& client, const DumpSpec& spec);

// Checks that the kernel tracks which pages are written. `tried` begins the error message.
// Errors: failed_precondition if the kernel does not.
Result<void> check_tracked(const criu::Client& client, const std::string& tried);

}  // namespace kymo::runtime
