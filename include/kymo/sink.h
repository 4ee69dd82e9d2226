#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kymo/export.h"
#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo {

// Why a tick left no row.
enum class MissCause : std::uint8_t {
  late,        // the collector ran only after the tick's interval was over
  ring_full,   // no free slot: the writer was behind
  sink_error,  // the row was taken, and the sink could not keep it
  frozen,      // the whole program stood still: checkpointed, stopped, or its machine paused
};

// A run of missed ticks, times on the recording's clock (nanoseconds since its start).
struct Gap {
  std::uint64_t start_ns = 0;  // deadline of the first missed tick
  std::uint64_t end_ns = 0;    // deadline of the tick after the last missed one
  std::uint64_t ticks = 0;     // exact; fewer than the interval holds where gaps had to be merged
  MissCause cause = MissCause::late;
};

// Rows as they lie in the ring: `stride` words a row, the row's time first, then one word a column.
struct Rows {
  const std::uint64_t* data = nullptr;
  std::size_t count = 0;
  std::size_t stride = 0;

  [[nodiscard]] std::span<const std::uint64_t> row(std::size_t i) const {
    return {data + i * stride, stride};
  }
};

// How the collector waits for a deadline.
enum class Pace : std::uint8_t {
  // Sleeps; late by the kernel's wake-up latency, some tens of microseconds. Below 200 us it wakes
  // early, too, and spins at most 60 us and half an interval; below 50 us it spins all the time.
  thrifty,
  precise,  // wakes early by the latency it has learned and spins the rest
};

// What a recording is of; fixed from start to end.
struct RecordingInfo {
  std::vector<Column> columns;
  std::chrono::nanoseconds interval{0};
  std::int64_t start_unix_ns = 0;        // the wall clock when the recording's clock stood at 0
  std::uint64_t start_monotonic_ns = 0;  // CLOCK_MONOTONIC at the same moment
  std::size_t slots = 0;
  std::size_t rows_per_slot = 0;
  Pace pace = Pace::thrifty;
  double max_spin_share = 0;      // of the interval, in precise pace
  std::string prometheus_prefix;  // what the metrics' names begin with on /metrics
};

// What a recorder has done so far. At the end: rows_written + missed() = ticks_due, always.
struct ProfilerStats {
  // Deadlines that have passed since the collector began, just before start() returned, and the
  // last sample at stop. The time before, when files are opened and threads made, has no ticks.
  std::uint64_t ticks_due = 0;
  std::uint64_t rows_captured = 0;  // samples taken
  std::uint64_t rows_on_time = 0;   // samples begun within half an interval of their deadline
  std::uint64_t rows_written = 0;   // rows that the sink accepted
  std::uint64_t missed_late = 0;
  std::uint64_t missed_ring_full = 0;
  std::uint64_t missed_sink_error = 0;
  std::uint64_t missed_frozen = 0;
  std::uint64_t backoffs = 0;         // times the collector slept because the ring was full
  std::uint64_t backoff_ns = 0;       // how long it slept so
  std::uint64_t timing_error_ns = 0;  // summed over captured ticks: sample's begin - deadline
  std::uint64_t timing_error_max_ns = 0;
  std::uint64_t timing_error_p50_ns = 0;  // percentiles, right within 6 %
  std::uint64_t timing_error_p99_ns = 0;
  std::uint64_t timing_error_p999_ns = 0;
  // Time spun before deadlines, which is the price of precision, or of an interval below 200 us, in
  // CPU time; 0 where the collector only sleeps.
  std::uint64_t spin_ns = 0;
  // Of a collector that sleeps and spins: the time after which 127 of 128 wake-ups had come,
  // counted from when they were asked for. A margin that long, were it allowed (max_spin_share),
  // would keep the deadlines.
  std::uint64_t wakeup_latency_ns = 0;
  std::uint64_t sample_window_ns = 0;      // summed over samples: from the first to the last read
  std::uint64_t sample_window_max_ns = 0;  // longest time from a sample's first to its last read
  std::uint64_t bytes_written = 0;
  // On the recording's clock, which starts before the files are opened: until now, or the stop.
  std::uint64_t duration_ns = 0;

