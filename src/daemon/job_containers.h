#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "kymo/result.h"
#include "runtimes/table.h"

namespace kymo::daemon {

// A container, by its runtime and its id there.
struct ContainerOf {
  runtime::Kind kind = runtime::Kind::process;
  std::string id;
  bool operator==(const ContainerOf&) const = default;
};

// Which jobs are containers: kept in a file of each one's folder, and in memory once it was read.
//
// Threads: every member from any thread. Ownership: none of the containers.
class JobContainers {
 public:
  // Where a container runs now; none: it does not. Must be cheap, it is asked every second.
  using ProcessOf = std::function<std::optional<runtime::ProcessId>(const ContainerOf&)>;

  JobContainers(std::string state_dir, ProcessOf process_of)
      : state_dir_(std::move(state_dir)), process_of_(std::move(process_of)) {}

  Result<void> note(const std::string& job_id, const ContainerOf& container);
  // None: the job is a plain process. Errors: data_loss: the file is damaged; unimplemented: it
  // names a runtime that this kymod does not know.
  Result<std::optional<ContainerOf>> of(const std::string& job_id);
  // The first process of the job's container, where the job is one and it runs.
  std::optional<runtime::ProcessId> process_of(const std::string& job_id);
  void forget(const std::string& job_id);

 private:
  [[nodiscard]] std::string file_of(const std::string& job_id) const;
  [[nodiscard]] Result<std::optional<ContainerOf>> read(const std::string& job_id) const;

  const std::string state_dir_;
  const ProcessOf process_of_;
  std::mutex mutex_;
  std::map<std::string, Result<std::optional<ContainerOf>>> known_;
};

// Makes the folder of a job's files, for its user alone.
Result<void> make_job_folder(const std::string& path);

}  // namespace kymo::daemon
