#include "sampling/history.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "sampling/recording_files.h"
#include "sampling/row_history.h"

namespace kymo {
namespace {

// At a high rate the rows of `keep` could be gigabytes; beyond this, less time is kept.
constexpr std::size_t kMaxBytes = 64U << 20U;
constexpr std::size_t kMaxGaps = 4096;
constexpr std::size_t kMaxOutcomes = 1000;
constexpr std::uint64_t kOpenEnd = UINT64_MAX;
// A row reaches the sink at the latest this long after it was taken: the profiler's flush, and a
// margin.
constexpr std::uint64_t kLatestRowNs = 3'000'000'000;

struct Cut {
  RecordingFiles files;
  std::uint64_t base_ns = 0;  // stream time of the recording's 0: a tick's deadline
  std::uint64_t until_ns = kOpenEnd;
  std::uint64_t next_row = 0;  // of the stream
  std::uint64_t rows = 0;
  ProfilerStats stats_at_begin;
};

// The part of `gap` inside [from, until) as a gap of its own; ticks are exact unless gaps were
// merged.
std::optional<Gap> clip(const Gap& gap, std::uint64_t from, std::uint64_t until,
                        std::uint64_t interval) {
  Gap part = gap;
  part.start_ns = std::max(gap.start_ns, from);
  part.end_ns = std::min(gap.end_ns, until);
  if (part.start_ns >= part.end_ns) {
    return std::nullopt;
  }
  part.ticks = std::min(gap.ticks, (part.end_ns - part.start_ns + interval - 1) / interval);
  return part;
}

}  // namespace

struct History::State {
  explicit State(std::chrono::nanoseconds own_keep) : keep(own_keep) {}

  const std::chrono::nanoseconds keep;
  std::mutex mutex;  // guards everything below
  std::condition_variable finished;
  RecordingInfo info;
  std::uint64_t interval_ns = 0;
  std::optional<RowHistory> rows;
  std::deque<Gap> gaps;  // newest last
  ProfilerStats latest;
  std::map<CutId, Cut> cuts;
  std::map<CutId, Result<void>> outcomes;
  CutId next_id = 1;

