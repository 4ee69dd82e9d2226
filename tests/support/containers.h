#pragma once

#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace kymo::test {

// Why containers of runc or podman cannot be made here, for GTEST_SKIP; empty where they can.
const std::string& why_no_runc();
const std::string& why_no_podman();

// A root file system out of busybox-static, in a folder of its own.
void make_rootfs(const std::string& folder);

// A bundle for runc with such a root, without rlimits and a network namespace, which a machine may
// refuse; returns its folder.
std::string make_bundle(const TemporaryDirectory& parent, const std::string& name,
                        const std::vector<std::string>& command);

// What a container runs that counts on: a shell's loop that writes a number into /count ten times a
// second, and the command that is nothing else.
std::string counting_loop();
std::vector<std::string> counting_command();

// runc's own command with a state folder for the test alone; ends and removes its containers.
class RuncFolder {
 public:
  RuncFolder() : path_(folder_.folder("runc")) {}
  ~RuncFolder();
  RuncFolder(const RuncFolder&) = delete;
  RuncFolder& operator=(const RuncFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const TemporaryDirectory& folder() const { return folder_; }
  // Starts a container of a new bundle, detached; returns the bundle. Fails the test where it
  // cannot.
  std::string start(const std::string& id) const;
  // "running", "paused", "stopped"; empty: there is none.
  [[nodiscard]] std::string status(const std::string& id) const;
  // `runc --root PATH WORDS`; whether it succeeded.
  bool runc(const std::string& words) const;

 private:
  TemporaryDirectory folder_;
  std::string path_;
};

// podman's own command, with the flags that work on any machine; removes the containers that it
// was asked to start.
class PodmanContainers {
 public:
  PodmanContainers() = default;
  ~PodmanContainers();
  PodmanContainers(const PodmanContainers&) = delete;
  PodmanContainers& operator=(const PodmanContainers&) = delete;

  // For kymod's --podman-flags.
  static std::string flags() { return "--cgroup-manager=cgroupfs --runtime runc"; }
  // The arguments of `podman run` for a counting container with a root of its own.
  std::vector<std::string> arguments(const std::string& name,
                                     const std::vector<std::string>& command = counting_command());
  // Starts one; returns its root. Fails the test where it cannot.
  std::string start(const std::string& name,
                    const std::vector<std::string>& command = counting_command());
  [[nodiscard]] std::string root_of(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  // "running", "exited", ...; empty: there is none.
  [[nodiscard]] std::string status(const std::string& name) const;
  // What `podman WORDS` prints; PATH has the criu of the tests first.
  [[nodiscard]] std::string podman(const std::string& words) const;

 private:
  TemporaryDirectory folder_;
  std::vector<std::string> names_;
};

// Whether the counting command in this root still counts.
bool counts_on(const std::string& rootfs);

}  // namespace kymo::test

// First line of a test that needs them.
#define KYMO_NEEDS_RUNC()                          \
  do {                                             \
    if (!::kymo::test::why_no_runc().empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_no_runc(); \
    }                                              \
  } while (false)
#define KYMO_NEEDS_PODMAN()                          \
  do {                                               \
    if (!::kymo::test::why_no_podman().empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_no_podman(); \
    }                                                \
  } while (false)
