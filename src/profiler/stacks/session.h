#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "profiler/stacks/profile.h"
#include "profiler/stacks/source.h"

namespace kymo::stacks {

struct Options {
  Sampling sampling;
  // The longest time. A profile also ends on SIGINT, SIGTERM or SIGHUP, and with the process
  // `until_end_of`, if there is one.
  std::optional<std::chrono::milliseconds> duration;
  pid_t until_end_of = 0;
};

struct CommandProfile {
  Profile profile;
  int exit_code = 0;  // of the command; 128 + N if signal N ended it
};

// Profiles running processes.
//
// Threads: call it from a program with a single thread.
// Errors:  not_found: there is no such process; permission_denied: what is missing, and how to
//          grant it; those of the kernel.
Result<Profile> profile_running(const Options& options);

// Runs a command and profiles it and its children, from its first instruction until it ends or the
// time is over. It is `sampling.target`. SIGINT and SIGQUIT are ignored, because the command gets
// them from the terminal, too. SIGTERM and SIGHUP are forwarded to the command.
//
// Threads: call it from a program with a single thread.
// Errors:  those of profile_running() and of starting the command.
Result<CommandProfile> profile_command(const std::vector<std::string>& words, Options options);

}  // namespace kymo::stacks
