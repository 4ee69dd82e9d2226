#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kymo/result.h"
#include "runtime/command.h"

namespace kymo::runtime {

// Whether Docker can have a container with this name or id. Other text must not become part of the
// address of a request.
bool is_docker_name(const std::string& name);

// What a call says of its failure if nothing had to be done: the container that it starts runs already.
inline constexpr char kSoAlready[] = "Docker says that it is so already";

// A container as Docker sees it.
struct DockerContainer {
  std::string id;
  std::string status;        // "running", "paused", "exited"
  pid_t pid = 0;             // of its first process; 0: it does not run
  bool paused = false;       // Docker has frozen it
  bool auto_remove = false;  // Docker removes it when it ends (docker run --rm)
};

struct DockerEvents {
  bool unpaused = false;
  bool signalled = false;  // by docker stop, restart, kill or rm --force, which also unpause it
};

// A client of Docker's Engine API. It uses the socket that the variable DOCKER_HOST names
// (unix://PATH), else /var/run/docker.sock, as the program docker does. Access to that socket gives
// the rights of root.
//
// Threads: every member from any thread.
// Errors:  unavailable if no program serves the socket, deadline_exceeded if it does not answer,
//          not_found, or what Docker says.
// Cost:    a connection and a request each.
class DockerClient {
 public:
  // The time limit of a call that does not start CRIU.
  static constexpr std::chrono::milliseconds kAnswersWithin{10'000};

  DockerClient();

  [[nodiscard]] const std::string& socket() const { return socket_; }

  // `name`: a name, an id, or the beginning of an id.
  [[nodiscard]] Result<DockerContainer> container(
      const std::string& name, std::chrono::milliseconds patience = kAnswersWithin) const;
  // Whether Docker was started with its experimental features. It makes no checkpoints without.
  [[nodiscard]] Result<bool> experimental() const;
  // Returns the folder in which Docker keeps its data.
  [[nodiscard]] Result<std::string> data_root() const;
  [[nodiscard]] Result<void> pause(const std::string& id) const;
  [[nodiscard]] Result<void> unpause(const std::string& id) const;
  // What was done with the container since then. Docker knows only its last 256 events.
  [[nodiscard]] Result<DockerEvents> events(const std::string& id,
                                            std::chrono::system_clock::time_point since) const;
  // Ends the container, even if it is paused. Docker does not start it again by its restart policy.
  [[nodiscard]] Result<void> kill(const std::string& id) const;

  // Dumps the container into the folder FOLDER/NAME, which Docker makes. The container runs on.
  // checkpoint() and start() take longer than CRIU does, because Docker packs and unpacks the
  // images. `limits` and the outcome are those of run_call().
  [[nodiscard]] Result<CommandOutcome> checkpoint(const std::string& id, const std::string& folder,
                                                  const std::string& name,
                                                  const Command& limits) const;
  // Starts the container from the images in the folder `name` below Docker's folder of the
  // container's checkpoints.
  [[nodiscard]] Result<CommandOutcome> start(const std::string& id, const std::string& name,
                                             const Command& limits) const;

 private:
  struct Call;
  struct Answer;

  [[nodiscard]] Result<Answer> ask(const Call& call) const;
  [[nodiscard]] Result<nlohmann::json> get(const std::string& path,
                                           std::chrono::milliseconds patience) const;
  [[nodiscard]] Result<void> post(const std::string& path) const;
  [[nodiscard]] Result<CommandOutcome> post_within_limits(const std::string& path,
                                                          const std::string& body,
                                                          const Command& limits) const;

  std::string socket_;   // empty: DOCKER_HOST does not name a unix socket
  std::string refused_;  // why
};

}  // namespace kymo::runtime
