#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "support/temporary_directory.h"

namespace kymo::test {

// A criu for tests, which is the real one unless it was told otherwise.
class BreakableCriu {
 public:
  BreakableCriu();

  [[nodiscard]] const std::string& path() const { return path_; }
  // The folder that it stands in alone, for the PATH of a runtime.
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  // From now on each criu that dumps or restores does this first, in the words of the shell.
  void let_do(const std::string& words) const;
  // From now on each criu that dumps or restores gets the signal where it is about to write this text, such as the
  // name of a notification, to its log, and has written it `after` times.
  void break_at(const std::string& text, int signal, int after = 0) const;
  // From now on each process of a criu that dumps or restores waits for good where it is about to write this text.
  void wait_at(const std::string& text) const { break_at(text, -1); }
  // From now on each criu that dumps or restores stops before it begins, if a program of this name has started it. Empty:
  // whoever has.
  void stop_at_once(const std::string& parent = "") const;
  void mend() const;
  // Waits until a criu that one of these concerned has stopped, and returns its pid; 0: none has.
  [[nodiscard]] pid_t stopped() const;
  // The same, but waits no longer when the request is over.
  [[nodiscard]] pid_t stopped_unless(const std::function<bool()>& over) const;

 private:
  TemporaryDirectory folder_;
  std::string path_;
};

}  // namespace kymo::test
