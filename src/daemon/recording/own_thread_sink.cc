#include "daemon/recording/own_thread_sink.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/patience.h"

namespace kymo::daemon {
namespace {

constexpr std::chrono::milliseconds kAnswersWithin{100};
constexpr std::chrono::milliseconds kEndsWithin{3000};
constexpr std::size_t kMaxWords = (std::size_t{8} << 20) / sizeof(std::uint64_t);
// From here on, gaps of one cause are merged.
constexpr std::size_t kManyCalls = 1000;

// A call of the other sink that is still to be made.
struct Call {
  std::vector<std::uint64_t> words;  // rows; empty: no write
  std::size_t stride = 0;
  std::optional<Gap> gap{};
  std::optional<ProfilerStats> stats{};  // progress, or the end of the recording
  bool last = false;                     // the thread ends after it
  // Guarded by the mutex of the queue.
  bool left = false;  // its caller was told that it succeeds
  std::optional<Result<void>> result{};
};

}  // namespace

struct OwnThreadSink::State {
  explicit State(std::shared_ptr<Sink> to) : other(std::move(to)) {}

  const std::shared_ptr<Sink> other;
  std::uint64_t interval_ns = 0;
  std::thread thread;
  // What was refused after its write had returned. Only the thread uses it, and finish() after it.
  std::uint64_t lost_rows = 0;
  std::string first_loss;  // why

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by the mutex. The first call of the queue is the one that is being made.
  std::deque<std::shared_ptr<Call>> queue;
  std::size_t queued_words = 0;
  bool stalls = false;  // a write did not wait until its end
  bool ended = false;
  std::uint64_t bytes = 0;
  OutputPlace place;
  LostRows gone;  // what the other sink said

  void run();
  Result<void> make(const Call& call);
  [[nodiscard]] ProfilerStats with_losses(ProfilerStats stats) const;
  void note_loss(const Call& call, const Error& why);
  void add(std::shared_ptr<Call> call);
  Result<void> finish(const std::shared_ptr<Call>& call);
  [[nodiscard]] Result<void> outcome(Result<void> closed) const;
};

ProfilerStats OwnThreadSink::State::with_losses(ProfilerStats stats) const {
  stats.rows_written -= lost_rows;
  stats.missed_sink_error += lost_rows;
  return stats;
}

Result<void> OwnThreadSink::State::make(const Call& call) {
  if (call.gap) other->gap(*call.gap);
  if (!call.words.empty()) {
    return other->write({call.words.data(), call.words.size() / call.stride, call.stride});
  }
  if (!call.stats) return {};
  if (call.last) return other->close(with_losses(*call.stats));
  other->progress(with_losses(*call.stats));
  return {};
}

// Rows whose write has returned already were refused. Called with the mutex.
void OwnThreadSink::State::note_loss(const Call& call, const Error& why) {
  const std::size_t rows = call.words.size() / call.stride;
  const std::uint64_t last_ns = call.words[call.words.size() - call.stride];
  if (lost_rows == 0) first_loss = why.message;
  lost_rows += rows;
  auto gap = std::make_shared<Call>();
  gap->gap = Gap{call.words.front(), last_ns + interval_ns, rows, MissCause::sink_error};
  queue.push_front(std::move(gap));
}

void OwnThreadSink::State::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return !queue.empty(); });
    const std::shared_ptr<Call> call = queue.front();
    lock.unlock();
    Result<void> result = make(*call);
    const std::uint64_t bytes_now = other->bytes_written();
    OutputPlace place_now = other->output_place();
    // Only here, because it costs a system call. After close() nobody asks for it.
    std::optional<LostRows> lost_now;
    if (call->stats && !call->last) lost_now = other->lost_rows();
    lock.lock();
    if (lost_now) gone = *std::move(lost_now);
    bytes = bytes_now;
    place = std::move(place_now);
    queue.pop_front();
    queued_words -= call->words.size();
    if (!result && call->left && !call->words.empty()) note_loss(*call, result.error());
    call->result = std::move(result);
    if (queue.empty()) stalls = false;
    if (call->last) break;
    changed.notify_all();
  }
  ended = true;
  changed.notify_all();
}

