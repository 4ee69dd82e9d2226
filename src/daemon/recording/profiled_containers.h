#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/runtimes/table.h"
#include "daemon/config/config.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The containers that --profiles-only names.
std::vector<runtime::ContainerName> profiled_containers_of(const Config& config);

// The cgroup of the container's first process, as in /proc/PID/cgroup.
// Errors: those of Runtime::find(); not_found: it is in no cgroup of its own.
Result<std::string> cgroup_of(const runtime::Runtimes& runtimes,
                              const runtime::ContainerName& name);

// The cgroups of the containers whose profiles are kept. A thread looks every ten seconds, because a container may be
// started later, or again, and its runtime may take any time to answer. What is found is logged, once until that
// changes.
//
// Threads:   every member from any thread.
// Ownership: the thread. The destructor waits until the runtime that is asked has answered, or its timeout.
class ProfiledContainers {
 public:
  using Find = std::function<Result<std::string>(const runtime::ContainerName& name)>;
  // Without names, there is no thread.
  ProfiledContainers(std::vector<runtime::ContainerName> names, Find find);

  [[nodiscard]] std::vector<std::string> cgroups() const;

 private:
  void look(std::vector<std::string>& said);

  const std::vector<runtime::ContainerName> names_;
  const Find find_;
  mutable std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::vector<std::string> cgroups_;
  std::jthread thread_;  // the last one: it uses the others
};

}  // namespace kymo::daemon
