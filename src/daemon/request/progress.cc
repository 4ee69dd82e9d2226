#include "daemon/request/progress.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/own_thread.h"
#include "base/rate.h"

namespace kymo::daemon {
namespace {

// The end is estimated only after this part (one tenth) of the bytes is done.
constexpr std::uint64_t kTenth = 10;

// Updates one request's part of a sum: adds the difference between `now` and `counted`.
void move_sum(std::atomic<std::uint64_t>& sum, std::uint64_t& counted, std::uint64_t now) {
  sum.fetch_add(now - counted, std::memory_order_relaxed);  // wraps if it shrinks, still correct
  counted = now;
}

}  // namespace

RequestProgress::RequestProgress(v1::Progress::Kind kind, std::string id, ProgressSums& sums)
    : id_(std::move(id)), sums_(sums) {
  facts_.set_request_id(id_);
  facts_.set_kind(kind);
  facts_.set_state(v1::Progress::RUNNING);
  facts_.set_started_unix_ns(began_unix_ns_);
  note_phase();
}

void RequestProgress::count_into(std::shared_ptr<OwnColumns> own) {
  const std::lock_guard lock(mutex_);
  own_ = std::move(own);
}

void RequestProgress::set_target(std::int32_t pid, std::string_view job) {
  const std::lock_guard lock(mutex_);
  facts_.set_pid(pid);
  facts_.set_job(std::string(job));
}

void RequestProgress::set_container(std::string id, std::string name) {
  const std::lock_guard lock(mutex_);
  container_id_ = std::move(id);
  container_name_ = std::move(name);
}

bool RequestProgress::is_of(const std::string& target) const {
  if (target.empty()) return false;
  const std::lock_guard lock(mutex_);
  return target == facts_.job() || target == container_id_ || target == container_name_ ||
         (facts_.pid() != 0 && target == std::to_string(facts_.pid()));
}

void RequestProgress::set_directory(std::string_view directory) {
  const std::lock_guard lock(mutex_);
  facts_.set_directory(std::string(directory));
}

void RequestProgress::set_forecast(std::string_view text) {
  const std::lock_guard lock(mutex_);
  facts_.set_forecast(std::string(text));
}

void RequestProgress::notified(std::string_view notification) {
  const std::lock_guard lock(mutex_);
  facts_.set_notification(std::string(notification));
  answered_ = false;
  note_phase();
}

void RequestProgress::answered() {
  const std::lock_guard lock(mutex_);
  answered_ = true;
  working_.clear();
  note_phase();
}

void RequestProgress::working(std::string_view what) {
  const std::lock_guard lock(mutex_);
  working_ = what;
  note_phase();
}

void RequestProgress::finishing() {
  const std::lock_guard lock(mutex_);
  finishing_ = true;
  note_phase();
}

void RequestProgress::expect(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  facts_.set_bytes_total(bytes);
  add_up();
}

void RequestProgress::moved(std::uint64_t bytes, std::uint64_t page_bytes,
                            v1::Progress::Source source) {
  const std::lock_guard lock(mutex_);
  if (bytes < facts_.bytes_done()) return;
  facts_.set_bytes_done(bytes);
  facts_.set_bytes_source(source);
  page_bytes_ = std::max(page_bytes_, page_bytes);
  rate_.note(monotonic_ns(), bytes);
  note_phase();
  add_up();
}

void RequestProgress::stored(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  facts_.set_stored_bytes(std::max(bytes, facts_.stored_bytes()));
}

void RequestProgress::end(const Result<void>& outcome) {
  const std::lock_guard lock(mutex_);
  ended_ns_ = monotonic_ns();
  const bool cancelled = !outcome && outcome.error().code == Code::cancelled;
  facts_.set_state(outcome     ? v1::Progress::SUCCEEDED
                   : cancelled ? v1::Progress::CANCELLED
                               : v1::Progress::FAILED);
  if (outcome) {
    facts_.set_bytes_total(facts_.bytes_done());
  } else {
    facts_.set_error(outcome.error().message);
  }
  note_phase();
  phases_.push_back({"ended", ended_ns_});
  add_up();
}

void RequestProgress::add_up() {
  static const auto kPageBytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const bool running = ended_ns_ == 0;
  const std::uint64_t done = facts_.bytes_done();
  const std::uint64_t remaining = facts_.bytes_total() > done ? facts_.bytes_total() - done : 0;
  facts_.set_pages_done(page_bytes_ / kPageBytes);
  move_sum(sums_.bytes_done, counted_.done, running ? done : 0);
  move_sum(sums_.bytes_remaining, counted_.remaining, running ? remaining : 0);
  move_sum(sums_.pages_done, counted_.pages, running ? facts_.pages_done() : 0);
  if (own_ != nullptr) {
    Metrics::progressed(counted_.done, counted_.remaining, counted_.pages, *own_);
  }
}

// The phase, from CRIU's last notification and from whether a memory page was seen.
// docs/jobs.md lists the names.
std::string_view RequestProgress::phase() const {
  if (finishing_ || ended_ns_ != 0) return "finish";
  if (!working_.empty()) return working_;
  const std::string& last = facts_.notification();
  if (facts_.kind() == v1::Progress::RESTORE) {
    if (last.empty()) return "prepare";
    if (last == "post-restore" || last == "pre-resume" || last == "post-resume" ||
        last == "network-unlock") {
      return "resume";
    }
    return page_bytes_ > 0 ? "memory" : "processes";
  }
  if (last.empty() || last == "pre-stream") return "prepare";
  // Until kymod has answered, not all images are written.
  if ((last == "post-dump" && answered_) || last == "network-unlock" || last == "pre-resume" ||
      last == "post-resume") {
    return "unfreeze";
  }
  if (page_bytes_ > 0) return "memory";
  return facts_.bytes_done() > 0 ? "collect" : "freeze";  // the first images come after the freeze
}

void RequestProgress::note_phase() {
  const std::string_view now = phase();
  if (!phases_.empty() && phases_.back().phase == now) return;
  phases_.push_back({std::string(now), phases_.empty() ? began_ns_ : monotonic_ns()});
}

std::vector<RequestProgress::PhaseBegin> RequestProgress::phases() const {
  const std::lock_guard lock(mutex_);
  return phases_;
}

void RequestProgress::estimate(v1::Progress& out, std::uint64_t now_ns) const {
  const std::uint64_t done = out.bytes_done();
  if (out.has_bytes_total()) {
    // The expected total was too low.
    if (done > out.bytes_total()) out.set_bytes_total(done);
    out.set_bytes_remaining(out.bytes_total() - done);
  }
  if (out.state() != v1::Progress::RUNNING) {
    out.set_bytes_per_second(
        static_cast<std::uint64_t>(rate_per_second(static_cast<double>(done), out.elapsed_ns())));
    return;
  }
  out.set_bytes_per_second(rate_.per_second(now_ns, done));
  // How long the work takes that moves no bytes is not known.
  if (out.bytes_remaining() == 0 || out.bytes_per_second() == 0 || !working_.empty() ||
      done < out.bytes_total() / kTenth) {
    return;
  }
  const double seconds =
      static_cast<double>(out.bytes_remaining()) / static_cast<double>(out.bytes_per_second());
  out.set_remaining_ns(static_cast<std::uint64_t>(seconds * 1e9));
  out.set_estimated_end_unix_ns(began_unix_ns_ +
                                static_cast<std::int64_t>(out.elapsed_ns() + out.remaining_ns()));
}

v1::Progress RequestProgress::view(std::uint64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  v1::Progress out = facts_;
  const std::uint64_t until = ended_ns_ != 0 ? ended_ns_ : now_ns;
  out.set_elapsed_ns(until > began_ns_ ? until - began_ns_ : 0);
  out.set_phase(std::string(phase()));
  estimate(out, now_ns);
  return out;
}

bool RequestProgress::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_ns_ != 0;
}