void OwnThreadSink::State::add(std::shared_ptr<Call> call) {
  queued_words += call->words.size();
  queue.push_back(std::move(call));
  changed.notify_all();
}

// The result of the other sink's close(), and what it took away of the rows that were accepted.
Result<void> OwnThreadSink::State::outcome(Result<void> closed) const {
  if (lost_rows == 0) return closed;
  const std::string lost = std::to_string(lost_rows) + (lost_rows == 1 ? " row" : " rows") +
                           " that waited for the disk of " + place.path + " could not be kept (" +
                           first_loss + ')';
  if (closed) return Error{Code::data_loss, lost};
  Error error = closed.error();
  error.message += "; " + lost;
  return error;
}

// Makes the last call. If the disk does not answer, leaves the thread behind.
Result<void> OwnThreadSink::State::finish(const std::shared_ptr<Call>& call) {
  std::unique_lock lock(mutex);
  call->last = true;
  add(call);
  if (join_or_leave(
          thread, lock, changed, [this] { return ended; }, kEndsWithin)) {
    return outcome(*call->result);
  }
  return Error{Code::deadline_exceeded,
               "the disk of " + place.path + " does not answer: its last rows may be missing"};
}

OwnThreadSink::OwnThreadSink(std::shared_ptr<Sink> other)
    : state_(std::make_shared<State>(std::move(other))) {
  state_->place = state_->other->output_place();
}

OwnThreadSink::~OwnThreadSink() {
  if (state_->thread.joinable()) {  // it was not closed
    static_cast<void>(state_->finish(std::make_shared<Call>()));
  }
}

Result<void> OwnThreadSink::open(const RecordingInfo& info) {
  State& s = *state_;
  if (Result<void> opened = s.other->open(info); !opened) return opened;
  s.interval_ns = static_cast<std::uint64_t>(info.interval.count());
  s.place = s.other->output_place();
  s.bytes = s.other->bytes_written();
  try {
    s.thread = std::thread([state = state_] { state->run(); });
  } catch (const std::system_error& error) {
    return Error{Code::resource_exhausted,
                 std::string("cannot start a thread for the recording: ") + error.what()};
  }
  return {};
}

Result<void> OwnThreadSink::write(const Rows& rows) {
  State& s = *state_;
  const std::size_t words = rows.count * rows.stride;
  if (words == 0) return {};
  auto call = std::make_shared<Call>();
  call->words.assign(rows.data, rows.data + words);
  call->stride = rows.stride;
  std::unique_lock lock(s.mutex);
  if (s.queued_words + words > kMaxWords) {
    return Error{Code::resource_exhausted, "the disk of " + s.place.path + " does not answer"};
  }
  s.add(call);
  if (!s.stalls) {
    s.changed.wait_for(lock, kAnswersWithin, [&] { return call->result.has_value(); });
  }
  if (call->result) return *call->result;
  call->left = true;
  s.stalls = true;
  return {};
}

void OwnThreadSink::gap(const Gap& gap) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (s.queue.size() > kManyCalls) {
    std::optional<Gap>& newest = s.queue.back()->gap;
    if (newest && newest->cause == gap.cause) {
      newest->end_ns = gap.end_ns;
      newest->ticks += gap.ticks;
      return;
    }
  }
  auto call = std::make_shared<Call>();
  call->gap = gap;
  s.add(std::move(call));
}

void OwnThreadSink::progress(const ProfilerStats& stats) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (!s.queue.empty()) return;  // the next one is newer
  auto call = std::make_shared<Call>();
  call->stats = stats;
  s.add(std::move(call));
}

Result<void> OwnThreadSink::close(const ProfilerStats& stats) {
  auto call = std::make_shared<Call>();
  call->stats = stats;
  return state_->finish(call);
}

std::uint64_t OwnThreadSink::bytes_written() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes;
}

OutputPlace OwnThreadSink::output_place() const {
  const std::lock_guard lock(state_->mutex);
  return state_->place;
}

LostRows OwnThreadSink::lost_rows() const {
  const std::lock_guard lock(state_->mutex);
  return state_->gone;
}

}  // namespace kymo::daemon
