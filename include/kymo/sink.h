#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kymo/export.h"
#include "kymo/metric.h"
#include "kymo/result.h"
#include "kymo/scope.h"

namespace kymo {

// Why a tick left no row.
enum class MissCause : std::uint8_t {
  late,        // the next tick was due before the sample began
  ring_full,   // no free slot: the writer was behind
  sink_error,  // the sample was taken, but the sink did not keep its row
  frozen,      // the whole program was checkpointed or stopped, or its machine was paused
};

// Adjacent missed ticks of one cause. Times are on the recording's clock (nanoseconds since its
// start).
struct Gap {
  std::uint64_t start_ns = 0;  // deadline of the first missed tick
  std::uint64_t end_ns = 0;    // deadline of the tick after the last missed one
  std::uint64_t ticks = 0;     // exact; fewer than fit into the time if gaps were merged
  MissCause cause = MissCause::late;
};

// Rows in the layout of the ring. A row has `stride` words: its time, then one word for each
// column.
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
  // Sleeps, so samples are late by the kernel's wake-up latency, some tens of microseconds. If the
  // interval is below 200 us, it wakes early and spins for at most 60 us and at most half an
  // interval. If the interval is below 50 us, it spins all the time.
  thrifty,
  precise,  // wakes early by the latency that it has learned, and spins the rest
};

// The description of a recording. It does not change from start to end.
struct RecordingInfo {
  std::vector<Column> columns;
  std::chrono::nanoseconds interval{0};
  std::int64_t start_unix_ns = 0;        // wall clock at time 0 of the recording
  std::uint64_t start_monotonic_ns = 0;  // CLOCK_MONOTONIC at the same moment
  std::size_t slots = 0;
  std::size_t rows_per_slot = 0;
  Pace pace = Pace::thrifty;
  double max_spin_share = 0;      // share of the interval, in the precise pace
  std::string prometheus_prefix;  // prefix of the metrics' names on /metrics
  // What callbacks of the recorded metrics have thrown since the start. Any thread may call it,
  // also after the recording. Empty: nobody knows.
  std::function<std::vector<CallbackError>()> callback_errors{};
  std::string ring_file{};  // ProfilerOptions::ring_file
  // The kept trees after the first `after` that were given. Any thread may call it, also after the
  // recording. Empty: there are none.
  std::function<KeptScopes(std::uint64_t after)> scopes{};
};

