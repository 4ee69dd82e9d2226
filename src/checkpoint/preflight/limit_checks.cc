// Checks of the limits of the container's cgroups. A restore needs more than the processes had.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/human.h"
#include "base/proc/cgroup.h"
#include "checkpoint/preflight/checks.h"

namespace kymo::preflight {
namespace {

struct Counts {
  std::uint64_t processes = 0;
  std::uint64_t tasks = 0;  // processes and their further threads
};

Counts count(const Tree& tree) {
  Counts counts;
  for (const Member& member : tree.members) {
    ++counts.processes;
    counts.tasks += std::max<std::size_t>(member.threads.size(), 1);
  }
  return counts;
}

// What a restore needs while it runs, beside what the processes had (docs/preflight.md has the measurement).
std::uint64_t memory_for_restore(const Counts& of) {
  constexpr std::uint64_t kKiB = 1024;
  constexpr std::uint64_t kOnce = 2048 * kKiB;
  constexpr std::uint64_t kFurtherProcess = 384 * kKiB;
  constexpr std::uint64_t kFurtherThread = 56 * kKiB;
  return kOnce + (of.processes - 1) * kFurtherProcess + (of.tasks - of.processes) * kFurtherThread;
}

void look_at_memory_limit(const Tree& tree, const Options& options, Findings& found) {
  if (!options.container) return;  // a process is restored in another cgroup
  const auto limit = probe::least_room(tree.first().process.pid, "memory", tree.proc);
  const std::uint64_t needed = memory_for_restore(count(tree));
  if (!limit || limit->room() >= needed) return;
  found.add(
      Grade::warns, "memory-limit",
      place_of(tree.first(), human::bytes(limit->room()) + " of " + human::bytes(limit->limit) +
                                 " are free in " + limit->folder + ", and a restore needs about " +
                                 human::bytes(needed)),
      "the memory limit leaves less than a restore of the container needs");
}

// CRIU makes all processes before their threads, with three of its own beside them, then the threads, with two of its own.
// Before that it has up to six, when it fills a tmpfs.
std::uint64_t tasks_in_restore(const Counts& of) {
  constexpr std::uint64_t kFirst = 6;
  constexpr std::uint64_t kBesideProcesses = 3;
  constexpr std::uint64_t kBesideThreads = 2;
  return std::max({kFirst, of.processes + kBesideProcesses, of.tasks + kBesideThreads});
}

void look_at_pids_limit(const Tree& tree, const Options& options, Findings& found) {
  if (!options.container) return;
  const auto limit = probe::least_room(tree.first().process.pid, "pids", tree.proc);
  const Counts counts = count(tree);
  const std::uint64_t more = tasks_in_restore(counts) - counts.tasks;
  if (!limit || limit->room() >= more) return;
  found.add(
      Grade::refuses, "pids-limit",
      place_of(tree.first(), std::to_string(limit->used) + " of " + std::to_string(limit->limit) +
                                 " are used in " + limit->folder + ", and a restore needs " +
                                 std::to_string(more) + " more"),
      "the limit of processes and threads leaves fewer than a restore of the container needs");
}

constexpr std::array kLimitChecks{Check{"memory limit", look_at_memory_limit},
                                  Check{"pids limit", look_at_pids_limit}};

}  // namespace

std::span<const Check> limit_checks() {
  return kLimitChecks;
}

}  // namespace kymo::preflight
