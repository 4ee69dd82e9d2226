#include "daemon/recording/recorder.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "lens/report/human.h"

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kRollNs = 1'000'000'000;    // is recorded before and after a request
constexpr auto kMaxWait = std::chrono::seconds(1);  // of a request while control() works
constexpr std::uint64_t kMaxIntervalUs = 86'400'000'000;

Error refused(Code code, std::string message) {
  return Error{code, "recorder: " + std::move(message)};
}

std::string described(const RecorderRun& run) {
  return std::to_string(run.info().columns.size()) + " columns every " +
         report::duration(run.info().interval) +
         (run.log_path().empty() ? ", in memory" : " into " + run.log_path());
}

// The outcome of a stop in which rows that were lost before are no failure: the recorder has stopped
// all the same, and the losses are logged and counted.
Result<void> without_losses(Result<void> stopped) {
  if (stopped || stopped.error().code != Code::data_loss) return stopped;
  spdlog::warn("recorder: {}", stopped.error().message);
  return {};
}

// Why a snapshot reaches less far back than was asked for; empty if it reaches far enough.
std::string short_note(const RecorderRun& run, std::chrono::nanoseconds asked,
                       std::chrono::nanoseconds reach) {
  if (reach + run.info().interval >= asked) return {};
  const std::string less = "the snapshot reaches back " + report::duration(reach) + ", not " +
                           report::duration(asked) + ": ";
  if (reach < run.kept()) {
    return less +
           "the recorder was started or changed then, and the earlier rows are no longer in memory";
  }
  return less + "kymod keeps little more than " + report::duration(run.kept()) +
         " (--profiling-keep, 64 MiB at most)";
}

}  // namespace

void RequestRecording::mark(std::string_view name) {
  if (run_ != nullptr) run_->cuts().mark(cut_, std::string(name), run_->now_ns());
}

Result<void> RequestRecording::end(nlohmann::json about) {
  if (run_ == nullptr) return {};
  const std::uint64_t until = run_->now_ns() + kRollNs;
  run_->cuts().end(cut_, until, std::move(about));
  // Relaxed: wait_until_free() looks at this after `requests`, which the claim decreases later.
  std::uint64_t before = run_->wanted_until_ns.load(std::memory_order_relaxed);
  while (before < until &&
         !run_->wanted_until_ns.compare_exchange_weak(before, until, std::memory_order_relaxed)) {
  }
  claim_.reset();
  const std::optional<Error> failure = run_->cuts().failure_of(cut_);
  if (!failure) return {};
  path_.clear();
  return *failure;
}

Result<std::unique_ptr<Recorder>> Recorder::make(Registry& registry, const Config& config) {
  std::unique_ptr<Recorder> recorder(new Recorder(registry, config));
  Result<void> registered = recorder->current_.register_metrics(registry);
  if (!registered) return registered.error();
  return recorder;
}

Recorder::~Recorder() {
  static_cast<void>(stop());
}

Result<void> Recorder::start() {
  const std::lock_guard control(control_mutex_);
  const Config settings = this->settings();
  return settings.profiling ? begin_run(settings) : Result<void>();
}

Result<void> Recorder::stop() {
  const std::lock_guard control(control_mutex_);
  over_ = true;
  std::shared_ptr<RecorderRun> run;
  {
    const std::lock_guard lock(mutex_);
    run = run_;
  }
  if (run == nullptr) return {};
  return without_losses(run->stop());  // waits for files, so without mutex_
}

