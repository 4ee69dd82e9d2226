#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "criu/client.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// The rounds before a dump: each writes the memory that changed since the one before while the
// process runs, so that the dump itself, for which it is frozen, has little left to write.
struct PreDumps {
  std::vector<PreDumpRound> rounds;
  std::string last;  // the last round's folder, relative to the dump's images
};

// Whether another round is worth its time, by the pages that each wrote: not where the last wrote
// next to nothing, or about as much as the one before: memory changes as fast as it is written.
bool worth_another(const std::vector<PreDumpRound>& rounds);

// Where a round goes.
struct PreDumpPlace {
  std::string images_dir;  // made for it, in the dump's images
  std::string parent;      // the round before, relative to it; empty: this is the first
};

// Has CRIU write a round, within the dump's deadline, and leave its statistics in the work
// directory. Returns how long CRIU lived; 0: not known.
using WriteRound = std::function<Result<std::uint64_t>(const PreDumpPlace& place)>;

// Makes at most spec.pre_dumps rounds, in folders pre-1, pre-2, ... of spec.images_dir.
// Errors: those of a dump. What is dumped runs in any case, but see let_run_on().
Result<PreDumps> pre_dump(const DumpSpec& spec, const Observer& observer, const WriteRound& write);

// By CRIU's RPC, of a plain process.
WriteRound write_round_by(const criu::Client& client, const DumpSpec& spec);

// Errors: failed_precondition where the kernel does not track what is written.
Result<void> check_tracked(const criu::Client& client, const std::string& tried);

}  // namespace kymo::runtime
