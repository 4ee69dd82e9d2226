#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "profiler/stacks/module.h"
#include "profiler/stacks/processes.h"
#include "profiler/stacks/source.h"

namespace kymo::stacks {

// A stack, and the thread and process that it belongs to. Samples with equal traces are counted together.
struct Trace {
  pid_t pid = 0;
  std::string process;
  std::string thread;
  std::string container;
  std::vector<Frame> frames;  // of the kernel and then of the program, innermost first
  bool truncated = false;     // the outermost frames are missing
  // Only of a profile of a dump or restore: its phase, and whether CRIU or the target was sampled.
  std::string phase{};
  std::string role{};
  // Only of profiles that are kept (src/profiler/kept): to what the process belongs.
  std::string service{};

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the comparison for a pointer
  auto operator<=>(const Trace&) const = default;
};

struct Weight {
  std::uint64_t samples = 0;
  std::uint64_t value = 0;  // such as nanoseconds of CPU time (quantity.h)

  Weight& operator+=(const Weight& other) {
    samples += other.samples;
    value += other.value;
    return *this;
  }
};

// A stack profile, its addresses not named yet (symbols.h).
// Ownership: `processes` owns the modules of the frames.
struct Profile {
  bool waits = false;           // its quantity is `wait`, otherwise `cpu`
  std::uint64_t period_ns = 0;  // between samples of a CPU; 0 if `waits`
  std::int64_t begin_unix_ns = 0;
  std::uint64_t duration_ns = 0;
  std::uint64_t cpu_ns =
      0;  // CPU time of this process, and of its reader of modules, while it took samples
  SourceCounts counts;
  std::vector<std::string> phases;  // of a dump or restore: their names, in the order of time
  std::map<Trace, Weight> traces;
  std::unique_ptr<Processes> processes;

  [[nodiscard]] Weight sum() const;
};

}  // namespace kymo::stacks