Result<Config> Recorder::changed(const RecorderChange& change) const {
  Config next = settings();
  next.profiling = true;
  if (change.interval_us) {
    if (*change.interval_us < 1 || *change.interval_us > kMaxIntervalUs) {
      return refused(Code::invalid_argument,
                     "an interval of " + std::to_string(*change.interval_us) +
                         " µs: must be 1 to " + std::to_string(kMaxIntervalUs));
    }
    next.profiling_interval = std::chrono::microseconds(*change.interval_us);
  }
  if (!change.metrics.empty()) {
    if (change.metrics == "none") {
      return refused(Code::invalid_argument, "metrics none: to record nothing, stop the recorder");
    }
    if (Result<void> ok = set_profiling_metrics(next, change.metrics); !ok) {
      return refused(Code::invalid_argument,
                     "metrics " + change.metrics + ": an empty name in the list");
    }
    if (const auto known = registry_.sampler(next.profiling_metrics); !known) {
      return refused(known.error().code, known.error().message);
    }
  }
  if (!change.log.empty()) next.profiling_log = change.log;
  return next;
}

// Waits until no row is wanted for a request any more, and then makes new requests wait.
// Errors: failed_precondition: a request is being recorded.
Result<void> Recorder::wait_until_free(const RecorderRun& run) {
  constexpr std::uint64_t kLook = 20'000'000;
  for (;;) {
    std::uint64_t left = 0;
    {
      const std::lock_guard lock(mutex_);
      // Acquire: pairs with the release when a claim ends. If no request is left, the time that
      // each of them stored in `wanted_until_ns` before is seen below.
      if (const int requests = run.requests.load(std::memory_order_acquire); requests > 0) {
        return refused(Code::failed_precondition,
                       std::to_string(requests) +
                           (requests == 1 ? " request is" : " requests are") +
                           " being recorded: try again after the end (see kymo progress)");
      }
      const std::uint64_t until = run.wanted_until_ns.load(std::memory_order_relaxed);
      left = until - std::min(until, run.now_ns());
      if (left == 0) {
        changing_ = true;
        return {};
      }
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left, kLook)));
  }
}

void Recorder::end_change() {
  {
    const std::lock_guard lock(mutex_);
    changing_ = false;
  }
  run_changed_.notify_all();
}

Result<void> Recorder::begin_run(const Config& settings) {
  auto run = std::make_shared<RecorderRun>(registry_, settings);
  std::shared_ptr<RecorderRun> before;
  {
    const std::lock_guard lock(mutex_);
    before = run_;
  }
  // Set before the first row is taken, because that row already contains this profiler's metrics.
  current_.set(&run->profiler());
  if (Result<void> started = run->start(); !started) {
    current_.set(before == nullptr ? nullptr : &before->profiler());
    return started;
  }
  const std::lock_guard lock(mutex_);
  run_ = std::move(run);
  settings_ = settings;
  return {};
}

Result<void> Recorder::end_run() {
  std::shared_ptr<RecorderRun> run;
  {
    const std::lock_guard lock(mutex_);
    run = run_;
  }
  Result<void> stopped = without_losses(run->stop());
  const ProfilerStats stats = run->profiler().stats();
  spdlog::info("recorder: stopped after {} rows, {} ticks missed: {}", stats.rows_written,
               stats.missed(), described(*run));
  return stopped;
}

Result<void> Recorder::control(RecorderAction action, const RecorderChange& change) {
  const std::lock_guard control(control_mutex_);
  if (over_) return refused(Code::unavailable, "kymod is stopping");
  const std::shared_ptr<const RecorderRun> ran = running();
  if (action == RecorderAction::start && ran != nullptr) {
    return refused(Code::failed_precondition,
                   "it is already running: stop it, or change its settings");
  }
  if (action == RecorderAction::stop && ran == nullptr) {
    return refused(Code::failed_precondition, "it is not running");
  }
  if (action == RecorderAction::stop && !change.empty()) {
    return refused(Code::invalid_argument, "a rate, metrics or a file cannot be given with stop");
  }
  if (action == RecorderAction::set && change.empty()) {
    return refused(Code::invalid_argument, "nothing to set: give a rate, metrics or a file");
  }
  const Result<Config> next = changed(change);
  if (!next) return next.error();
  if (ran == nullptr && action == RecorderAction::set) {
    const std::lock_guard lock(mutex_);
    settings_ = *next;
    return {};
  }
  if (ran != nullptr) {
    if (Result<void> free = wait_until_free(*ran); !free) return free;
  }
  const std::shared_ptr<void> afterwards(nullptr, [this](void*) { end_change(); });
  Result<void> done = ran == nullptr ? Result<void>() : end_run();
  if (action == RecorderAction::stop || (ran != nullptr && ran->running())) return done;
  if (!done) spdlog::error("recorder: {}", done.error().message);  // the next one runs all the same
  const Config before = settings();
  done = begin_run(*next);
  if (!done && ran != nullptr) {
    if (const Result<void> again = begin_run(before); !again) {
      spdlog::error(
          "recorder: it stopped, and could not be started again with its former settings: {}",
          again.error().message);
    }
  }
  if (const auto run = running()) spdlog::info("recorder: started: {}", described(*run));
  return done ? done : refused(done.error().code, done.error().message);
}

