#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/stacks/request_samples.h"

// The process that profiles one dump or restore. The program that carries the request out starts
// it, and tells it by lines of text what to do:
//
//   program                                    collector
//   order_text()                          ->
//                                         <-   "ready", or "error WHY", after which it ends
//   phases_text()                         ->
//                                         <-   "written SAMPLES LOST", or "error WHY"; it ends
//
// If the program closes its end before it has sent the phases, or is killed, the collector ends and
// writes nothing.
namespace kymo::stacks {

// What to profile.
struct CollectorOrder {
  unsigned rate = 99;                // samples a second of each CPU
  pid_t starter = 0;                 // the thread that starts CRIU, or the runtime that starts it
  std::vector<pid_t> target;         // of a dump: the processes, the root first
  std::vector<pid_t> restored;       // of a restore: the pids that the processes will have
  bool container = false;            // another program may start CRIU
  std::string restored_container{};  // of the restore of a container: its id
  std::string output;                // the profile; empty: none is written
  bool waits = false;                // take the stacks of threads that wait instead
};

// Each is one line.
std::string order_text(const CollectorOrder& order);
std::string phases_text(const std::vector<PhaseTimes>& phases);
// Read these lines. They return nothing if a line is not valid.
std::optional<CollectorOrder> order_in(std::string_view line);
std::optional<std::vector<PhaseTimes>> phases_in(std::string_view line);

inline constexpr const char* kReady = "ready";
inline constexpr const char* kWritten = "written ";
inline constexpr const char* kFailed = "error ";

// The first argument with which a program starts itself as a collector.
inline constexpr const char* kCollectorArgument = "collect-stacks";

// The life of a collector: reads from `orders` and writes to `answers`. Returns its exit code.
// Threads: the only one of the process.
int collect(int orders, int answers);

}  // namespace kymo::stacks
