#include "daemon/recorder.h"

#include <unistd.h>

#include <utility>

#include "daemon/tee_sink.h"

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kRollNs = 1'000'000'000;  // before and after each request
// The roll before a request, the second that a row may lie in the ring, and the time until a
// request's directory is there to record into.
constexpr auto kKeep = std::chrono::milliseconds(3500);

// The daemon-wide recording's.
std::shared_ptr<Sink> make_log_sink(const Config& config) {
  if (!config.profiling_format) return make_tsv_sink(config.profiling_log);
  if (config.profiling_log == "-") {
    return make_annotated_sink(STDERR_FILENO, *config.profiling_format);
  }
  return make_annotated_sink(config.profiling_log, *config.profiling_format);
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
  recorder->history_ = std::make_shared<History>(kKeep);
  ProfilerOptions options;
  options.metrics = config.profiling_metrics;
  options.interval = config.profiling_interval;
  options.ring_file = config.profiling_ring;
  options.pace = config.profiling_pace;
  options.realtime_priority = config.profiling_priority;
  options.cpu = config.profiling_cpu;
  options.sink = recorder->history_;
  if (!config.profiling_log.empty()) {
    options.sink = std::make_shared<TeeSink>(recorder->history_, make_log_sink(config));
  }
  recorder->profiler_ = std::make_unique<Profiler>(registry, std::move(options));
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