// What a recorder has done so far. At the end, rows_written + missed() = ticks_due always holds.
struct ProfilerStats {
  // The deadlines that have passed since the collector began, just before start() returned. The
  // last sample at the stop counts as one more tick. The time before, in which files are opened and
  // threads are made, has no ticks.
  std::uint64_t ticks_due = 0;
  std::uint64_t rows_captured = 0;  // samples taken
  std::uint64_t rows_on_time = 0;   // samples begun within half an interval of their deadline
  std::uint64_t rows_written = 0;   // rows that the sink accepted
  std::uint64_t missed_late = 0;
  std::uint64_t missed_ring_full = 0;
  std::uint64_t missed_sink_error = 0;
  std::uint64_t missed_frozen = 0;
  // Why ticks of missed_late were late, as far as the recorder knows it (docs/faults.md). The rest
  // is unexplained.
  std::uint64_t late_waited = 0;      // the collector waited for a CPU
  std::uint64_t late_sample = 0;      // the sample before took too long
  std::uint64_t late_stolen = 0;      // the hypervisor gave the CPU to other machines
  std::uint64_t late_page_fault = 0;  // the collector waited for memory to be read from a disk
  std::uint64_t backoffs = 0;         // times the collector slept because the ring was full
  std::uint64_t backoff_ns = 0;       // total time of these sleeps
  std::uint64_t timing_error_ns = 0;  // sum over captured ticks of sample's begin - deadline
  std::uint64_t timing_error_max_ns = 0;
  std::uint64_t timing_error_p50_ns = 0;  // percentiles, accurate to 6 %
  std::uint64_t timing_error_p99_ns = 0;
  std::uint64_t timing_error_p999_ns = 0;
  // Time spun before deadlines. This is the CPU time that precision costs, or an interval below 200
  // us. 0 if the collector only sleeps.
  std::uint64_t spin_ns = 0;
  // For a collector that sleeps and spins: 127 of 128 wake-ups came within this time after the time
  // for which they were requested. A margin of this length would keep the deadlines, if
  // max_spin_share allowed it.
  std::uint64_t wakeup_latency_ns = 0;
  std::uint64_t sample_window_ns = 0;      // sum over samples of the time from first to last read
  std::uint64_t sample_window_max_ns = 0;  // longest time from a sample's first to its last read
  std::uint64_t bytes_written = 0;
  // The time until now, or until the stop, on the recording's clock, which starts before the files
  // are opened.
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

// Rows that a sink had accepted, and that something else has taken away since.
struct LostRows {
  std::uint64_t rows = 0;
  std::string text;  // what happened, in one line for a person; empty: nothing is lost
};

// The end of a sink's output: the number of its file (rotation numbers files from 0), and the bytes
// in this file.
struct OutputPlace {
  std::string path;  // path of file 0; empty: no file
  std::uint64_t file = 0;
  std::uint64_t bytes = 0;
};

// The destination of a profiler's rows. Implement it to send rows elsewhere.
//
// Threads: open() on the thread that calls Profiler::start(), close() on the thread that calls
//          Profiler::stop(), everything else on the writer's thread. start() also calls
//          output_place(), before and after open(). One call at a time. A call that blocks delays
//          the writer, never the collector or the program.
// Use:     by one profiler at a time. Profiler::start() refuses a sink that another profiler uses,
//          and open() of libkymo's own sinks refuses it while they are open.
// Errors:  write() is all or nothing. If it fails, none of its rows count as written, and no part
//          of them may stay in the output. The profiler counts them, lists the gap, and goes on
//          with the next rows. So it does if write() throws; else stop() returns what was thrown.
class KYMO_API Sink {
 public:
  Sink() = default;
  virtual ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  virtual Result<void> open(const RecordingInfo& info) = 0;
  // How often the sink wants rows, so that it can end something at that time; 0: at any time. Asked
  // before open(). The profiler hands rows over at this time or a whole fraction of it, if `flush`
  // is longer.
  [[nodiscard]] virtual std::chrono::nanoseconds wants_rows_every() const { return {}; }
  virtual Result<void> write(const Rows& rows) = 0;
  // Called when a run of missed ticks has ended. Adjacent missed ticks of one cause are one run.
  virtual void gap(const Gap& gap) { static_cast<void>(gap); }
  // Called at least once a second while recording, also when no row arrived.
  virtual void progress(const ProfilerStats& stats) { static_cast<void>(stats); }
  // The last call. Profiler::stop() returns its error. Return an error, too, if something else has
  // taken away what write() had accepted.
  virtual Result<void> close(const ProfilerStats& stats) = 0;
  [[nodiscard]] virtual std::uint64_t bytes_written() const { return 0; }
  // The place that the output has reached, for a ring file that outlives its recorder. A sink that
  // writes no file need not override this. Recovery then finds only the rows that are still in the
  // ring.
  [[nodiscard]] virtual OutputPlace output_place() const { return {}; }
  // What something else has taken away of the rows that write() had accepted, such as a program
  // that removed the file. Called at least once a second while recording, so that the program is
  // told before the end: Profiler::last_sink_error(), TroubleWatch.
  [[nodiscard]] virtual LostRows lost_rows() const { return {}; }

 private:
  friend class Profiler;
  std::atomic<bool> in_use_{false};  // by a profiler
};

// How a recording is split and limited. 0: no split, no limit.
struct TsvOptions {
  static constexpr std::chrono::nanoseconds kMinRotateAfter{100'000'000};
  // When a part has reached this size, the next part follows: NAME.tsv, NAME.1.tsv, ... Each part
  // is a complete recording that names its neighbours. All parts have one clock.
  std::uint64_t rotate_bytes = 0;
  // When the rows of a part span this time, the next part follows. At least kMinRotateAfter.
  std::chrono::nanoseconds rotate_after{0};
  // The most that all parts may take together, with the files beside them. The oldest parts are
  // removed first, but never the part that is being written. It must be at least twice
  // rotate_bytes. If rotate_bytes is 0, an eighth of keep_bytes is used for it.
  std::uint64_t keep_bytes = 0;
};

// Makes a sink that writes plain TSV to PATH. It also writes two files beside PATH, with the
// endings `.meta.json` and `.gaps.tsv` instead of `.tsv` (docs/formats.md). `path` must not
// exist yet; its folder must. If PATH ends in `.tsv.zst`, the rows are compressed, if this build
// has zstd.
// If somebody removes the file while it is recorded, or cuts it off, the recording goes on in the
// next part, Profiler::last_sink_error() says so within a second, and close() fails with data_loss.
// If somebody moves the file, the rows follow it.
KYMO_API std::shared_ptr<Sink> make_tsv_sink(std::string path, TsvOptions options = {});

}  // namespace kymo
