#include "daemon/recorder.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/log_path.h"
#include "daemon/snapshot_sink.h"
#include "daemon/tee_sink.h"

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kRollNs = 1'000'000'000;  // before and after each request
// The roll before a request, the second that a row may lie in the ring, and the time until a
// request's directory is there to record into.
constexpr auto kKeep = std::chrono::milliseconds(3500);

// Rows that a snapshot wants may still lie in the ring when older ones are pushed out.
constexpr auto kOnItsWay = std::chrono::milliseconds(1500);

FlightRecorderOptions flight_recorder_options(const Config& config) {
  FlightRecorderOptions options;
  options.keep = config.profiling_keep;
  options.directory = config.state_dir + "/snapshots";
  options.rules = config.profiling_rules;
  options.before = std::min<std::chrono::nanoseconds>(options.before, config.profiling_keep);
  options.fired = [](const std::string& rule, const Result<std::string>& path) {
    if (path) {
      spdlog::warn("rule '{}' fired: snapshot in {}", rule, *path);
    } else {
      spdlog::error("rule '{}' fired, and no snapshot was taken: {}", rule, path.error().message);
    }
  };
  return options;
}

TsvOptions tsv_options(const Config& config) {
  TsvOptions options;
  options.rotate_bytes = config.profiling_log_rotate_bytes;
  options.rotate_after = config.profiling_log_rotate_after;
  options.keep_bytes = config.profiling_log_keep_bytes;
  return options;
}

// The daemon-wide recording's.
std::shared_ptr<Sink> make_log_sink(const Config& config) {
  if (config.profiling_format && config.profiling_log == "-") {
    return make_annotated_sink(STDERR_FILENO, *config.profiling_format);
  }
  const std::string path = free_log_path(config.profiling_log);
  if (path != config.profiling_log) {
    spdlog::warn("{} holds an earlier recording: this one goes to {}", config.profiling_log, path);
  }
  if (!config.profiling_format) return make_tsv_sink(path, tsv_options(config));
  return make_annotated_sink(path, *config.profiling_format);
}

}  // namespace

void RequestRecording::mark(std::string_view name) {
  if (history_ != nullptr) history_->mark(cut_, std::string(name), profiler_->now_ns());
}

void RequestRecording::end(nlohmann::json about) {
  if (history_ == nullptr) return;
  history_->end(cut_, profiler_->now_ns() + kRollNs, std::move(about));
}

Result<std::unique_ptr<Recorder>> Recorder::make(Registry& registry, const Config& config) {
  std::unique_ptr<Recorder> recorder(new Recorder);
  if (!config.profiling) return recorder;
  const auto keep = std::max<std::chrono::nanoseconds>(kKeep, config.profiling_keep + kOnItsWay);
  recorder->history_ = std::make_shared<History>(keep);
  recorder->snapshots_ =
      std::make_shared<Snapshots>(recorder->history_, flight_recorder_options(config));
  ProfilerOptions options;
  options.metrics = config.profiling_metrics;
  options.interval = config.profiling_interval;
  options.ring_file = config.profiling_ring;
  options.pace = config.profiling_pace;
  options.realtime_priority = config.profiling_priority;
  options.cpu = config.profiling_cpu;
  options.sink = std::make_shared<SnapshotSink>(recorder->history_, recorder->snapshots_);
  if (!config.profiling_log.empty()) {
    options.sink = std::make_shared<TeeSink>(options.sink, make_log_sink(config));
  }
  recorder->profiler_ = std::make_unique<Profiler>(registry, std::move(options));
  recorder->watch_.emplace(*recorder->profiler_);
  Result<void> registered = register_profiler_metrics(registry, *recorder->profiler_);
  if (!registered) return registered.error();
  return recorder;
}

Result<void> Recorder::start() {
  return profiler_ == nullptr ? Result<void>() : profiler_->start();
}

Result<void> Recorder::stop() {
  return profiler_ == nullptr ? Result<void>() : profiler_->stop();
}

std::uint64_t Recorder::now_ns() const {
  return profiler_ == nullptr ? 0 : profiler_->now_ns();
}

Result<RequestRecording> Recorder::begin(std::string path, std::uint64_t from_ns,
                                         nlohmann::json about) {
  if (!recording()) return RequestRecording();
  const std::uint64_t first = from_ns > kRollNs ? from_ns - kRollNs : 0;
  Result<History::CutId> cut = history_->begin(path, first, std::move(about));
  if (!cut) return cut.error();
  return RequestRecording(*profiler_, *history_, *cut, std::move(path));
}

Result<std::string> Recorder::snapshot(const SnapshotRequest& request, bool wait) {
  if (!recording()) {
    return Error{Code::failed_precondition,
                 "snapshot: nothing is recorded: start kymod without --profiling-metrics=none"};
  }
  return snapshots_->snapshot(request, wait);
}

std::chrono::nanoseconds Recorder::kept() const {
  return history_ == nullptr ? std::chrono::nanoseconds(0) : history_->kept() - kOnItsWay;
}

std::optional<RecordingInfo> Recorder::info() const {
  return recording() ? history_->info() : std::nullopt;
}

void Recorder::read(std::uint64_t from_ns, const std::function<void(const Rows&)>& each) const {
  const std::optional<RecordingInfo> what = info();
  if (!what) return;
  const std::size_t stride = what->columns.size() + 1;
  constexpr std::size_t kPiece = 4096;
  for (;;) {
    const std::vector<std::uint64_t> words = history_->copy_rows(from_ns, kPiece);
    if (words.empty()) break;
    each({words.data(), words.size() / stride, stride});
    from_ns = words[words.size() - stride] + 1;
  }
  // And those that are on their way there.
  const std::uint64_t now = now_ns();
  if (now < from_ns) return;
  const auto interval = static_cast<std::uint64_t>(what->interval.count());
  const std::size_t most =
      std::min<std::uint64_t>((now - from_ns) / interval + 2, what->slots * what->rows_per_slot);
  const std::vector<std::uint64_t> words = profiler_->newest_rows(most);
  std::size_t first = 0;
  while (first < words.size() && words[first] < from_ns) first += stride;
  if (first < words.size()) each({&words[first], (words.size() - first) / stride, stride});
}

std::vector<Gap> Recorder::gaps_after(std::uint64_t from_ns) const {
  return history_ == nullptr ? std::vector<Gap>() : history_->gaps_after(from_ns);
}

std::vector<Trouble> Recorder::troubles() {
  return watch_ ? watch_->look() : std::vector<Trouble>();
}

ProfilerStats Recorder::stats() const {
  return profiler_ == nullptr ? ProfilerStats() : profiler_->stats();
}

std::vector<std::string> Recorder::warnings() const {
  return profiler_ == nullptr ? std::vector<std::string>() : profiler_->warnings();
}

std::size_t Recorder::ring_bytes() const {
  return profiler_ == nullptr ? 0 : profiler_->ring_bytes();
}

}  // namespace kymo::daemon
