#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/result.h"

namespace kymo::record {

struct Options {
  std::string output;  // the recording, ending in .tsv; must not exist yet
  std::chrono::microseconds interval{1000};
  bool realtime = true;  // gives the collector a real-time priority if it only sleeps
};

// The result of a recording.
struct Outcome {
  int exit_code = 0;  // of the command; 128 + N if signal N ended it
  ProfilerStats stats;
  std::vector<std::string> notes;  // a sentence for everything that the recording lacks
};

// Runs a command and records what the kernel knows about its process tree, from before its first
// instruction until it ends. SIGINT and SIGQUIT are ignored, because the command gets them from the
// terminal, too. SIGTERM and SIGHUP are forwarded to the command.
//
// Threads: call it from a program with a single thread. It makes this process the subreaper of the
//          tree.
// Errors:  those of the options and of starting the command. Then no recording is left.
Result<Outcome> record_command(const std::vector<std::string>& words, const Options& options);

struct ProcessOptions {
  Options recording;
  pid_t pid = 0;
  std::string counters;  // its counter file; empty: search in the process's mappings
  // The longest time to record. The recording also ends with the process, and on SIGINT, SIGTERM or
  // SIGHUP.
  std::optional<std::chrono::milliseconds> duration;
  // Registers more columns, before the recording begins.
  std::function<Result<void>(Registry& registry)> more{};
};

// Records a running process from outside, also while it is stopped or frozen: what the kernel knows
// about its tree, and its counters if it publishes them (kymo/counter_file.h).
//
// Errors: not_found, permission_denied, and those of the counter file.
Result<Outcome> record_process(const ProcessOptions& options);

}  // namespace kymo::record
