#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/cancellation.h"
#include "base/file.h"
#include "confine/confine.h"
#include "kymo/result.h"

namespace kymo::confine {

// What a helper can be asked for: reads what `request` names, and says what it found.
using Work = Result<std::string> (*)(const std::string& request);
using Works = std::map<std::string, Work>;

// Reads foreign files in processes without rights: one for each question, forked by a process that
// was itself forked when nothing had been read yet and no thread ran. A reader that is taken over
// by what it reads has nothing to take, and one that needs too much ends alone.
//
// Threads:   every member from any thread, questions at the same time.
// Ownership: the helper process, which ends when this does, or the program, however it ends. Its
//            name is `kymod-reader`, and its parent the program.
// Cost:      a question: a fork of a small process, about a millisecond.
class Helper {
 public:
  // Before any thread is started. Errors: the system's.
  static Result<std::unique_ptr<Helper>> start(Works works);
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // The answer of `work` to `request`. Blocks until it is there, or `cancel` is asked for, which
  // ends the reader. Errors:
  // those of the work itself; resource_exhausted: it went beyond its bounds; cancelled: given up;
  // unavailable: the helper process is gone; the system's.
  [[nodiscard]] Result<std::string> ask(const std::string& work, const std::string& request,
                                        const Bounds& bounds,
                                        const Cancellation* cancel = nullptr) const;

 private:
  Helper(FileDescriptor socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}

  FileDescriptor socket_;
  pid_t pid_;
};

}  // namespace kymo::confine
