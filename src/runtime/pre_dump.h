#pragma once

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

// Makes at most spec.pre_dumps rounds, in folders pre-1, pre-2, ... of spec.images_dir.
// Errors: failed_precondition where the kernel does not track what is written; those of a dump. The
// process runs in any case, but see let_run_on().
Result<PreDumps> pre_dump(const criu::Client& client, const DumpSpec& spec,
                          const Observer& observer);

}  // namespace kymo::runtime
