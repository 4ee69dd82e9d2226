#pragma once

#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace kymo::test {

// The reason why containers of runc or podman cannot be made here, for GTEST_SKIP. Empty if they
// can.
const std::string& why_no_runc();
const std::string& why_no_podman();

// Makes a root file system from busybox-static in this folder.
void make_rootfs(const std::string& folder);

// Makes a bundle for runc with such a root. It has no rlimits and no network namespace, because
// some machines refuse them. Returns its folder.
std::string make_bundle(const TemporaryDirectory& parent, const std::string& name,
                        const std::vector<std::string>& command);

// The loop of a container that counts: a shell writes a number into /count ten times a second. The
// second function returns the command that consists only of this loop.
std::string counting_loop();
std::vector<std::string> counting_command();

// Runs runc with a state folder for this test. At the end, its containers are ended and removed.
class RuncFolder {
 public:
  RuncFolder() : path_(folder_.folder("runc")) {}
  ~RuncFolder();
  RuncFolder(const RuncFolder&) = delete;
  RuncFolder& operator=(const RuncFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const TemporaryDirectory& folder() const { return folder_; }
  // Starts a container from a new bundle, detached, and returns the bundle. Fails the test if this
  // fails.
  std::string start(const std::string& id) const;
  // "running", "paused" or "stopped". Empty if there is no such container.
  [[nodiscard]] std::string status(const std::string& id) const;
  // Runs `runc --root PATH WORDS`. Returns whether it succeeded.
  bool runc(const std::string& words) const;

 private:
  TemporaryDirectory folder_;
  std::string path_;
};

// Runs podman with flags that work on any machine. At the end, the containers that it was asked to
// start are removed.
class PodmanContainers {
 public:
  PodmanContainers() = default;
  // With these further flags, such as --root.
  explicit PodmanContainers(const std::string& further) : flags_(further + " " + flags()) {}
  ~PodmanContainers();
  PodmanContainers(const PodmanContainers&) = delete;
  PodmanContainers& operator=(const PodmanContainers&) = delete;

  // The value of kymod's --podman-flags.
  static std::string flags() { return "--cgroup-manager=cgroupfs --runtime runc"; }
  // The arguments of `podman run` for a container that counts and has its own root.
  std::vector<std::string> arguments(const std::string& name,
                                     const std::vector<std::string>& command = counting_command());
  // Starts such a container and returns its root. Fails the test if this fails.
  std::string start(const std::string& name,
                    const std::vector<std::string>& command = counting_command());
  [[nodiscard]] std::string root_of(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  // "running", "exited" and so on. Empty if there is no such container.
  [[nodiscard]] std::string status(const std::string& name) const;
  // The output of `podman WORDS`. The criu of the tests is the first one on PATH.
  [[nodiscard]] std::string podman(const std::string& words) const;

 private:
  TemporaryDirectory folder_;
  std::vector<std::string> names_;
  const std::string flags_ = flags();
};

// Whether the container with this root still counts.
bool counts_on(const std::string& rootfs);

}  // namespace kymo::test

// The first line of a test that needs runc.
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
