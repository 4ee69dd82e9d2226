#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/containerd.h"
#include "support/containers.h"
#include "support/temporary_directory.h"

namespace kymo::test {

// The reason why containers of Docker cannot be made here, for GTEST_SKIP. Empty if they can.
const std::string& why_no_docker();

// A dockerd with folders, a socket and a containerd for the test, and an image of busybox. While
// this object exists, DOCKER_HOST names the socket. The destructor ends the containers and the
// daemons.
class Docker {
 public:
  enum class Features : std::uint8_t { usual, experimental, user_namespaces };

  // `criu_folder` is the first folder on the PATH of its containerd.
  explicit Docker(const std::string& criu_folder, Features features = Features::experimental);
  ~Docker();
  Docker(const Docker&) = delete;
  Docker& operator=(const Docker&) = delete;

  // The arguments of `docker run` for a container that counts. It has no network, because some
  // machines refuse one.
  static std::vector<std::string> arguments(
      const std::vector<std::string>& command = counting_command());
  // Starts a container with these arguments and this name.
  void start(const std::string& name) const;
  void stop_answering() const;
  void answer_again() const;
  [[nodiscard]] std::string socket() const { return folder_.path() + "/docker.sock"; }
  // The text of the daemon's log.
  [[nodiscard]] std::string log() const;
  // The output of `docker WORDS`, including stderr.
  [[nodiscard]] std::string docker(const std::string& words) const;
  // "running", "paused" or "exited". Empty if there is no such container.
  [[nodiscard]] std::string status(const std::string& name) const;
  // The folder in which the files that the container writes appear.
  [[nodiscard]] std::string root_of(const std::string& name) const;
  // The folder in which Docker keeps the checkpoints of the container.
  [[nodiscard]] std::string checkpoints_of(const std::string& name) const;

 private:
  // A value of a container, in the format of `docker container inspect --format`.
  [[nodiscard]] std::string value_of(const std::string& name, const std::string& format) const;
  void start_server(Features features);

  TemporaryDirectory folder_;
  Containerd containerd_;
  pid_t pid_ = 0;
};

}  // namespace kymo::test

#define KYMO_NEEDS_DOCKER()                          \
  do {                                               \
    if (!::kymo::test::why_no_docker().empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_no_docker(); \
    }                                                \
  } while (false)
