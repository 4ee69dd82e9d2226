#include "recorder/sampling/history/cut_sink.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/human.h"
#include "base/quiet_thread.h"
#include "recorder/sampling/files/sink_in_use.h"
#include "recorder/sampling/history/cut_files.h"
#include "recorder/sampling/history/row_history.h"

namespace kymo {
namespace {

// At a high rate, the rows of `keep` could take gigabytes. Beyond this size, less time is kept.
constexpr std::size_t kMaxBytes = 64U << 20U;
constexpr std::size_t kMaxGaps = 4096;
constexpr std::size_t kMaxOutcomes = 1000;
constexpr std::uint64_t kOpenEnd = UINT64_MAX;
// The most that a cut copies at once while it holds the lock, which takes some tens of
// microseconds.
constexpr std::size_t kBatchWords = 65536;
// A row reaches the sink at the latest this long after its sample: the profiler's flush, and a
// margin.
constexpr std::uint64_t kLatestRowNs = 3'000'000'000;

struct Cut {
  std::string path;
  CutOptions options;
  RecordingInfo stream;
  std::uint64_t base_ns = 0;  // time 0 of the recording on the stream's clock; a tick's deadline
  ProfilerStats stats_at_begin;
  std::thread thread;  // reads the members above; only this thread touches the files
  // Guarded by CutSink::State::mutex:
  bool created = false;
  bool describe = false;  // write the metadata
  std::uint64_t until_ns = kOpenEnd;
  bool has_first_row = false;  // a row at or after base_ns has come
  std::uint64_t next_row = 0;  // number of the next row to write, in the stream
  std::uint64_t next_ns = 0;   // deadline of the first tick that the thread has not taken
  std::vector<Gap> gaps;       // this and the next two: not taken by the thread yet
  std::vector<Mark> marks;
  std::vector<nlohmann::json> about;
};

// The part of `gap` inside [from, until) as a gap of its own; nothing if there is none. `ticks` is
// exact unless gaps were merged.
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

// Adds a gap, but keeps the list bounded while a disk does not answer: beyond kMaxGaps, the newest
// gap of the same cause grows instead.
void add_bounded(std::vector<Gap>& gaps, const Gap& gap) {
  if (gaps.size() < kMaxGaps) {
    gaps.push_back(gap);
    return;
  }
  const auto same = std::find_if(gaps.rbegin(), gaps.rend(),
                                 [&](const Gap& waiting) { return waiting.cause == gap.cause; });
  if (same == gaps.rend()) {
    gaps.push_back(gap);
    return;
  }
  same->end_ns = std::max(same->end_ns, gap.end_ns);
  same->ticks += gap.ticks;
}

}  // namespace

struct CutSink::State {
  explicit State(std::chrono::nanoseconds own_keep) : keep(own_keep) {}

  const std::chrono::nanoseconds keep;
  mutable std::mutex mutex;      // guards all below; no thread waits for a file while it holds it
  std::condition_variable work;  // a cut's thread may have something to do
  std::condition_variable progress;  // a cut was created, or is over
  RecordingInfo info;
  std::uint64_t interval_ns = 0;
  std::optional<RowHistory> rows;
  std::deque<Gap> gaps;  // newest last
  ProfilerStats latest;
  std::uint64_t passed_ns = 0;  // the time that the stream has reached
  bool closed = false;
  std::map<CutId, Cut> cuts;  // the thread of a cut removes it
  std::vector<std::thread> ended_threads;
  struct Outcome {
    Result<void> kept;
    std::optional<Error> loss;  // rows that are missing
  };
  std::map<CutId, Outcome> outcomes;
  CutId next_id = 1;

