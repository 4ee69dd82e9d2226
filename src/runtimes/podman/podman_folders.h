#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/cancellation.h"
#include "kymo/result.h"
#include "runtimes/podman/podman_store.h"

namespace kymo::runtime {

// Where podman keeps its containers. podman is asked until it has answered once.
//
// `podman info` looks at each container. So while another podman dumps or restores one of them, it waits for that.
//
// Threads:   every member from any thread.
// Ownership: the destructor ends the question that is open, and waits for that.
class PodmanFolders {
 public:
  // Runs `podman info`, which is ended after this time, or when it is cancelled.
  using Ask = std::function<Result<PodmanStore>(std::chrono::milliseconds, const Cancellation*)>;

  explicit PodmanFolders(Ask ask) : ask_(std::move(ask)) {}
  ~PodmanFolders();
  PodmanFolders(const PodmanFolders&) = delete;
  PodmanFolders& operator=(const PodmanFolders&) = delete;

  // Waits for podman's answer, for 10 seconds at most.
  Result<PodmanStore> store();
  // Returns nothing if podman has not answered yet. The first call waits for that for 3 seconds at most. Later calls do
  // not wait: a thread asks podman, and asks again until it answers.
  std::optional<PodmanStore> known();

 private:
  Result<PodmanStore> ask(std::chrono::milliseconds within, const Cancellation* cancel);
  void ask_in_thread();

  const Ask ask_;
  Cancellation over_;
  std::mutex mutex_;  // for what follows; not held while podman is asked
  std::optional<PodmanStore> store_;
  bool asked_ = false;      // known() was called
  bool in_thread_ = false;  // the thread asks now
  std::chrono::steady_clock::time_point ask_again_{};
  std::thread thread_;
};

}  // namespace kymo::runtime
