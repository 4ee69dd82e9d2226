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

// How the collector waits for a deadline.
enum class Pace : std::uint8_t {
  thrifty,  // sleeps; late by the kernel's wake-up latency, some tens of microseconds
  precise,  // wakes early by the latency it has learned and spins the rest
};

struct ProfilerOptions {
  std::vector<std::string> metrics{};            // names of metrics; none: all
  std::shared_ptr<Sink> sink{};                  // where the rows go; required
  std::chrono::nanoseconds interval{1'000'000};  // one tick; at least 100 ns
  std::size_t slots = 16;                        // ring: slots, at least 2
  std::size_t rows = 1000;                       // ring: rows a slot, at least 1
  std::chrono::nanoseconds flush{
      1'000'000'000};  // a slot is handed over when this old, full or not
  Pace pace = Pace::thrifty;
  // SCHED_FIFO priority of the collector, 1 to 99; 0 leaves it to the fair scheduler. On busy cores
  // it is what keeps a fast collector on time. A refusal is a warning, not an error.
  int realtime_priority = 0;
  // The CPU that the collector is pinned to; -1 for any. A refusal is a warning.
  int cpu = -1;
  // The ring's memory as a file, so that its rows outlive a SIGKILL (`kymo recover`); it must not
  // exist yet, is allocated whole by start() and removed by a clean stop. Empty: private memory.
  std::string ring_file{};
};

// Samples a registry's metrics at a fixed rate into a sink.
//
// A collector thread samples at deadlines start + k * interval into a ring of slots; a writer
// thread drains them to the sink. A tick is captured when its sample begins before the next
// deadline, else it is missed, counted and listed; nothing is shifted and nothing is lost in
// silence.
//
// Threads:   start(), stop() and stats() from any thread. The instrumented program is never made to
//            wait; memory is fixed from start() on.
// Ownership: refers to `registry`, which must outlive it; shares the sink. The destructor stops.
// Fork:      in a child without exec the profiler is off (running() is false, stop() does nothing)
// and
//            the parent's is unharmed.
// Errors:    options are checked by start(), before any thread runs; the message names the option,
// its
//            value and what is allowed.
class KYMO_API Profiler {
 public:
  Profiler(const Registry& registry, ProfilerOptions options);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Opens the sink and starts both threads. Errors: failed_precondition when already started once
  // (make a new Profiler to record again), invalid_argument, and what the sink's open() returns.
  Result<void> start();
  // Takes a last sample, flushes, joins both threads, closes the sink. Harmless when not running.
  // Errors: the sink's.
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
  // the system refused, an interval that is shorter than a sample takes on this machine.
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