bool RequestProgress::matches(const v1::WatchRequest& request) const {
  const std::lock_guard lock(mutex_);
  switch (request.target_case()) {
    case v1::WatchRequest::kPid:
      return facts_.pid() == request.pid();
    case v1::WatchRequest::kJob:
      return facts_.job() == request.job();
    case v1::WatchRequest::kRequestId:
      return id_ == request.request_id();
    case v1::WatchRequest::TARGET_NOT_SET:
      break;
  }
  return true;
}

Result<std::shared_ptr<RequestProgress>> ProgressBoard::begin(v1::Progress::Kind kind,
                                                              std::string id) {
  if (id.size() > kMaxId) {
    return Error{Code::invalid_argument,
                 "request_id: longer than " + std::to_string(kMaxId) + " characters"};
  }
  const std::lock_guard lock(mutex_);
  if (id.empty()) id = "r" + std::to_string(++begun_) + "-" + std::to_string(unix_ns());
  for (const auto& other : running_) {
    if (other->id() == id) {
      return Error{Code::already_exists,
                   "request_id " + id + ": a request with this id is running: use another id"};
    }
  }
  running_.push_back(std::make_shared<RequestProgress>(kind, std::move(id), sums_));
  ++changes_;
  changed_.notify_all();
  return running_.back();
}

