#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/containerd.h"
#include "support/containers.h"
#include "support/temporary_directory.h"

namespace kymo::test {

// Why containers of Docker cannot be made here, for GTEST_SKIP; empty where they can.
const std::string& why_no_docker();

// A dockerd with folders, a socket and a containerd of its own, and an image of busybox. While it
// lives, DOCKER_HOST names it. The destructor ends its containers and it.
class Docker {
 public:
  enum class Features : bool { usual, experimental };

  // `criu_folder` stands first on the PATH of its containerd.
  explicit Docker(const std::string& criu_folder, Features features = Features::experimental);
  ~Docker();
  Docker(const Docker&) = delete;
  Docker& operator=(const Docker&) = delete;

  // The arguments of `docker run` for a container that counts: without a network, which a machine
  // may refuse.
  static std::vector<std::string> arguments(
      const std::vector<std::string>& command = counting_command());
  // Starts a container with these arguments.
  void start(const std::string& name) const;
  void stop_answering() const;
  void answer_again() const;
  // What it has logged.
  [[nodiscard]] std::string log() const;
  // What `docker WORDS` prints, on stderr as well.
  [[nodiscard]] std::string docker(const std::string& words) const;
  // "running", "paused", "exited"; empty: there is no such container.
  [[nodiscard]] std::string status(const std::string& name) const;
  // The folder in which the files appear that the container writes.
  [[nodiscard]] std::string root_of(const std::string& name) const;
  // Docker's folder of the container's checkpoints.
  [[nodiscard]] std::string checkpoints_of(const std::string& name) const;
  // Where its containerd puts temporary files.
  [[nodiscard]] std::string temporary() const { return containerd_.temporary(); }

 private:
  [[nodiscard]] std::string socket() const { return folder_.path() + "/docker.sock"; }
  // One value of a container, as `docker container inspect --format` prints it.
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
