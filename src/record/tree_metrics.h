#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>

#include "kymo/registry.h"
#include "kymo/result.h"

namespace kymo::record {

// What the kernel knows of a process tree, and of the cgroup that its root is in, as metrics named
// tree_... and cgroup_... (docs/record.md).
//
// The files of /proc are read by a thread of its own, so that no sample waits for them; a row has
// the newest reading, and its age.
//
// Threads:   the metrics are read where the registry is sampled, by one sampler of all of them; all
//            else from one thread.
// Ownership: must outlive the sampling of the registry.
class TreeMetrics {
 public:
  // Registers them. `adopter`: see probe::ProcessTree::open(). Errors: those of the process.
  static Result<std::unique_ptr<TreeMetrics>> add(Registry& registry, pid_t root, pid_t adopter,
                                                  std::chrono::nanoseconds interval);
  ~TreeMetrics();
  // Before the first sample: reads the tree, and goes on reading it every interval.
  void start();
  // Before the last sample: ends that, and reads the tree a last time.
  void finish();
  TreeMetrics(const TreeMetrics&) = delete;
  TreeMetrics& operator=(const TreeMetrics&) = delete;

 private:
  struct State;
  explicit TreeMetrics(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::record