  void advance(CutId id, Cut& cut);
  void advance_all(std::uint64_t stream_ns);
  void finish(CutId id, Cut& cut, std::uint64_t end_ns);
  [[nodiscard]] ProfilerStats stats_of(Cut& cut, std::uint64_t end_ns);
  void give_up(CutId id, const Error& error);
  void settle(CutId id, Result<void> outcome);
};

// Writes what has come since the last time, as far as it belongs to the cut.
void History::State::advance(CutId id, Cut& cut) {
  cut.next_row = std::max(cut.next_row, rows->oldest());
  const std::uint64_t end = std::max(cut.next_row, rows->first_at(cut.until_ns));
  while (cut.next_row < end) {
    const Rows part = rows->contiguous(cut.next_row, end);
    if (Result<void> written = cut.files.append(part, cut.base_ns); !written) {
      give_up(id, written.error());
      return;
    }
    cut.next_row += part.count;
    cut.rows += part.count;
  }
}

void History::State::give_up(CutId id, const Error& error) {
  settle(id, error);
}

// Writes to every cut, and finishes those whose end the stream has passed.
void History::State::advance_all(std::uint64_t stream_ns) {
  for (auto& [id, cut] : cuts) {
    advance(id, cut);
    if (!outcomes.contains(id) && stream_ns >= cut.until_ns) {
      finish(id, cut, cut.until_ns);
    }
  }
  std::erase_if(cuts, [this](const auto& entry) { return outcomes.contains(entry.first); });
}

ProfilerStats History::State::stats_of(Cut& cut, std::uint64_t end_ns) {
  ProfilerStats stats;
  stats.duration_ns = end_ns - std::min(end_ns, cut.base_ns);
  stats.rows_captured = cut.rows;
  stats.rows_written = cut.rows;
  stats.bytes_written = cut.files.bytes();
  stats.timing_error_ns = latest.timing_error_ns - cut.stats_at_begin.timing_error_ns;
  stats.timing_error_max_ns = latest.timing_error_max_ns;
  stats.sample_window_max_ns = latest.sample_window_max_ns;
  stats.backoffs = latest.backoffs - cut.stats_at_begin.backoffs;
  stats.backoff_ns = latest.backoff_ns - cut.stats_at_begin.backoff_ns;
  for (const Gap& gap : gaps) {
    if (const std::optional<Gap> part = clip(gap, cut.base_ns, end_ns, interval_ns)) {
      stats.missed_by(part->cause) += part->ticks;
    }
  }
  stats.rows_captured += stats.missed_sink_error;
  stats.ticks_due = stats.rows_written + stats.missed();
  return stats;
}

void History::State::finish(CutId id, Cut& cut, std::uint64_t end_ns) {
  for (const Gap& gap : gaps) {
    if (const std::optional<Gap> part = clip(gap, cut.base_ns, end_ns, interval_ns)) {
      cut.files.add_gap(
          {part->start_ns - cut.base_ns, part->end_ns - cut.base_ns, part->ticks, part->cause});
    }
  }
  settle(id, cut.files.write_metadata(stats_of(cut, end_ns), "ended"));
}

void History::State::settle(CutId id, Result<void> outcome) {
  outcomes.insert_or_assign(id, std::move(outcome));
  while (outcomes.size() > kMaxOutcomes) {
    outcomes.erase(outcomes.begin());
  }
  finished.notify_all();
}

History::History(std::chrono::nanoseconds keep) : state_(std::make_unique<State>(keep)) {}
History::~History() = default;

Result<void> History::open(const RecordingInfo& info) {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  s.info = info;
  s.interval_ns = static_cast<std::uint64_t>(info.interval.count());
  const std::size_t stride = info.columns.size() + 1;
  const auto wanted = static_cast<std::size_t>(s.keep / info.interval) + 1;
  const std::size_t affordable = kMaxBytes / (stride * sizeof(std::uint64_t));
  // One slot more than is kept, so that a slot that arrives never pushes out what was promised.
  s.rows.emplace(std::max<std::size_t>(1, std::min(wanted, affordable)) + info.rows_per_slot,
                 stride);
  return {};
}

Result<History::CutId> History::begin(std::string path, std::uint64_t from_ns,
                                      nlohmann::json about) {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  if (!s.rows) {
    return Error{Code::failed_precondition,
                 "cannot record to " + path + ": the recorder is not running", 0};
  }
  const std::uint64_t base_ns = (from_ns + s.interval_ns - 1) / s.interval_ns * s.interval_ns;
  RecordingInfo info = s.info;
  info.start_unix_ns += static_cast<std::int64_t>(base_ns);
  info.start_monotonic_ns += base_ns;
  Result<RecordingFiles> files = RecordingFiles::create(path, info, std::move(about));
  if (!files) {
    return files.error();
  }
  const CutId id = s.next_id++;
  Cut cut{*std::move(files), base_ns, kOpenEnd, s.rows->first_at(base_ns), 0, s.latest};
  s.cuts.emplace(id, std::move(cut));
  return id;
}

void History::mark(CutId cut, std::string name, std::uint64_t at_ns) {
  const std::lock_guard lock(state_->mutex);
  if (const auto found = state_->cuts.find(cut); found != state_->cuts.end()) {
    const std::uint64_t base_ns = found->second.base_ns;
    found->second.files.add_mark({std::move(name), at_ns - std::min(at_ns, base_ns)});
  }
}

void History::end(CutId cut, std::uint64_t until_ns, nlohmann::json about) {
  const std::lock_guard lock(state_->mutex);
  if (const auto found = state_->cuts.find(cut); found != state_->cuts.end()) {
    Cut& open = found->second;
    // Rows that are in the file already stay in it.
    const std::uint64_t written_ns =
        open.rows == 0 ? open.base_ns : state_->rows->time_of(open.next_row - 1) + 1;
    open.until_ns = std::max(until_ns, written_ns);
    open.files.merge_about(about);
  }
}

Result<void> History::wait(CutId cut, std::chrono::milliseconds timeout) {
  std::unique_lock lock(state_->mutex);
  const auto is_over = [&] { return state_->outcomes.contains(cut); };
  if (!state_->finished.wait_for(lock, timeout, is_over)) {
    return Error{Code::deadline_exceeded,
                 "the recording was not finished within " + std::to_string(timeout.count()) + " ms",
                 0};
  }
  return state_->outcomes.at(cut);
}

std::chrono::nanoseconds History::kept() const {
  const std::lock_guard lock(state_->mutex);
  const State& s = *state_;
  if (!s.rows) {
    return std::chrono::nanoseconds(0);
  }
  return s.info.interval * static_cast<std::int64_t>(s.rows->capacity() - s.info.rows_per_slot);
}

std::vector<std::uint64_t> History::copy_rows(std::uint64_t from_ns, std::size_t most) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::uint64_t> words;
  if (!state_->rows) {
    return words;
  }
  const RowHistory& rows = *state_->rows;
  std::uint64_t next = rows.first_at(from_ns);
  const std::uint64_t end = std::min<std::uint64_t>(rows.end(), next + most);
  while (next < end) {
    const Rows part = rows.contiguous(next, end);
    words.insert(words.end(), part.data, part.data + part.count * part.stride);
    next += part.count;
  }
  return words;
}

std::vector<Gap> History::gaps_after(std::uint64_t from_ns) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<Gap> after;
  for (const Gap& gap : state_->gaps) {
    if (gap.end_ns > from_ns) {
      after.push_back(gap);
    }
  }
  return after;
}

std::optional<RecordingInfo> History::info() const {
  const std::lock_guard lock(state_->mutex);
  return state_->rows ? std::optional(state_->info) : std::nullopt;
}

Result<void> History::write(const Rows& rows) {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  // In pieces of a slot at most, so that each cut has read what the next piece pushes out.
  for (std::size_t done = 0; done < rows.count;) {
    const std::size_t count = std::min(rows.count - done, s.info.rows_per_slot);
    s.rows->append({rows.data + done * rows.stride, count, rows.stride});
    done += count;
    s.advance_all(s.rows->time_of(s.rows->end() - 1));
  }
  return {};
}

void History::gap(const Gap& gap) {
  const std::lock_guard lock(state_->mutex);
  state_->gaps.push_back(gap);
  if (state_->gaps.size() > kMaxGaps) {
    state_->gaps.pop_front();
  }
}

void History::progress(const ProfilerStats& stats) {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  s.latest = stats;
  // Where no row comes (the ring is full, the machine stalls) a cut ends all the same, late enough
  // for a slot on its way to have come.
  const std::uint64_t slack_ns = kLatestRowNs + s.interval_ns;
  s.advance_all(stats.duration_ns - std::min(stats.duration_ns, slack_ns));
  for (auto& [id, cut] : s.cuts) {
    static_cast<void>(cut.files.write_metadata(s.stats_of(cut, stats.duration_ns), "running"));
  }
}

Result<void> History::close(const ProfilerStats& stats) {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  s.latest = stats;
  for (auto& [id, cut] : s.cuts) {
    s.advance(id, cut);
    if (!s.outcomes.contains(id)) {
      s.finish(id, cut, std::min(cut.until_ns, stats.duration_ns));
    }
  }
  s.cuts.clear();
  s.rows.reset();
  return {};
}

}  // namespace kymo
