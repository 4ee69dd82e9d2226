#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/spawn.h"
#include "support/temporary_directory.h"

namespace kymo::test {

// The command of a target that has a child in its session. It prints "ready" and the pid of the
// child.
inline const std::vector<std::string> kInASession{"/bin/sh", "-c",
                                                  "sleep 600 & echo ready $!; wait"};

// A real process that a test checks. It leads a session, has no terminal, and writes into a file.
// It and its children are killed with this object.
class Target {
 public:
  explicit Target(const std::vector<std::string>& words,
                  Program::Leads leads = Program::Leads::session, int input = kDevNull) {
    const FileDescriptor output(
        ::open(output_path().c_str(), O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0644));
    const Result<pid_t> started = spawn({.file = words.front(),
                                         .words = words,
                                         .descriptors = {input, output.get(), output.get()},
                                         .leads = leads});
    EXPECT_TRUE(started.ok()) << started.error().message;
    pid_ = started ? *started : 0;
    group_ = leads == Program::Leads::nothing ? pid_ : -pid_;
  }
  ~Target() { end(); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  void end() {
    if (pid_ <= 0) return;
    kill(group_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const TemporaryDirectory& folder() const { return folder_; }
  [[nodiscard]] std::string printed() const {
    const Result<std::string> text = read_file(output_path());
    return text ? *text : "";
  }
  // Waits for the first line, and returns whether it begins with "ready".
  [[nodiscard]] bool is_ready() const {
    EXPECT_TRUE(eventually([&] { return printed().find('\n') != std::string::npos; }));
    return printed().starts_with("ready");
  }
  // The pid after "ready " in the first line, or 0 if there is none.
  [[nodiscard]] pid_t child() const {
    const std::string text = printed();
    constexpr std::size_t kReady = 6;
    const std::string line = text.substr(0, text.find('\n'));
    return line.size() > kReady ? std::stoi(line.substr(kReady)) : 0;
  }

 private:
  [[nodiscard]] std::string output_path() const { return folder_.path() + "/output"; }

  TemporaryDirectory folder_;
  pid_t pid_ = 0;
  pid_t group_ = 0;
};

}  // namespace kymo::test
