#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kymo/export.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo {

struct RecorderCounts;
struct Trouble;

// Writes the trouble to standard error, as a line that begins with "kymo: ".
KYMO_API void tell_on_stderr(const Trouble& trouble);

// The callback that runs while a profiler waits for it.
struct RunningCallback {
  std::string metric;                 // empty: none
  std::chrono::nanoseconds waited{};  // since the tick whose sample needs it was due
  bool stopping = false;              // stop() was called: no tick is due any more
};

struct ProfilerOptions {
  std::vector<std::string> metrics{};            // names of metrics; empty: all
  std::shared_ptr<Sink> sink{};                  // where the rows go; required
  std::chrono::nanoseconds interval{1'000'000};  // time between two ticks; at least 100 ns
  std::size_t slots = 16;                        // slots of the ring, at least 2
  std::size_t rows = 1000;                       // rows of a slot, at least 1
  std::chrono::nanoseconds flush{
      1'000'000'000};  // a slot is handed over at this age, even if it is not full
  Pace pace = Pace::thrifty;
  // The longest time that the precise pace spins before a deadline, as a share of the interval: 0
  // to 1. The precise pace learns how long wake-ups take on this machine and spins no longer than
  // that. ProfilerStats::spin_ns says how long it spun. At 1 kHz the default is 150 us.
  // An interval below 200 us would lose ticks with so little: there the limit is at least 60 us or
  // half the interval, the shorter of the two, and below 50 us the collector spins all the time,
  // in any pace. warnings() says so if the limit is above this share.
  double max_spin_share = 0.15;
  // SCHED_FIFO priority of the collector's thread, 1 to 99. 0: the fair scheduler.
  // A real-time priority keeps the collector on time on busy CPUs. 1 is enough for a collector that
  // sleeps. Do not give one to a collector that spins (an interval below 50 us, or a large
  // max_spin_share), unless a CPU is set aside for it. Children never inherit it
  // (SCHED_RESET_ON_FORK).
  // It needs CAP_SYS_NICE or a limit by `ulimit -r`. A refusal is a warning, not an error.
  int realtime_priority = 0;
  // If the collector uses more than this share of a CPU over a second, it gives up its real-time
  // priority for good, and warnings() says so. 1: never.
  double realtime_max_share = 1;
  // Nice value of the collector's thread if it has no real-time priority, -20 to 19. 0: that of the
  // process. A refusal is a warning.
  int nice = 0;
  // The CPU to which the collector is pinned; -1: any. A refusal is a warning.
  int cpu = -1;
  // A file for the memory of the ring, so that its rows survive SIGKILL: kymo::recover_ring() and
  // `kymo recover` put them into the recording. start() allocates it whole, and a clean stop
  // removes it. A ring that a killed program has left there is renamed to FILE.left-<n>, and
  // warnings() says so; any other file of this name is refused. Empty: private memory.
  std::string ring_file{};
  // The prefix of the metrics' names on /metrics, such as "myapp_". It is written to the recording.
  // Empty, or at most 64 letters, digits and '_', with no digit first.
  std::string prometheus_prefix{};
  // Told of what goes wrong while the profiler records, and of a stop() of the destructor that
  // fails: what TroubleWatch (kymo/trouble.h) says. A thread of the profiler looks once a second
  // and at the stop. It tells each kind of trouble at most once a minute. The function must return,
  // because stop() waits for it, and must not destroy the profiler. nullptr: nobody is told, and
  // there is no such thread.
  std::function<void(const Trouble&)> on_trouble = tell_on_stderr;
  // start() refuses a larger ring: slots * rows * (columns + 1) * 8 bytes. Profiler::ring_bytes()
  // says how large it will be.
  std::size_t max_ring_bytes = std::size_t{256} << 20U;
};

// Samples the metrics of a registry at a fixed rate into a sink.
//
// A collector thread takes samples at the deadlines start + k * interval and puts them into a ring
// of slots. A writer thread passes the slots to the sink. A tick is captured if its sample begins
// before the next deadline. Otherwise it is missed: it is counted and listed as a gap. No tick is
// shifted, and no row is lost without being counted.
// The recording's clock starts before start() opens the sink. The first row is taken when the
// collector begins, just before start() returns: what is counted from then on is in the recording.
// Its time is therefore some milliseconds, and the first tick on a deadline is the next one.
//
// Threads:   start(), stop() and stats() from any thread. The instrumented program never has to
//            wait.
// Memory:    fixed from start() on.
// Ownership: has a copy of `registry`, so a callback that owns its profiler is never destroyed.
//            Shares the sink, which no other profiler may use meanwhile. The destructor stops.
// Fork:      in a child without exec, also after daemon(3), the profiler is off: running() is
//            false, start() and stop() fail. The profiler of the parent is not affected.
// Errors:    start() checks the options before any thread runs. The message names the option, its
//            value and what is allowed.
class KYMO_API Profiler {
 public:
  Profiler(const Registry& registry, ProfilerOptions options);
  // Stops, and tells ProfilerOptions::on_trouble what stop() would return, such as data_loss.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Measures how long a sample takes, opens the sink and starts both threads. To measure it, the
  // collector's thread takes up to 200 samples: for 2 ms, or five samples if that is longer, but
  // for at most 50 ms and one more. So start() waits for the first calls of the callbacks, which
  // run on another thread, and for the first row.
  // Errors: failed_precondition if start() succeeded before: make a new Profiler to record again.
  //         failed_precondition if another profiler uses the sink.
  //         deadline_exceeded, naming the metric, if a callback has not returned for five seconds.
  //         After any other error you may call it again: invalid_argument for an option; not_found
  //         for an unknown metric; failed_precondition if the registry has no metrics; those of the
  //         ring file and of the sink's open().
  Result<void> start();
  // Takes a last sample, flushes, joins both threads and closes the sink. Does nothing if the
  // profiler is not running. Call stop() or the destructor on every way out of the program: libkymo
  // hooks no signal and no exit().
  // Errors: those of the sink's close(). data_loss if ticks could not be kept: the sink refused
  //         their rows, or was too slow. The message says how many of how many, and why. The
  //         recording is complete apart from these ticks. (Ticks that the collector was late for,
  //         or at which the program stood still, are no error: see stats().) Also data_loss if the
  //         callback of a recorded metric has thrown, because its columns kept their last values, 0 if
  //         there were none.
  //         deadline_exceeded, naming the metric, if a callback has not returned for
  //         five seconds. No tick is due any more, but the files are not finished: call stop()
  //         again when the callback has returned. The destructor waits just as long, and then
  //         leaves the recorder's memory to its thread.
  //         failed_precondition in a child of fork() whose parent had the profiler running, and at once
  //         if a callback of a metric, the sink or FlightRecorderOptions::fired of this profiler calls
  //         it (also start()): it would wait for that call. The destructor then leaves the profiler running.
  Result<void> stop();
  [[nodiscard]] bool running() const;
  // Whether this is a child of fork(), and the profiler runs in the parent, or ran when it forked.
  [[nodiscard]] bool runs_in_parent() const;