  // The body of a cut's thread.
  void keep_files(CutId id, Cut& cut, nlohmann::json about);
  Outcome write_files(Cut& cut, nlohmann::json about);
  void find_first_row(Cut& cut) const;
  void take_rows(Cut& cut, CutBatch& batch, std::uint64_t end_row);
  std::optional<CutBatch> take(Cut& cut);
  void set_outcome(CutId id, Outcome outcome);
  void finish_all();
  void join_ended();
};

void CutSink::State::keep_files(CutId id, Cut& cut, nlohmann::json about) {
  ::pthread_setname_np(::pthread_self(), "kymo-cut");
  Outcome outcome;
  try {
    outcome = write_files(cut, std::move(about));
  } catch (const std::exception& error) {
    outcome.kept = Error{Code::internal, "cannot record to " + cut.path + ": " + error.what(), 0};
  }
  // Only this thread changes `created`, so it needs no lock here.
  if (cut.created && cut.options.over) {
    cut.options.over(outcome.loss ? Result<void>(*outcome.loss) : outcome.kept);
  }
  set_outcome(id, std::move(outcome));
}

CutSink::State::Outcome CutSink::State::write_files(Cut& cut, nlohmann::json about) {
  Result<void> created = cut.options.prepare ? cut.options.prepare() : Result<void>();
  std::optional<CutFiles> files;
  if (created) {
    Result<CutFiles> made = CutFiles::create(cut.path, cut.stream, cut.base_ns, std::move(about),
                                             cut.options.own_columns);
    if (made) {
      files.emplace(*std::move(made));
    } else {
      created = made.error();
    }
  }
  if (cut.options.created) {
    cut.options.created(created);
  }
  if (!created) {
    return {created, std::nullopt};
  }
  std::unique_lock lock(mutex);
  cut.created = true;
  progress.notify_all();
  for (;;) {
    std::optional<CutBatch> batch;
    work.wait(lock, [&] {
      batch = take(cut);
      return batch.has_value();
    });
    lock.unlock();
    const bool last = batch->last;
    Result<void> written = files->write(*std::move(batch));
    if (last) {
      return {std::move(written), files->loss()};
    }
    lock.lock();
  }
}

// Rows arrive late: a row that arrives after the cut has begun may be older than the cut.
void CutSink::State::find_first_row(Cut& cut) const {
  if (!cut.has_first_row) {
    cut.next_row = rows->first_at(cut.base_ns);
    cut.has_first_row = cut.next_row < rows->end();
  }
}

// Returns what the cut's thread can write now, or nothing if there is nothing yet.
std::optional<CutBatch> CutSink::State::take(Cut& cut) {
  CutBatch batch;
  const std::uint64_t end_row = std::max(cut.next_row, rows->first_at(cut.until_ns));
  take_rows(cut, batch, end_row);
  const bool all_taken = cut.next_row >= end_row;
  batch.last = all_taken && (closed || passed_ns >= cut.until_ns);
  if (batch.words.empty() && !cut.describe && !batch.last) {
    return std::nullopt;
  }
  batch.end_ns = batch.last ? std::min(cut.until_ns, closed ? latest.duration_ns : cut.until_ns)
                            : latest.duration_ns;
  // A gap whose end the stream has not reached may still be cut short by the recording's end.
  const auto ready = [&](const Gap& gap) { return batch.last || gap.end_ns <= passed_ns; };
  const std::uint64_t until_ns = batch.last ? batch.end_ns : cut.until_ns;
  for (const Gap& gap : cut.gaps) {
    if (const auto part = clip(gap, cut.base_ns, until_ns, interval_ns); part && ready(gap)) {
      batch.gaps.push_back(*part);
    }
  }
  std::erase_if(cut.gaps, ready);
  batch.marks.swap(cut.marks);
  batch.about.swap(cut.about);
  batch.describe = std::exchange(cut.describe, false);
  // The timing errors of its own rows, and how long their samples took, are not known: most were
  // taken before it began.
  batch.timing.backoffs = latest.backoffs - cut.stats_at_begin.backoffs;
  batch.timing.backoff_ns = latest.backoff_ns - cut.stats_at_begin.backoff_ns;
  return batch;
}

void CutSink::State::take_rows(Cut& cut, CutBatch& batch, std::uint64_t end_row) {
  if (const std::uint64_t oldest = rows->oldest(); oldest > cut.next_row) {
    // The rows before `oldest` were overwritten before the disk took the rows in front of them.
    const std::uint64_t there_ns = rows->time_of(oldest) / interval_ns * interval_ns;
    add_bounded(cut.gaps, {cut.next_ns, there_ns, oldest - cut.next_row, MissCause::sink_error});
    cut.next_row = oldest;
    cut.next_ns = there_ns;
  }
  const std::size_t stride = info.columns.size() + 1;
  const std::uint64_t most = std::max<std::uint64_t>(1, kBatchWords / stride);
  const std::uint64_t end = std::min(end_row, cut.next_row + most);
  while (cut.next_row < end) {
    const Rows part = rows->contiguous(cut.next_row, end);
    batch.words.insert(batch.words.end(), part.data, part.data + part.count * stride);
    cut.next_row += part.count;
    cut.next_ns = (part.row(part.count - 1)[0] / interval_ns + 1) * interval_ns;
  }
}

void CutSink::State::set_outcome(CutId id, Outcome outcome) {
  const std::lock_guard lock(mutex);
  outcomes.insert_or_assign(id, std::move(outcome));
  while (outcomes.size() > kMaxOutcomes) {
    outcomes.erase(outcomes.begin());
  }
  const auto own = cuts.find(id);
  ended_threads.push_back(std::move(own->second.thread));
  cuts.erase(own);
  progress.notify_all();
}

// Joins the threads of cuts that are over. These threads end at once, so this does not block.
void CutSink::State::join_ended() {
  std::vector<std::thread> ended;
  {
    const std::lock_guard lock(mutex);
    ended.swap(ended_threads);
  }
  for (std::thread& thread : ended) {
    thread.join();
  }
}

void CutSink::State::finish_all() {
  {
    std::unique_lock lock(mutex);
    closed = true;
    work.notify_all();
    progress.wait(lock, [this] { return cuts.empty(); });
  }
  join_ended();
}

CutSink::CutSink(std::chrono::nanoseconds keep) : state_(std::make_unique<State>(keep)) {}

CutSink::~CutSink() {
  state_->finish_all();
}

Result<void> CutSink::open(const RecordingInfo& info) {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  if (s.rows) {
    return sink_in_use("cannot keep rows in memory");
  }
  s.info = info;
  s.interval_ns = static_cast<std::uint64_t>(info.interval.count());
  const std::size_t stride = info.columns.size() + 1;
  const auto wanted = static_cast<std::size_t>(s.keep / info.interval) + 1;
  const std::size_t affordable = kMaxBytes / (stride * sizeof(std::uint64_t));
  // One slot more than is kept, so that a slot that arrives never overwrites rows that kept()
  // promises.
  s.rows.emplace(std::max<std::size_t>(1, std::min(wanted, affordable)) + info.rows_per_slot,
                 stride);
  s.passed_ns = 0;
  s.closed = false;
  return {};
}

Result<CutSink::CutId> CutSink::begin(std::string path, std::uint64_t from_ns, nlohmann::json about,
                                      CutOptions options) {
  state_->join_ended();
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  if (!s.rows || s.closed) {
    return Error{Code::failed_precondition,
                 "cannot record to " + path + ": the recorder is not running", 0};
  }
  const CutId id = s.next_id;
  Cut& cut = s.cuts[id];
  cut.base_ns = (from_ns + s.interval_ns - 1) / s.interval_ns * s.interval_ns;
  cut.path = std::move(path);
  cut.options = std::move(options);
  cut.stream = s.info;
  cut.stats_at_begin = s.latest;
  s.find_first_row(cut);
  cut.next_ns = cut.base_ns;
  for (const Gap& gap : s.gaps) {
    if (gap.end_ns > cut.base_ns) {
      cut.gaps.push_back(gap);
    }
  }
  try {
    cut.thread =
        quiet_thread(&State::keep_files, state_.get(), id, std::ref(cut), std::move(about));
  } catch (const std::system_error& error) {
    Error no_thread{Code::resource_exhausted,
                    "cannot record to " + cut.path + ": no thread for it: " + error.what(),
                    error.code().value()};
    s.cuts.erase(id);
    return no_thread;
  }
  ++s.next_id;
  return id;
}

void CutSink::mark(CutId cut, std::string name, std::uint64_t at_ns) {
  const std::lock_guard lock(state_->mutex);
  if (const auto found = state_->cuts.find(cut); found != state_->cuts.end()) {
    found->second.marks.push_back({std::move(name), at_ns});
  }
}

void CutSink::end(CutId cut, std::uint64_t until_ns, nlohmann::json about) {
  const std::lock_guard lock(state_->mutex);
  if (const auto found = state_->cuts.find(cut); found != state_->cuts.end()) {
    Cut& open = found->second;
    // Rows that the thread has already taken stay in the file.
    open.until_ns = std::max(until_ns, open.next_ns);
    open.about.push_back(std::move(about));
    state_->work.notify_all();
  }
}

Result<void> CutSink::wait_created(CutId cut, std::chrono::milliseconds timeout) {
  std::unique_lock lock(state_->mutex);
  const State& s = *state_;
  const auto is_created = [&] {
    const auto found = s.cuts.find(cut);
    return found == s.cuts.end() || found->second.created;
  };
  if (!state_->progress.wait_for(lock, timeout, is_created)) {
    return Error{Code::deadline_exceeded,
                 "the recording was not begun within " + human::duration(timeout) +
                     ": its disk does not answer",
                 0};
  }
  const auto over = s.outcomes.find(cut);
  return over == s.outcomes.end() ? Result<void>() : over->second.kept;
}

Result<void> CutSink::wait(CutId cut, std::chrono::milliseconds timeout) {
  std::unique_lock lock(state_->mutex);
  const auto is_over = [&] { return state_->outcomes.contains(cut); };
  if (!state_->progress.wait_for(lock, timeout, is_over)) {
    return Error{Code::deadline_exceeded,
                 "the recording was not finished within " + human::duration(timeout), 0};
  }
  return state_->outcomes.at(cut).kept;
}

std::optional<Error> CutSink::failure_of(CutId cut) const {
  const std::lock_guard lock(state_->mutex);
  const auto over = state_->outcomes.find(cut);
  return over == state_->outcomes.end() || over->second.kept
             ? std::nullopt
             : std::optional(over->second.kept.error());
}

std::optional<Error> CutSink::loss_of(CutId cut) const {
  const std::lock_guard lock(state_->mutex);
  const auto over = state_->outcomes.find(cut);
  return over == state_->outcomes.end() ? std::nullopt : over->second.loss;
}

std::chrono::nanoseconds CutSink::kept() const {
  const std::lock_guard lock(state_->mutex);
  const State& s = *state_;
  if (!s.rows) {
    return std::chrono::nanoseconds(0);
  }
  return s.info.interval * static_cast<std::int64_t>(s.rows->capacity() - s.info.rows_per_slot);
}

std::vector<std::uint64_t> CutSink::copy_rows(std::uint64_t from_ns, std::size_t most) const {
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

std::vector<Gap> CutSink::gaps_after(std::uint64_t from_ns) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<Gap> after;
  for (const Gap& gap : state_->gaps) {
    if (gap.end_ns > from_ns) {
      after.push_back(gap);
    }
  }
  return after;
}

std::optional<RecordingInfo> CutSink::info() const {
  const std::lock_guard lock(state_->mutex);
  return state_->rows ? std::optional(state_->info) : std::nullopt;
}

Result<void> CutSink::write(const Rows& rows) {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  // Append pieces that fit into the memory.
  for (std::size_t done = 0; done < rows.count;) {
    const std::size_t count = std::min(rows.count - done, s.rows->capacity());
    s.rows->append({rows.data + done * rows.stride, count, rows.stride});
    done += count;
    for (auto& [id, cut] : s.cuts) {
      s.find_first_row(cut);
    }
  }
  if (rows.count > 0) {
    s.passed_ns = std::max(s.passed_ns, rows.row(rows.count - 1)[0]);
    s.work.notify_all();
  }
  return {};
}

void CutSink::gap(const Gap& gap) {
  const std::lock_guard lock(state_->mutex);
  state_->gaps.push_back(gap);
  if (state_->gaps.size() > kMaxGaps) {
    state_->gaps.pop_front();
  }
  for (auto& [id, cut] : state_->cuts) {
    add_bounded(cut.gaps, gap);
  }
}

void CutSink::progress(const ProfilerStats& stats) {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  s.latest = stats;
  // If no row comes (the ring is full, or the machine stalls), a cut must end all the same. The
  // slack leaves enough time for a slot that is still on its way.
  const std::uint64_t slack_ns = kLatestRowNs + s.interval_ns;
  s.passed_ns = std::max(s.passed_ns, stats.duration_ns - std::min(stats.duration_ns, slack_ns));
  for (auto& [id, cut] : s.cuts) {
    cut.describe = true;
  }
  s.work.notify_all();
}

Result<void> CutSink::close(const ProfilerStats& stats) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->latest = stats;
  }
  state_->finish_all();
  const std::lock_guard lock(state_->mutex);
  state_->rows.reset();
  return {};
}

}  // namespace kymo
