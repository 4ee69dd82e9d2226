#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancellation.h"
#include "kymo/result.h"

namespace kymo::runtime {

// The session of a call that is not a program which kymod has started.
inline constexpr pid_t kNoSession = -1;

// A program to run until it ends.
struct Command {
  std::vector<std::string> words;  // words[0] is looked up on PATH
  std::vector<std::string> environment;
  // After this time the program is killed with its whole session. 0: no limit.
  std::chrono::milliseconds timeout{0};
  // Ends the program as the timeout does. Null: the program cannot be cancelled.
  const Cancellation* cancel = nullptr;
  // Called at the timeout or the cancellation, before the session is killed, to end in good order
  // what the program has started. If the program then exits with status 0, it has succeeded. Returns false if
  // nothing of it can end before a disk answers.
  std::function<bool(pid_t session)> time_over{};
  // Where the output goes. Empty: it is kept and returned. A program that leaves a container
  // running needs /dev/null, because CRIU cannot dump a container with an open file from outside.
  std::string output_path{};
};

struct CommandOutcome {
  int exit_status = 0;  // -1: a signal ended the program
  std::string ended;    // "exited with status 1", "was ended by signal 9 (SIGKILL)"
  std::string output;
  std::string errors;         // the last 64 KiB of stderr
  std::uint64_t life_ns = 0;  // from just before the start until the program was reaped
};

// Runs a program and waits for its end.
// Threads: any; blocks.
// Errors:  the program does not start (not_found if there is no such program), deadline_exceeded,
//          or cancelled. Nothing of the program runs then.
Result<CommandOutcome> run_command(const Command& command);

// Returns the last non-empty line of a text, without white space at its ends.
std::string last_line(const std::string& text);

// Returns the first line that a program prints. Empty if it prints none or cannot be run.
std::string first_line_of(std::vector<std::string> words);

// Returns the environment of this program, with `folder` added at the front of PATH unless it is
// empty.
std::vector<std::string> environment_with_path(const std::string& folder);

// Looks for the executable `name` in the absolute folders of `path`, or of this program's PATH.
// Returns an empty string if there is none.
std::string on_path(const std::string& name, std::string_view path);
std::string on_path(const std::string& name);

}  // namespace kymo::runtime