  // What the profiler has done so far; exact after stop().
  [[nodiscard]] ProfilerStats stats() const;
  // The newest rows, oldest first, one after the other. A row is its time, then one word for each
  // column. At most `most` rows, and at most what the ring holds, including rows that no sink has
  // seen yet. Empty if the profiler is not running.
  // It does not disturb the recording. If a slot is reused meanwhile, its rows are left out.
  [[nodiscard]] std::vector<std::uint64_t> newest_rows(std::size_t most) const;
  // Nanoseconds since the start on the recording's clock; 0 before the start.
  [[nodiscard]] std::uint64_t now_ns() const;
  // One line for each thing that start() could not do as asked: a priority or a CPU that the system
  // refused, an interval that is shorter than a sample takes on this machine, or a ring that had to
  // be moved aside. The recording runs without it. Also contains a real-time priority that the
  // collector has given up since, each recorded metric whose callback has thrown or has returned
  // values that are probably negative, unrecorded_metrics(), what lost_rows() tells, and how many
  // scopes had no room in the trees of add_scopes().
  [[nodiscard]] std::vector<std::string> warnings() const;
  // Why the sink refused rows the last time that it began to refuse them, or what somebody else has
  // taken away of the rows that it had kept, whichever was noticed last. Empty if there was
  // neither, or if the profiler is not running. TroubleWatch (kymo/trouble.h) makes messages of it.
  [[nodiscard]] std::string last_sink_error() const;
  // The rows that somebody else has taken away since the start, such as with the file of a .tsv
  // that was removed. They count as written in stats(). Of a FlightRecorder: the snapshots that
  // could not be written whole, with 0 rows. Looked at every half second while recording.
  [[nodiscard]] LostRows lost_rows() const;
  // What callbacks of recorded metrics have thrown since start(), and which returned values that
  // are probably negative. As Registry::callback_errors(), but of this recording.
  [[nodiscard]] std::vector<CallbackError> callback_errors() const;
  // The callback that the collector waits for at this moment, also if a scrape runs it. If it
  // stays the same while ProfilerStats::rows_captured stays the same, it does not return:
  // TroubleWatch tells of it.
  [[nodiscard]] RunningCallback running_callback() const;
  // The names of the metrics that were registered after start(), which the recording does not have.
  // Empty if ProfilerOptions::metrics chose the metrics.
  [[nodiscard]] std::vector<std::string> unrecorded_metrics() const;
  // The size of the ring in bytes. Before start(), the size that start() would take; 0 if it would
  // fail.
  [[nodiscard]] std::size_t ring_bytes() const;
  // Puts the scopes of a tree into the recording, beside its rows: `kymo report` and `kymo export`
  // show them (docs/timing.md). End the tree before. From any thread. The recording keeps the
  // newest trees whole, up to kMaxScopes scopes together, and counts the others. A FlightRecorder
  // writes those of its time.
  // Cost: as ScopeTree::records(), and one lock. The metadata, which the writer replaces each second,
  // grow by 140 bytes for each kept scope: with 4096 of them, this takes 2 % of a CPU.
  static constexpr std::size_t kMaxScopes = ScopeTree::kDefaultLimit;
  void add_scopes(const ScopeTree& tree);

 private:
  friend KYMO_API Result<void> register_profiler_metrics(Registry& registry,
                                                         const Profiler& profiler);
  friend class CurrentProfiler;
  [[nodiscard]] const RecorderCounts& counts() const;
  struct State;
  std::unique_ptr<State> state_;
};

// Registers the recorder's own counts (`profiler_rows`, `profiler_missed_ticks`, ...:
// docs/metrics.md), so that the recording contains them. Call it before `profiler` starts. The
// counts stay in `registry` after `profiler` is destroyed.
KYMO_API Result<void> register_profiler_metrics(Registry& registry, const Profiler& profiler);

}  // namespace kymo
