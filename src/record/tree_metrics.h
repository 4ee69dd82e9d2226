#pragma once

#include <sys/types.h>

#include <memory>

#include "kymo/registry.h"
#include "kymo/result.h"

namespace kymo::record {

// What the kernel knows of a process tree, and of the cgroup that its root is in, as metrics named
// tree_... and cgroup_... (docs/record.md).
//
// Threads:   the metrics are read where the registry is sampled, by one sampler of all of them.
// Ownership: must outlive the sampling of the registry.
class TreeMetrics {
 public:
  // Registers them. `adopter`: see probe::ProcessTree::open(). Errors: those of the process.
  static Result<std::unique_ptr<TreeMetrics>> add(Registry& registry, pid_t root, pid_t adopter);
  ~TreeMetrics();
  TreeMetrics(const TreeMetrics&) = delete;
  TreeMetrics& operator=(const TreeMetrics&) = delete;

 private:
  struct State;
  explicit TreeMetrics(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::record
