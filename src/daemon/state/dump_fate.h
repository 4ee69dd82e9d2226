#pragma once

#include <cstdint>

#include "daemon/database/store.h"

namespace kymo::daemon {

// What is known of a dump that is over, and what follows from it. The end of a request, the look of
// each second at a dump whose outcome is not known, and the next start of kymod after it was killed
// all decide by decide().

struct DumpEvidence {
  enum class Process : std::uint8_t {
    runs,    // on, and nothing of CRIU is in it
    ended,   // with this dump, or meanwhile
    unsure,  // something holds it, or it cannot be seen
  };
  enum class Images : std::uint8_t {
    published,     // they have their final name, which they get only when they are whole
    whole,         // all are in images.partial, and nothing is wrong with them
    partial,       // not all of them were written
    damaged,       // all were written, and something is wrong with them
    changed,       // another program has changed them
    written,       // CRIU has reported success, but their disk does not answer now
    in_memory,     // whole, but their disk has not taken them
    without_part,  // whole, but the files of the container's /dev/shm are not with them yet
    hindered,      // whole, but they cannot get their final name
    unseen,        // it is not known now
    out_of_reach,  // kymod must not touch the directory, or does not know what was dumped there
  };

  Process process = Process::unsure;
  Images images = Images::unseen;
  bool leaves = false;  // the process was to run on
  bool failed = false;  // CRIU or the runtime has failed, or kymod has stopped during the dump
};

// What becomes of the checkpoint, of what is in images.partial and in memory, and of the job of the
// process.
struct DumpFate {
  enum class OfImages : std::uint8_t { publish, keep, discard };
  enum class OfJob : std::uint8_t {
    as_it_is,
    dumped,
    not_dumped,  // it has exited, if it counts as dumped because of this dump alone
  };

  store::CheckpointState state = store::CheckpointState::failed;  // also complete or unconfirmed
  OfImages images = OfImages::discard;
  OfJob job = OfJob::as_it_is;
};

// Images are removed only if they are worth nothing: the process runs, or it has ended and not all
// were written. The table is in dump_fate.cc, with a test for each line of it.
// Threads: any. It looks at nothing but its argument.
DumpFate decide(const DumpEvidence& evidence);

}  // namespace kymo::daemon