  [[nodiscard]] std::uint64_t missed() const {
    return missed_late + missed_ring_full + missed_sink_error + missed_frozen;
  }
  [[nodiscard]] std::uint64_t& missed_by(MissCause cause) {
    switch (cause) {
      case MissCause::late:
        return missed_late;
      case MissCause::ring_full:
        return missed_ring_full;
      case MissCause::sink_error:
        return missed_sink_error;
      case MissCause::frozen:
        return missed_frozen;
    }
    return missed_late;
  }
};

// The end of a sink's output: in which of its files (rotation numbers them from 0), and how far in
// it.
struct OutputPlace {
  std::string path;  // of file 0; empty: no file
  std::uint64_t file = 0;
  std::uint64_t bytes = 0;
};

// Where a profiler's rows go. Implement it to send them elsewhere.
//
// Threads: open() on the thread that calls Profiler::start(), everything else on the writer's
// thread,
//          one call at a time. Blocking delays the writer, never the collector or the program.
// Errors:  write() is all or nothing: on an error none of its rows count as written, and what was
// left
//          of them must not show. The profiler counts them, lists the gap, and goes on with the
//          next.
class KYMO_API Sink {
 public:
  Sink() = default;
  virtual ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  virtual Result<void> open(const RecordingInfo& info) = 0;
  virtual Result<void> write(const Rows& rows) = 0;
  // A run of missed ticks has ended (adjacent ones of one cause arrive as one).
  virtual void gap(const Gap& gap) { static_cast<void>(gap); }
  // Called at least once a second while recording, also when no row arrived.
  virtual void progress(const ProfilerStats& stats) { static_cast<void>(stats); }
  // The last call. An error here is what Profiler::stop() returns.
  virtual Result<void> close(const ProfilerStats& stats) = 0;
  [[nodiscard]] virtual std::uint64_t bytes_written() const { return 0; }
  // Where the rows go, for a ring that outlives its recorder. Those of a sink that writes no file
  // may stay as they are: recovery then yields what the ring still holds.
  [[nodiscard]] virtual OutputPlace output_place() const { return {}; }
};

// How a recording is divided and bounded; 0: not.
struct TsvOptions {
  // A part that has reached this size is followed by the next: NAME.tsv, NAME.1.tsv, ... Each is a
  // whole recording that names its neighbours, all on one clock.
  std::uint64_t rotate_bytes = 0;
  // So is a part whose rows span this long.
  std::chrono::nanoseconds rotate_after{0};
  // All parts together: the oldest are removed first, never the one being written. At least twice
  // rotate_bytes; where that is 0, an eighth of this is taken for it.
  std::uint64_t keep_bytes = 0;
};

// A sink that writes PATH as plain TSV, with PATH less its ending `.tsv` plus `.meta.json` and
// `.gaps.tsv` beside it (docs/tsv-format.md). `path` must not exist yet; its folder must. A PATH
// that ends in `.tsv.zst` is compressed, where this build has zstd.
KYMO_API std::shared_ptr<Sink> make_tsv_sink(std::string path, TsvOptions options = {});

// gVisor's profiling file, for its tools (docs/annotated-format.md).
enum class AnnotatedFormat : std::uint8_t {
  plain,  // one file that describes itself
  lossy,  // the same with a prefix and a checksum a line: may go through a log that loses lines
};

// A sink that writes PATH, which must not exist yet, in gVisor's format; it has no room for the
// list of gaps. What a failed write left in a file is cut off again.
KYMO_API std::shared_ptr<Sink> make_annotated_sink(std::string path, AnnotatedFormat format);
// The same to a stream that stays the caller's and open, such as standard error.
KYMO_API std::shared_ptr<Sink> make_annotated_sink(int fd, AnnotatedFormat format);

}  // namespace kymo
