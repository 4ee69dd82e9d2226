#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/patience.h"
#include "checkpoint/runtimes/table.h"
#include "daemon/state/job_containers.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Asks the runtimes about containers, and waits for none that does not answer: what it reads may be on a disk that stalls,
// and its server may hang. While one does not answer, it is not asked again, and the others are.
//
// Threads:   any.
// Ownership: shares the runtimes with the questions that still wait.
class AskedRuntimes {
 public:
  AskedRuntimes(std::shared_ptr<runtime::Runtimes> runtimes, std::string runc_root)
      : runtimes_(std::move(runtimes)), runc_root_(std::move(runc_root)) {}

  // Returns the first process of a container, or nothing if it does not run.
  // Errors: unavailable: "podman does not answer".
  // Threads: blocks for at most kDiskPatience.
  Result<std::optional<runtime::ProcessId>> process_of(const ContainerOf& container);

  // Whether a question still waits that was given up. Its thread uses the runtimes, and these use what they report to.
  [[nodiscard]] bool waits() const;

 private:
  const std::shared_ptr<runtime::Runtimes> runtimes_;
  const std::string runc_root_;
  std::map<runtime::Kind, SilentPlace> places_ = places();

  static std::map<runtime::Kind, SilentPlace> places();
};

}  // namespace kymo::daemon
