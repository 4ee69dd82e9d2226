#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kymo/export.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo {

struct RecorderCounts;

struct ProfilerOptions {
  std::vector<std::string> metrics{};            // names of metrics; none: all
  std::shared_ptr<Sink> sink{};                  // where the rows go; required
  std::chrono::nanoseconds interval{1'000'000};  // one tick; at least 100 ns
  std::size_t slots = 16;                        // ring: slots, at least 2
  std::size_t rows = 1000;                       // ring: rows a slot, at least 1
  std::chrono::nanoseconds flush{
      1'000'000'000};  // a slot is handed over when this old, full or not
  Pace pace = Pace::thrifty;
  // The longest that the precise pace spins before a deadline, as a share of the interval: 0 to 1.
  // It spins what it has learned that this machine's wake-ups take and no more; ProfilerStats says
  // what was spun. At 1 kHz the default is 150 us.
  double max_spin_share = 0.15;
  // SCHED_FIFO priority of the collector's thread, 1 to 99; 0 leaves it to the fair scheduler. On
  // busy cores this is what keeps a collector on time: 1 is enough for one that sleeps, and should
  // not be given to one that spins (an interval below 50 us, or a large max_spin_share) unless a
  // CPU is set aside for it. Never inherited by children (SCHED_RESET_ON_FORK). It needs
  // CAP_SYS_NICE or a limit by `ulimit -r`; a refusal is a warning, not an error.
  int realtime_priority = 0;
  // A collector that uses more than this share of a CPU over a second gives its real-time priority
  // up for good, and warnings() says so. 1: it never does.
  double realtime_max_share = 1;
  // Nice value of the collector's thread where it has no real-time priority, -20 to 19; 0: the
  // process's. A refusal is a warning.
  int nice = 0;
  // The CPU that the collector is pinned to; -1 for any. A refusal is a warning.
  int cpu = -1;
  // The ring's memory as a file, so that its rows outlive a SIGKILL (`kymo recover`); it must not
  // exist yet, is allocated whole by start() and removed by a clean stop. Empty: private memory.
  std::string ring_file{};
  // What the metrics' names begin with on /metrics, such as "myapp_"; stands in the recording.
  // Empty, or letters, digits and '_' and no digit first.
  std::string prometheus_prefix{};
};

// Samples a registry's metrics at a fixed rate into a sink.
//
// A collector thread samples at deadlines start + k * interval into a ring of slots; a writer
// thread drains them to the sink. A tick is captured when its sample begins before the next
// deadline, else it is missed, counted and listed; nothing is shifted and nothing is lost in
// silence. The recording's clock starts before start() opens the sink, and ticks are due from when
// the collector begins, just before start() returns: the first row's time is some milliseconds.
//
// Threads:   start(), stop() and stats() from any thread. The instrumented program is never made to
//            wait; memory is fixed from start() on.
// Ownership: refers to `registry`, which must outlive it; shares the sink. The destructor stops.
// Fork:      in a child without exec the profiler is off (running() is false, stop() does nothing)
//            and the parent's is unharmed.
// Errors:    options are checked by start(), before any thread runs; the message names the option,
//            its value and what is allowed.
class KYMO_API Profiler {
 public:
  Profiler(const Registry& registry, ProfilerOptions options);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Opens the sink and starts both threads. Errors: failed_precondition when it succeeded before
  // (make a new Profiler to record again), invalid_argument, and what the sink's open() returns;
  // after these it may be called again.
  Result<void> start();
  // Takes a last sample, flushes, joins both threads, closes the sink. Harmless when not running.
  // Call it, or the destructor, on every way out: libkymo hooks no signal and no exit().
  // Errors: the sink's; deadline_exceeded: a callback of a metric has not returned for five
  // seconds. Then recording has not stopped: call it again once the callback has returned. Until
  // then the destructor waits as long, and leaves the recorder's memory to its thread.
  Result<void> stop();
  [[nodiscard]] bool running() const;

  // What has been done so far; exact once stopped.
  [[nodiscard]] ProfilerStats stats() const;
  // The newest rows, oldest first, one after the other: of each its time, then a word a column. At
  // most `most`, and what the ring holds; also those that no sink has seen yet. Empty when not
  // running. Disturbs nobody; a row that is overwritten meanwhile is left out with its slot.
  [[nodiscard]] std::vector<std::uint64_t> newest_rows(std::size_t most) const;
  // Nanoseconds since the start on the recording's clock; 0 before the start.
  [[nodiscard]] std::uint64_t now_ns() const;
  // What start() could not do as asked and went on without, a line each: a priority or a CPU that
  // the system refused, an interval that is shorter than a sample takes on this machine; and a
  // real-time priority that the collector has given up since.
  [[nodiscard]] std::vector<std::string> warnings() const;
  // Why the sink refused rows, when it began to the last time; empty: it never has, or nothing
  // runs. TroubleWatch (kymo/trouble.h) makes messages of it.
  [[nodiscard]] std::string last_sink_error() const;
  // Bytes that the ring takes, known once started.
  [[nodiscard]] std::size_t ring_bytes() const;

 private:
  friend KYMO_API Result<void> register_profiler_metrics(Registry& registry,
                                                         const Profiler& profiler);
  friend class CurrentProfiler;
  [[nodiscard]] const RecorderCounts& counts() const;
  struct State;
  std::unique_ptr<State> state_;
};

// Registers the recorder's own counts (`profiler_rows`, `profiler_missed_ticks`, ...:
// docs/metrics.md) so that it records itself. Call before `profiler` starts; `profiler` must
// outlive `registry`'s use.
KYMO_API Result<void> register_profiler_metrics(Registry& registry, const Profiler& profiler);

}  // namespace kymo
