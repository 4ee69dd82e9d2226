#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace kymo::store {

// Changes for which the disk had no room: they are seen in what is read, and are stored later.
// Threads: one at a time.
struct Unstored {
  std::map<std::string, Job> jobs;                // by id
  std::map<std::string, Checkpoint> checkpoints;  // by id
  std::vector<Run> runs;

  [[nodiscard]] std::size_t count() const { return jobs.size() + checkpoints.size() + runs.size(); }
  // What was read, as it is by now.
  void apply(Job& job) const {
    if (const auto newer = jobs.find(job.id); newer != jobs.end()) job = newer->second;
  }
  void apply(Checkpoint& checkpoint) const {
    if (const auto newer = checkpoints.find(checkpoint.id); newer != checkpoints.end()) {
      checkpoint = newer->second;
    }
  }
  void apply(std::vector<Run>& read, std::string_view job_id, RunKind kind) const {
    for (const Run& run : runs) {
      if ((job_id.empty() || run.job_id == job_id) && run.kind == kind) read.push_back(run);
    }
  }
};

}  // namespace kymo::store
