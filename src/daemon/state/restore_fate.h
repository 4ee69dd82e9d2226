#pragma once

#include <cstdint>

namespace kymo::daemon {

// What is known of a restore during which an earlier kymod stopped, and what follows from it. The
// start of kymod and the look of each second after it decide by decide().

struct RestoreEvidence {
  // What still restores it: CRIU, and the programs of a container's runtime.
  enum class Programs : std::uint8_t {
    ended,    // nothing does
    quiet,    // nothing does at this moment, but a program of the runtime may be about to
    go_on,    // something does
    unknown,  // something may
  };
  // What was restored.
  enum class Process : std::uint8_t { runs, none, unknown };

  Programs programs = Programs::unknown;
  Process process = Process::unknown;
  int quiet_looks = 0;  // the last ones, with this one, that saw Programs::quiet
};

enum class RestoreFate : std::uint8_t {
  restored,
  failed,  // nothing of it is left, and the images can be restored again
  open,    // to be looked at again
};

// After so many of them the restore has failed. kymod looks once a second.
inline constexpr int kQuietLooks = 5;

// Threads: any. It looks at nothing but its argument.
RestoreFate decide(const RestoreEvidence& evidence);

}  // namespace kymo::daemon