void ProgressBoard::end(const std::shared_ptr<RequestProgress>& request,
                        const Result<void>& outcome) {
  const std::lock_guard lock(mutex_);
  if (std::find(running_.begin(), running_.end(), request) == running_.end()) return;
  request->end(outcome);
  std::erase(running_, request);
  ended_.push_back(request);
  ++ended_count_;
  if (ended_.size() > kEndedKept) ended_.pop_front();
  ++changes_;
  changed_.notify_all();
}

Result<void> ProgressBoard::run_thread(std::function<void()> work) {
  std::unique_lock lock(mutex_);
  ++threads_;
  Result<void> begun = on_own_thread([this, work = std::move(work)]() mutable {
    work();
    work = nullptr;
    const std::lock_guard locked(mutex_);
    --threads_;
    changed_.notify_all();  // under the lock: this object may be gone right after it
  });
  if (!begun) --threads_;
  return begun;
}

bool ProgressBoard::wait_for_threads(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return threads_ == 0; });
}

std::uint64_t ProgressBoard::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_count_;
}

std::vector<std::shared_ptr<RequestProgress>> ProgressBoard::running_of(
    const std::string& target) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<RequestProgress>> found;
  for (const auto& one : running_) {
    if (one->id() == target) return {one};
    if (one->is_of(target)) found.push_back(one);
  }
  return found;
}

std::vector<std::shared_ptr<RequestProgress>> ProgressBoard::matching(
    const v1::WatchRequest& request, std::uint64_t ended_before) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<RequestProgress>> found;
  const auto keep = [&](const std::shared_ptr<RequestProgress>& one) {
    if (one->matches(request)) found.push_back(one);
  };
  const std::uint64_t since = std::min<std::uint64_t>(ended_count_ - ended_before, ended_.size());
  std::for_each(ended_.end() - static_cast<std::ptrdiff_t>(since), ended_.end(), keep);
  std::for_each(running_.begin(), running_.end(), keep);
  return found;
}

void ProgressBoard::wait_until(std::chrono::steady_clock::time_point time, std::uint64_t& seen) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, time, [&] { return changes_ != seen || stopped_; });
  seen = changes_;
}

void ProgressBoard::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool ProgressBoard::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

bool ProgressBoard::enter_watcher() {
  if (watchers_.fetch_add(1, std::memory_order_relaxed) < kMaxWatchers) return true;
  leave_watcher();
  return false;
}

void ProgressBoard::leave_watcher() {
  watchers_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace kymo::daemon
