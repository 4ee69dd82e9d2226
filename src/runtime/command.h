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

// The session of what is no program that we have started.
inline constexpr pid_t kNoSession = -1;

// A program of somebody else's that is run to its end.
struct Command {
  std::vector<std::string> words;  // words[0] is looked up on PATH
  std::vector<std::string> environment;
  // Then it is killed with all of its session; 0: no limit.
  std::chrono::milliseconds timeout{0};
  // Ends it as the timeout does; null: nobody can.
  const Cancellation* cancel = nullptr;
  // Called then, before the killing: ends in good order what it has started. A command that ends
  // well all the same has done so.
  std::function<void(pid_t session)> time_over{};
  // Where its output goes; empty: it is kept and returned. What stays behind as a container must
  // have /dev/null: a file from outside could not be dumped with it.
  std::string output_path{};
};

struct CommandOutcome {
  int exit_status = 0;  // -1: a signal ended it
  std::string ended;    // "exited with status 1", "was killed by signal 9 (Killed)"
  std::string output;
  std::string errors;         // what it said on stderr, its last 64 KiB
  std::uint64_t life_ns = 0;  // from just before its start until it was reaped
};

// Threads: any; the caller's blocks. Errors: it does not start (not_found: there is no such
// program), deadline_exceeded or cancelled; nothing of it runs then.
Result<CommandOutcome> run_command(const Command& command);

// The last line of a text that is not empty, trimmed.
std::string last_line(const std::string& text);

// The first line that a program prints; empty where it prints none, or cannot be run.
std::string first_line_of(std::vector<std::string> words);

// This program's environment, with `folder`, unless empty, put first on PATH.
std::vector<std::string> environment_with_path(const std::string& folder);

// The executable that a name leads to in the absolute folders of a PATH, or of this program's;
// empty where there is none.
std::string on_path(const std::string& name, std::string_view path);
std::string on_path(const std::string& name);

}  // namespace kymo::runtime
