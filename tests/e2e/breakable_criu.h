#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace kymo::test {

class Kymod;

// A criu for kymod's --criu, which is the real one unless it was told otherwise.
class BreakableCriu {
 public:
  BreakableCriu();

  [[nodiscard]] const std::string& path() const { return path_; }
  // From now on each criu that dumps or restores does this first, in the words of the shell.
  void let_do(const std::string& words) const;
  // From now on each criu that dumps or restores gets the signal where it is about to write this text, such as the
  // name of a notification, to its log.
  void break_at(const std::string& text, int signal) const;
  void mend() const;
  // Waits until a criu that break_at() or let_do() concerned has stopped, and returns its pid; 0: none has.
  [[nodiscard]] pid_t stopped() const;
  // Lets kymod dump with this command of kymo, and kills kymod when CRIU is about to write the pages. CRIU goes on
  // alone then.
  void kill_kymod_when_pages_are_dumped(Kymod& kymod, const std::vector<std::string>& dump) const;

 private:
  TemporaryDirectory folder_;
  std::string path_;
};

// Whether a thread of the process waits for an answer of a MoodyDisk.
bool waits_for_disk(pid_t process);

}  // namespace kymo::test
