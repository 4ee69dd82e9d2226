#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::record {

// A command that is a process already but has not begun: it waits to be let go, so that whoever
// watches it misses nothing.
//
// Threads:   one; prepare() before the program has others (it forks).
// Ownership: a command that was never let go ends with the object; one that was is the caller's to
//            wait for.
class Command {
 public:
  // It has the caller's signal mask. Errors: of fork.
  static Result<Command> prepare(const std::vector<std::string>& words);
  Command(Command&&) noexcept = default;
  Command& operator=(Command&&) noexcept = default;
  ~Command();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Lets it begin. Errors: not_found, permission_denied, and what else execve() gives; the process
  // has ended then.
  Result<void> go();

 private:
  Command(pid_t pid, std::string name, FileDescriptor gate, FileDescriptor failure);

  pid_t pid_;
  std::string name_;
  FileDescriptor gate_;     // open: it waits
  FileDescriptor failure_;  // an errno comes out of it, or its end where the command has begun
};

}  // namespace kymo::record
