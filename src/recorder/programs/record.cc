#include "recorder/programs/record.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/file_limit.h"
#include "base/mappings.h"
#include "base/proc/process.h"
#include "base/reap.h"
#include "base/recording_name.h"
#include "kymo/registry.h"
#include "recorder/metrics/registry_access.h"
#include "recorder/programs/command.h"
#include "recorder/programs/mapped_counters.h"
#include "recorder/programs/signals.h"
#include "recorder/programs/tree_metrics.h"
#include "recorder/sampling/collect/run_ahead.h"

namespace kymo::record {
namespace {

ProfilerOptions profiler_options(const Options& options) {
  ProfilerOptions profiler;
  profiler.sink = make_tsv_sink(options.output);
  profiler.interval = options.interval;
  profiler.prometheus_prefix = "kymo_";
  run_ahead(&profiler, options.realtime);
  return profiler;
}

// The tree is read once per sample, but at most every 100 us, because reading /proc takes time.
std::chrono::nanoseconds poll_interval(const Options& options) {
  return std::max(options.interval, std::chrono::microseconds(100));
}

void add_end(const Profiler& profiler, const Result<void>& stopped, Outcome* outcome) {
  outcome->stats = profiler.stats();
  for (const std::string& warning : profiler.warnings()) {
    outcome->notes.push_back(warning);
  }
  if (!stopped) {
    outcome->notes.push_back(stopped.error().message);
  }
}

// Removes the recording of a command that could not be started.
void remove_recording(const std::string& output) {
  const std::string stem = recording_stem(output);
  for (const std::string& path : {output, stem + ".meta.json", stem + ".gaps.tsv"}) {
    std::remove(path.c_str());
  }
}

// Waits until the command has ended, but does not reap it, so that its totals can still be read.
// Meanwhile it forwards signals, and reaps the orphans that this process gets as the subreaper.
void wait_for_end(pid_t pid, const Signals& signals) {
  while (!has_ended(pid)) {
    siginfo_t child{};
    while (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 && child.si_pid != 0 &&
           child.si_pid != pid) {
      reap(child.si_pid);
      child = {};
    }
    const int signal = signals.take();
    if (signal == SIGTERM || signal == SIGHUP) {
      ::kill(pid, signal);
    }
  }
}

// Waits until the process ends, a signal arrives or the time is over.
void wait_for_process(int process, const Signals& signals,
                      std::optional<std::chrono::milliseconds> duration) {
  std::array<pollfd, 2> ready{pollfd{process, POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0}};
  const std::uint64_t end_ns =
      duration ? monotonic_ns() + static_cast<std::uint64_t>(duration->count()) * 1'000'000 : 0;
  int got = 0;
  do {
    int timeout = -1;
    if (duration) {
      const std::uint64_t now_ns = monotonic_ns();
      timeout = now_ns >= end_ns ? 0 : static_cast<int>((end_ns - now_ns + 999'999) / 1'000'000);
    }
    got = ::poll(ready.data(), ready.size(), timeout);
  } while (got < 0 && errno == EINTR);
}

// Adds the process's own counters. Returns null if it publishes none and no file was given.
Result<std::unique_ptr<probe::MappedCounters>> add_counters(Registry& registry,
                                                            const ProcessOptions& options,
                                                            std::vector<std::string>* notes) {
  std::optional<std::string> path = options.counters;
  if (path->empty()) {
    path = probe::find_counter_file(options.pid);
  }
  if (!path) {
    return std::unique_ptr<probe::MappedCounters>();
  }
  Result<std::unique_ptr<probe::MappedCounters>> counters =
      probe::MappedCounters::open(*path, options.pid);
  if (!counters) {
    return counters;
  }
  if ((*counters)->pid() != options.pid && !process_maps(options.pid, *path)) {
    return Error{Code::invalid_argument,
                 "the counters in " + *path + " are those of process " +
                     std::to_string((*counters)->pid()) + ", not of " + std::to_string(options.pid),
                 0};
  }
  Result<std::vector<probe::MappedMetric>> metrics = (*counters)->metrics();
  if (!metrics) {
    return metrics.error();
  }
  for (const probe::MappedMetric& metric : *metrics) {
    const auto read = [mapped = counters->get(), metric](std::span<std::uint64_t> out) {
      mapped->sum(metric, out.data());
    };
    if (Result<void> added = RegistryAccess::add_foreign(registry, metric.metric, read); !added) {
      notes->push_back("not recorded: " + added.error().message);
    }
  }
  if (const std::uint64_t unlisted = (*counters)->unlisted(); unlisted != 0) {
    notes->push_back("not recorded: " + std::to_string(unlisted) +
                     " metrics for which the counter file had no room");
  }
  return counters;
}

// Notes the metrics that were registered after the start, when the columns are fixed.
void note_new_metrics(const Registry& registry, const probe::MappedCounters& counters,
                      std::vector<std::string>* notes) {
  const Result<std::vector<probe::MappedMetric>> metrics = counters.metrics();
  if (!metrics) {
    return;
  }
  const std::vector<Column> columns = registry.columns();
  for (const probe::MappedMetric& metric : *metrics) {
    if (std::none_of(columns.begin(), columns.end(), [&](const Column& column) {
          return column.metric->name == metric.metric.name;
        })) {
      notes->push_back("not recorded: '" + metric.metric.name +
                       "', which was registered after the start");
    }
  }
}

}  // namespace

Result<Outcome> record_command(const std::vector<std::string>& words, const Options& options) {
  raise_file_limit();  // a process tree needs several for each process
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Result<Command> command = Command::prepare(words);
  if (!command) {
    return command.error();
  }
  const Signals signals({SIGCHLD, SIGTERM, SIGHUP});
  const TerminalSignalsIgnored ignored;
  Registry registry;
  Result<std::unique_ptr<TreeMetrics>> metrics =
      TreeMetrics::add(registry, command->pid(), ::getpid(), poll_interval(options));
  if (!metrics) {
    return metrics.error();
  }
  (*metrics)->start();
  Profiler profiler(registry, profiler_options(options));
  if (Result<void> started = profiler.start(); !started) {
    return started.error();
  }
  if (Result<void> begun = command->go(); !begun) {
    static_cast<void>(profiler.stop());
    remove_recording(options.output);
    return begun.error();
  }
  wait_for_end(command->pid(), signals);
  (*metrics)->finish();
  const Result<void> stopped = profiler.stop();
  Outcome outcome;
  outcome.exit_code = shell_exit_code(reap(command->pid()));
  add_end(profiler, stopped, &outcome);
  return outcome;
}

Result<Outcome> record_process(const ProcessOptions& options) {
  raise_file_limit();  // a process tree needs several for each process
  const FileDescriptor process(probe::open_process(options.pid));
  if (!process.valid()) {
    return system_error("cannot record process " + std::to_string(options.pid), errno);
  }
  const Signals signals({SIGINT, SIGTERM, SIGHUP});
  Registry registry;
  Result<std::unique_ptr<TreeMetrics>> metrics =
      TreeMetrics::add(registry, options.pid, 0, poll_interval(options.recording));
  if (!metrics) {
    return metrics.error();
  }
  Outcome outcome;
  const Result<std::unique_ptr<probe::MappedCounters>> counters =
      add_counters(registry, options, &outcome.notes);
  if (!counters) {
    return counters.error();
  }
  if (options.more) {
    if (const Result<void> added = options.more(registry); !added) return added.error();
  }
  (*metrics)->start();
  Profiler profiler(registry, profiler_options(options.recording));
  if (Result<void> started = profiler.start(); !started) {
    return started.error();
  }
  wait_for_process(process.get(), signals, options.duration);
  (*metrics)->finish();
  const Result<void> stopped = profiler.stop();
  if (*counters != nullptr) {
    note_new_metrics(registry, **counters, &outcome.notes);
  }
  add_end(profiler, stopped, &outcome);
  return outcome;
}

}  // namespace kymo::record
