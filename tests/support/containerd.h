#pragma once

#include <sys/types.h>

#include <string>

#include "support/temporary_directory.h"

namespace kymo::test {

// Why containers of containerd cannot be made here, for GTEST_SKIP; empty where they can.
const std::string& why_no_containerd();

// A containerd with folders and a socket of its own, and an image of busybox. While it lives,
// CONTAINERD_ADDRESS names it. The destructor ends its containers and it.
class Containerd {
 public:
  // `criu_folder` stands first on its PATH.
  explicit Containerd(const std::string& criu_folder);
  ~Containerd();
  Containerd(const Containerd&) = delete;
  Containerd& operator=(const Containerd&) = delete;

  static std::string image() { return "kymo.test/busybox:1"; }
  [[nodiscard]] std::string socket() const { return folder_.path() + "/containerd.sock"; }
  // Where it puts temporary files.
  [[nodiscard]] std::string temporary() const { return folder_.path() + "/tmp"; }
  void stop_answering() const;
  void answer_again() const;
  // What it has logged.
  [[nodiscard]] std::string log() const;
  // What `ctr WORDS` prints, on stderr as well.
  [[nodiscard]] std::string ctr(const std::string& words) const;
  // "RUNNING", "PAUSED", "STOPPED"; empty: the container has no task.
  [[nodiscard]] std::string status(const std::string& id) const;

 private:
  void import_image();

  TemporaryDirectory folder_;
  pid_t pid_ = 0;
};

}  // namespace kymo::test

#define KYMO_NEEDS_CONTAINERD()                          \
  do {                                                   \
    if (!::kymo::test::why_no_containerd().empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_no_containerd(); \
    }                                                    \
  } while (false)
