#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>

#include "kymo/registry.h"
#include "kymo/result.h"

namespace kymo::record {

// What the kernel knows about a process tree and about the cgroup of its root, as metrics named
// tree_... and cgroup_... (docs/record.md).
//
// A thread of its own reads the files of /proc, so that no sample waits for them. A row has the
// newest reading and its age.
//
// Threads:   one thread samples all metrics of the registry. One thread calls the functions.
// Ownership: must outlive the sampling of the registry.
class TreeMetrics {
 public:
  // Registers the metrics. `adopter`: see probe::ProcessTree::open().
  //
  // Errors: those of the process.
  static Result<std::unique_ptr<TreeMetrics>> add(Registry& registry, pid_t root, pid_t adopter,
                                                  std::chrono::nanoseconds interval);
  ~TreeMetrics();
  // Call it before the first sample: reads the tree now and then every interval.
  void start();
  // Call it before the last sample: reads the tree a last time and stops.
  void finish();
  TreeMetrics(const TreeMetrics&) = delete;
  TreeMetrics& operator=(const TreeMetrics&) = delete;

 private:
  struct State;
  explicit TreeMetrics(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::record
