#pragma once

#include <poll.h>
#include <sys/types.h>

#include <vector>

#include "base/file.h"

namespace kymo::confine {

// The readers that the helper process has started and that have not ended. Each has a lifeline: the
// reading end of a pipe whose other end only the program holds, as long as it wants the answer.
// When the program closes it, or ends, the reader is killed. A reader can do nothing against that.
//
// Threads:   the only one of the process.
// Ownership: the lifelines.
class Readers {
 public:
  // Blocks SIGCHLD, except while wait_for() waits.
  Readers();

  // Returns when there is a question at `socket`. Until then kills readers that the program does
  // not want any more, and reaps those that have ended.
  void wait_for(int socket);
  void add(pid_t pid, FileDescriptor lifeline);
  // To be called in a new reader: restores the signals that it blocks.
  void leave() const;

 private:
  struct Reader {
    pid_t pid = 0;
    FileDescriptor lifeline;  // not valid after the reader was killed
  };
  void reap();

  std::vector<Reader> readers_;
  sigset_t before_{};
};

}  // namespace kymo::confine
