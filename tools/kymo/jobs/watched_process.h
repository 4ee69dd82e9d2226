#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "checkpoint/inside/latest.h"
#include "recorder/programs/live.h"

namespace kymo::cli {

// What the kernel knows of a process, its descendants and the machine.
//
// Threads: one.
class ProcessSource : public record::LiveSource {
 public:
  explicit ProcessSource(int pid);
  Result<record::LiveRow> read() override;

 private:
  const int pid_;
  inside::Latest seen_;
};

// What the kernel knows of the processes of jobs that run: columns such as job_cpu_ns[NAME]. Of
// many jobs, only the first sixteen are looked at.
//
// Threads: one.
class WatchedJobs {
 public:
  void append_to(record::LiveRow& row, const v1::ListResponse& jobs);

 private:
  struct Watched {
    int pid = 0;
    std::unique_ptr<inside::Latest> seen;
  };
  std::map<std::string, Watched> jobs_;  // by name
};

}  // namespace kymo::cli
