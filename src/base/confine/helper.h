#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/cancellation.h"
#include "base/confine/confine.h"
#include "base/file.h"
#include "kymo/result.h"

namespace kymo::confine {

// A function that a helper can run: reads what `request` names, and returns what it found.
using Work = Result<std::string> (*)(const std::string& request);
// Such functions, by the names with which they are asked for.
using WorkByName = std::map<std::string, Work>;

// Reads foreign files in processes without rights. A helper process forks one reader for each
// question. The helper was forked from the program before it had read anything or started a thread,
// so its memory holds no data of the program. If a file takes over its reader, the reader has
// nothing worth taking. If a reader needs too much memory or time, only that reader ends.
//
// Threads:   every member from any thread; several questions can run at once.
// Ownership: the helper process. It ends when this object or the program ends, also if the program
//            is killed. Its name is `kymod-reader`, and its parent is the program.
// Cost:      a question: a fork of a small process, about a millisecond.
class Helper {
 public:
  // To be called before any thread is started.
  // Errors: the system's.
  static Result<std::unique_ptr<Helper>> start(WorkByName works);
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // The answer of `work` to `request`. Blocks until the answer has come. `cancel` ends the reader.
  // Errors: those of the work itself; resource_exhausted: it went beyond its bounds; cancelled:
  //         `cancel` was asked for; unavailable: the helper process is gone; the system's.
  [[nodiscard]] Result<std::string> ask(const std::string& work, const std::string& request,
                                        const Bounds& bounds,
                                        const Cancellation* cancel = nullptr) const;

 private:
  Helper(FileDescriptor socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}

  FileDescriptor socket_;
  pid_t pid_;
};

}  // namespace kymo::confine
