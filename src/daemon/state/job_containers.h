#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "checkpoint/runtimes/table.h"
#include "kymo/result.h"

namespace kymo::daemon {

// A container: its runtime, and its id in that runtime.
struct ContainerOf {
  runtime::Kind kind{};
  std::string id;
  bool operator==(const ContainerOf&) const = default;
};

// Knows which jobs are containers. Each such job has a file container.json in its folder, which is
// kept in memory once it was read.
//
// Threads:   every member from any thread.
// Ownership: does not own the containers.
class JobContainers {
 public:
  // Returns the first process of a container, or nothing if it does not run. It is called every
  // second, so it must be cheap, and it must not wait long for an answer.
  // Errors: unavailable: what was asked does not answer. The message is a clause that says so.
  using ProcessOf = std::function<Result<std::optional<runtime::ProcessId>>(const ContainerOf&)>;

  JobContainers(std::string state_dir, ProcessOf process_of)
      : state_dir_(std::move(state_dir)), process_of_(std::move(process_of)) {}

  // Writes the container of a job to its file, unless the file names this container already.
  // Errors: those of writing; unavailable: the disk has not answered within Store::kDiskAnswers. The file is then
  //         written as soon as the disk answers.
  Result<void> note(const std::string& job_id, const ContainerOf& container);
  // Returns the container of a job, or nothing if the job is a plain process.
  // Errors: data_loss: the file is damaged.
  //         unimplemented: the file names a runtime that this kymod does not know.
  Result<std::optional<ContainerOf>> of(const std::string& job_id);
  // Returns the first process of the job's container. Returns nothing if the job is no container or
  // the container does not run.
  // Errors: those of ProcessOf.
  Result<std::optional<runtime::ProcessId>> process_of(const std::string& job_id);
  // The same of a container that may be no job.
  [[nodiscard]] Result<std::optional<runtime::ProcessId>> process_of(
      const ContainerOf& container) const;
  void forget(const std::string& job_id);

 private:
  [[nodiscard]] std::string file_of(const std::string& job_id) const;
  [[nodiscard]] Result<std::optional<ContainerOf>> read(const std::string& job_id) const;

  const std::string state_dir_;
  const ProcessOf process_of_;
  std::mutex mutex_;
  std::map<std::string, Result<std::optional<ContainerOf>>> known_;
};

// Makes the folder for the files of a job. Only its owner can use it (mode 0700).
Result<void> make_job_folder(const std::string& path);

}  // namespace kymo::daemon
