#pragma once

#include <sys/types.h>

#include <string>

#include "support/temporary_directory.h"

namespace kymo::test {

// The reason why containers of containerd cannot be made here, for GTEST_SKIP. Empty if they can.
const std::string& why_no_containerd();

// A containerd with folders and a socket for the test, and an image of busybox. While this object
// exists, CONTAINERD_ADDRESS names the socket. The destructor ends the containers and the daemon.
class Containerd {
 public:
  // `criu_folder` is the first folder of the daemon's PATH.
  explicit Containerd(const std::string& criu_folder);
  ~Containerd();
  Containerd(const Containerd&) = delete;
  Containerd& operator=(const Containerd&) = delete;

  static std::string image() { return "kymo.test/busybox:1"; }
  [[nodiscard]] std::string socket() const { return folder_.path() + "/containerd.sock"; }
  // The folder of the daemon's temporary files.
  [[nodiscard]] std::string temporary() const { return folder_.path() + "/tmp"; }
  void stop_answering() const;
  void answer_again() const;
  // Ends the daemon and starts it again. Its containers run on.
  void restart();
  // Whether it has stored a part of something and not yet the rest.
  [[nodiscard]] bool uploads() const;
  [[nodiscard]] std::string state() const { return folder_.path() + "/state"; }
  // The text of the daemon's log.
  [[nodiscard]] std::string log() const;
  // The output of `ctr WORDS`, including stderr.
  [[nodiscard]] std::string ctr(const std::string& words) const;
  // "RUNNING", "PAUSED" or "STOPPED". Empty if the container has no task.
  [[nodiscard]] std::string status(const std::string& id) const;

 private:
  void start();
  void import_image();

  TemporaryDirectory folder_;
  std::string criu_folder_;
  pid_t pid_ = 0;
};

}  // namespace kymo::test

#define KYMO_NEEDS_CONTAINERD()                          \
  do {                                                   \
    if (!::kymo::test::why_no_containerd().empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_no_containerd(); \
    }                                                    \
  } while (false)
