#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kymo/result.h"
#include "runtime/command.h"

namespace kymo::runtime {

// A container as containerd knows it, "NAMESPACE/ID"; without a namespace it is in that of
// CONTAINERD_NAMESPACE, else in "default", as with ctr.
struct ContainerdName {
  std::string space;
  std::string id;
  [[nodiscard]] std::string text() const { return space + "/" + id; }
};
// Errors: invalid_argument: it is no name that containerd allows (its package identifiers), or it
// is one that gRPC would not send.
Result<ContainerdName> containerd_name(const std::string& name);

// The first process of a container, where there is one.
struct ContainerdTask {
  enum class State : std::uint8_t { runs, paused, stopped };
  pid_t pid = 0;
  State state = State::runs;
};

// How a container's images are written.
struct ContainerdCheckpoint {
  std::string images_dir;
  std::string work_dir;
  bool leave_running = false;
  bool tcp_established = false;
  bool external_unix_sockets = false;
  bool shell_job = false;
  bool file_locks = false;
};

// containerd's gRPC API, version 1.6 (api/services), at the socket that CONTAINERD_ADDRESS names,
// else at /run/containerd/containerd.sock, as with ctr. Whoever may use that socket is root.
//
// Threads: every member from any thread. Errors: unavailable: nobody serves the socket; not_found;
// else what containerd says. Cost: a call of its API each, the first connects.
class ContainerdClient {
 public:
  // How long a call may take that does not start CRIU.
  static constexpr std::chrono::milliseconds kAnswersWithin{10'000};

  ContainerdClient();
  ~ContainerdClient();
  ContainerdClient(const ContainerdClient&) = delete;
  ContainerdClient& operator=(const ContainerdClient&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }

  // The PATH of the containerd that serves the socket: there its runc looks for criu.
  [[nodiscard]] Result<std::string> server_path() const;
  // Whether there is such a container.
  [[nodiscard]] Result<void> check_container(const ContainerdName& name) const;
  // None: it has no task, so that one can be made.
  [[nodiscard]] Result<std::optional<ContainerdTask>> task(
      const ContainerdName& name, std::chrono::milliseconds patience = kAnswersWithin) const;
  // Forgets a task that has stopped.
  [[nodiscard]] Result<void> delete_task(const ContainerdName& name) const;
  [[nodiscard]] Result<void> pause(const ContainerdName& name) const;
  [[nodiscard]] Result<void> resume(const ContainerdName& name) const;

  // These take as long as CRIU does. `limits` says when they are ended, and how (Command); its
  // words and its environment are not used. The outcome is that of a program: its exit status is 0
  // or 1, its errors are containerd's message.
  [[nodiscard]] Result<CommandOutcome> checkpoint(const ContainerdName& name,
                                                  const ContainerdCheckpoint& how,
                                                  const Command& limits) const;
  // Makes the container's task out of images, and starts it.
  [[nodiscard]] Result<CommandOutcome> restore(const ContainerdName& name,
                                               const std::string& images_dir,
                                               const std::string& work_dir,
                                               const Command& limits) const;

 private:
  struct Stubs;

  std::string address_;
  std::unique_ptr<Stubs> stubs_;
};

}  // namespace kymo::runtime
