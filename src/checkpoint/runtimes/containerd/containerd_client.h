#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "checkpoint/runtimes/shared/command.h"
#include "kymo/result.h"

namespace kymo::runtime {

// The name of a container, "NAMESPACE/ID". Without a namespace it is the one that the variable
// CONTAINERD_NAMESPACE names, else "default", as for ctr.
struct ContainerdName {
  std::string space;
  std::string id;
  [[nodiscard]] std::string text() const { return space + "/" + id; }
};
// Errors: invalid_argument if containerd does not allow the name (its package identifiers), or if
//         gRPC could not send it.
Result<ContainerdName> containerd_name(const std::string& name);

// The first process of a container that has one.
struct ContainerdTask {
  enum class State : std::uint8_t { runs, paused, stopped };
  pid_t pid = 0;
  State state = State::runs;
};

// Where and with which options containerd dumps a container.
struct ContainerdCheckpoint {
  std::string images_dir;
  std::string work_dir;
  bool leave_running = false;
  bool tcp_established = false;
  bool external_unix_sockets = false;
  bool shell_job = false;
  bool file_locks = false;
};

// A client of containerd's gRPC API, version 1.6 (api/services). It uses the socket that the
// variable CONTAINERD_ADDRESS names, else /run/containerd/containerd.sock, as ctr does. Access to
// that socket gives the rights of root.
//
// Threads: every member from any thread.
// Errors:  unavailable if no program serves the socket, not_found, or what containerd says.
// Cost:    a few calls of the API each. The first one connects.
class ContainerdClient {
 public:
  // The time limit of a call that does not start CRIU.
  static constexpr std::chrono::milliseconds kAnswersWithin{10'000};

  ContainerdClient();
  ~ContainerdClient();
  ContainerdClient(const ContainerdClient&) = delete;
  ContainerdClient& operator=(const ContainerdClient&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }

  // Returns the PATH of the containerd that serves the socket. Its runc looks for criu there.
  [[nodiscard]] Result<std::string> server_path() const;
  // Returns the spec of the container, which is runc's config.json.
  // Errors: not_found if there is no such container.
  [[nodiscard]] Result<std::string> spec_of(const ContainerdName& name) const;
  // Returns the task of the container. Returns nothing if it has none, so that one can be made.
  [[nodiscard]] Result<std::optional<ContainerdTask>> task(
      const ContainerdName& name, std::chrono::milliseconds patience = kAnswersWithin) const;
  // Makes containerd forget a task that has stopped.
  [[nodiscard]] Result<void> delete_task(const ContainerdName& name,
                                         std::chrono::milliseconds patience = kAnswersWithin) const;
  [[nodiscard]] Result<void> pause(const ContainerdName& name) const;
  [[nodiscard]] Result<void> resume(const ContainerdName& name) const;

  // Dumps the container. checkpoint() and restore() take as long as CRIU does. `limits` says when
  // and how they are ended (see Command). Its words and its environment are not used. They return
  // the outcome of a program: the exit status is 0 or 1, and `errors` is containerd's message.
  [[nodiscard]] Result<CommandOutcome> checkpoint(const ContainerdName& name,
                                                  const ContainerdCheckpoint& how,
                                                  const Command& limits) const;
  // Makes the container's task from images and starts it. If that fails, the task may be left.
  [[nodiscard]] Result<CommandOutcome> restore(const ContainerdName& name,
                                               const std::string& images_dir,
                                               const std::string& work_dir,
                                               const Command& limits) const;

 private:
  struct Stubs;

  // Made at the first call: gRPC starts threads.
  [[nodiscard]] const Stubs& stubs() const;

  std::string address_;
  mutable std::once_flag made_;
  mutable std::unique_ptr<Stubs> stubs_;
};

}  // namespace kymo::runtime
