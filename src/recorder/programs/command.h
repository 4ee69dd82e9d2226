#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::record {

// A command whose process exists but waits for go() before it executes the program, so that its
// first instruction can be recorded. Therefore it forks: a program that spawn() of base/spawn.h
// starts runs at once.
//
// Threads:   one. prepare() forks, so call it before the program has other threads.
// Ownership: the destructor ends a process for which go() was not called. After go(), the caller
//            must wait for the process.
class Command {
 public:
  // The process has the caller's signal mask.
  //
  // Errors: those of fork().
  static Result<Command> prepare(const std::vector<std::string>& words);
  Command(Command&&) noexcept = default;
  Command& operator=(Command&&) noexcept = default;
  ~Command();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Starts the program. If it fails, the process has ended.
  //
  // Errors: not_found, permission_denied, and the others of execve().
  Result<void> go();

 private:
  Command(pid_t pid, std::string name, FileDescriptor gate, FileDescriptor failure);

  pid_t pid_;
  std::string name_;
  FileDescriptor gate_;     // open as long as the process waits
  FileDescriptor failure_;  // reads an errno, or the end of file if the program has started
};

}  // namespace kymo::record