Result<RequestRecording> Recorder::begin(std::string path, std::uint64_t from_ns,
                                         nlohmann::json about, std::shared_ptr<OwnColumns> own) {
  std::shared_ptr<RecorderRun> run;
  std::shared_ptr<void> claim;
  {
    std::unique_lock lock(mutex_);
    if (!run_changed_.wait_for(lock, kMaxWait, [this] { return !changing_; })) {
      return refused(
          Code::unavailable,
          "it is being started or stopped, which takes long because its disk is slow: try again");
    }
    if (run_ == nullptr || !run_->running()) return RequestRecording();
    run = run_;
    // Relaxed: wait_until_free() holds the mutex, too, when it looks.
    run->requests.fetch_add(1, std::memory_order_relaxed);
    claim = std::shared_ptr<void>(nullptr, [run](void*) {
      run->requests.fetch_sub(1, std::memory_order_release);  // pairs with wait_until_free()
    });
  }
  const std::uint64_t began = run->on_clock(from_ns);
  CutOptions options;
  options.own_columns = std::move(own);
  Result<CutSink::CutId> cut = run->cuts().begin(path, began - std::min(began, kRollNs),
                                                 std::move(about), std::move(options));
  if (!cut) return cut.error();
  return RequestRecording(std::move(run), *cut, std::move(path), std::move(claim));
}

Result<TakenSnapshot> Recorder::snapshot(const SnapshotRequest& request, bool wait) {
  std::shared_ptr<RecorderRun> run;
  {
    const std::lock_guard lock(mutex_);
    run = run_;
  }
  if (run == nullptr || !run->running()) {
    return Error{Code::failed_precondition,
                 "snapshot: the recorder is stopped: start it with kymo recorder start"};
  }
  // Measured before the snapshot is written, because writing takes time.
  const std::chrono::nanoseconds reach = run->reach();
  Result<std::string> path = run->snapshots().snapshot(request, wait);
  if (!path) return path.error();
  return TakenSnapshot{std::move(path).value(), std::min(reach, request.before),
                       short_note(*run, request.before, reach)};
}

std::shared_ptr<const RecorderRun> Recorder::running() const {
  const std::lock_guard lock(mutex_);
  return run_ != nullptr && run_->running() ? run_ : nullptr;
}

std::shared_ptr<const RecorderRun> Recorder::latest() const {
  const std::lock_guard lock(mutex_);
  return run_;
}

Config Recorder::settings() const {
  const std::lock_guard lock(mutex_);
  return settings_;
}

std::vector<std::string> Recorder::new_warnings() {
  std::shared_ptr<RecorderRun> run;
  {
    const std::lock_guard lock(mutex_);
    run = run_;
  }
  return run == nullptr ? std::vector<std::string>() : run->new_warnings();
}

std::vector<Trouble> Recorder::troubles() {
  std::shared_ptr<RecorderRun> run;
  {
    const std::lock_guard lock(mutex_);
    run = run_;
  }
  return run == nullptr ? std::vector<Trouble>() : run->troubles();
}

}  // namespace kymo::daemon
