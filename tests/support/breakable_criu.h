#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "support/temporary_directory.h"

namespace kymo::test {

// A criu for tests. It is the real one, except if it was told to do something else.
class BreakableCriu {
 public:
  BreakableCriu();

  [[nodiscard]] const std::string& path() const { return path_; }
  // The folder that contains only this criu, for the PATH of a runtime.
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  // From now on, each criu that dumps or restores first runs these shell commands.
  void let_do(const std::string& words) const;
  // From now on, each criu that dumps or restores gets the signal when it is about to write this text (such as the name
  // of a notification) to its log, after it has already written it `after` times.
  void break_at(const std::string& text, int signal, int after = 0) const;
  // From now on, each process of a criu that dumps or restores waits for ever when it is about to write this text.
  void wait_at(const std::string& text) const { break_at(text, -1); }
  // From now on, each criu that dumps or restores stops before it begins, if it was started by a program of this name. If
  // the name is empty, each criu stops.
  void stop_at_once(const std::string& parent = "") const;
  void mend() const;
  // Waits until a criu has stopped because of one of these calls, and returns its pid, or 0 if none has stopped.
  [[nodiscard]] pid_t stopped() const;
  // The same, but stops waiting when the request is over.
  [[nodiscard]] pid_t stopped_unless(const std::function<bool()>& over) const;

 private:
  TemporaryDirectory folder_;
  std::string path_;
};

}  // namespace kymo::test
