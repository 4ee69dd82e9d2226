#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kymo/profiler.h"
#include "kymo/result.h"

namespace kymo::record {

struct Options {
  std::string output;  // the recording, ending in .tsv; must not exist yet
  std::chrono::microseconds interval{1000};
  bool realtime = true;  // a real-time priority for the collector, where it only sleeps
};

// What was recorded, and how it ended.
struct Outcome {
  int exit_code = 0;  // of the command; 128 + N where signal N ended it
  ProfilerStats stats;
  std::vector<std::string> notes;  // what the recording lacks, a sentence each
};

// Runs a command and records what the kernel knows of its process tree, from before its first
// instruction until it ends. SIGINT and SIGQUIT are left to the command, which gets them from the
// terminal as well; SIGTERM and SIGHUP are passed on to it.
//
// Threads: from a program that has one thread; it makes this process the tree's subreaper.
// Errors:  of the options and of starting the command; no recording is left then.
Result<Outcome> record_command(const std::vector<std::string>& words, const Options& options);

struct ProcessOptions {
  Options recording;
  pid_t pid = 0;
  std::string
      counters;  // its counter file; empty: found by the process's mappings, where it has one
  std::optional<std::chrono::milliseconds> duration;  // none: until it ends or SIGINT or SIGTERM
};

// Records a running process from without, also while it is stopped or frozen: what the kernel knows
// of its tree, and its counters where it has published them (kymo/counter_file.h).
//
// Errors: not_found, permission_denied, and those of the counter file.
Result<Outcome> record_process(const ProcessOptions& options);

}  // namespace kymo::record
