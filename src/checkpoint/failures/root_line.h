#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kymo::failures {

// What the log of a failed dump or restore says.
struct Root {
  std::string line;  // the line that names the cause, without time and pid; empty if there is none
  std::string step;  // the step that was under way ("Dump files (pid: 7)"), if the log names it
  std::uint64_t pid = 0;   // the process that CRIU worked on, as far as the log says
  bool only_step = false;  // `line` names a step only, no cause
  bool probe = false;      // `line` is a test of a feature of the kernel
  bool failed = false;     // CRIU wrote that it failed
  bool finished = false;   // CRIU wrote that it succeeded
  bool is_log = false;     // at least one line is CRIU's
  // Not of the log: the folder of the images or of the log, if next to nothing can be written to its disk.
  std::string full_disk{};
  // Not of the log: the kernel killed a process of the machine meanwhile because memory ran out.
  bool out_of_memory = false;
};

// Finds the line of a CRIU log that names the cause of a failure.
//
// The log may be of any version from 3.17 on, cut short anywhere, or have lines of other programs
// between its own. Only its last run counts. The root is the first error that is not noise, a
// feature test of the kernel or a step that failed because of an earlier error; and if there is
// none, the first of the weaker hints (docs/errors.md).
//
// Threads: one at a time.
// Errors:  none; a log that explains nothing has an empty line.
// Cost:    constant memory (lines are cut at kMaxLine bytes), one pass.
class RootFinder {
 public:
  static constexpr std::size_t kMaxLine = 2048;

  // Adds the next bytes of the log, cut anywhere.
  void add(std::string_view bytes);

  // The root of what was added.
  [[nodiscard]] Root finish();

 private:
  void line(std::string_view text);
  void error(std::string_view text, std::uint64_t pid);  // 0: the line names no process
  void other(std::string_view text);
  void step(std::string_view text);

  std::string part_;  // the line that has not ended yet
  Root about_;
  std::optional<std::string> root_, silent_, warning_, probe_, wrapper_, unstamped_;
  bool probing_failed_ = false;
  bool is_log_ = false;
};

// Reads the log that is open as `fd`, from its place to its end.
Root read_root(int fd);

// The root of the log at `path`. Empty if it cannot be read, or if it is a link.
Root root_of_log(const std::string& path);

}  // namespace kymo::failures
