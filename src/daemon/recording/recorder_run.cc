#include "daemon/recording/recorder_run.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/config/log_path.h"
#include "daemon/recording/metrics.h"
#include "daemon/recording/own_thread_sink.h"
#include "daemon/recording/tee_sink.h"
#include "recorder/sampling/collect/run_ahead.h"
#include "recorder/sampling/files/tsv_sink.h"

namespace kymo::daemon {
namespace {

// The sum of the second before a request, the second that a row may stay in the ring, and the time
// until the directory of the request's recording exists.
constexpr auto kKeep = std::chrono::milliseconds(3500);

// Kept in addition to `profiling_keep`: the newest rows of a snapshot may still be in the ring when
// older ones are evicted from memory.
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
      spdlog::error("rule '{}' fired, and its snapshot failed: {}", rule, path.error().message);
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

// The file of this run's daemon-wide recording. Empty if there is none, or if it goes to the
// daemon's own log.
std::string log_path_for(const Config& config) {
  if (config.profiling_log.empty() || config.profiling_log == "-") return {};
  std::string path = free_log_path(config.profiling_log);
  if (path != config.profiling_log) {
    // Each restart of a service comes here: nothing is wrong.
    spdlog::info("{} holds an earlier recording: this one goes to {}", config.profiling_log, path);
  }
  return path;
}

// The sink of the daemon-wide recording; null if there is none.
std::shared_ptr<Sink> make_log_sink(const Config& config, const std::string& path) {
  if (config.profiling_log.empty()) return nullptr;
  if (!config.profiling_format) {
    return make_tsv_sink(path, tsv_options(config), earlier_parts(config.profiling_log));
  }
  if (path.empty()) return make_annotated_sink(STDERR_FILENO, *config.profiling_format);
  return make_annotated_sink(path, *config.profiling_format);
}

ProfilerOptions profiler_options(const Config& config, const std::string& log_path,
                                 std::shared_ptr<Sink> memory) {
  ProfilerOptions options;
  options.metrics = config.profiling_metrics;
  options.interval = config.profiling_interval;
  options.ring_file = config.profiling_ring;
  options.pace = config.profiling_pace;
  run_ahead(&options, config.profiling_realtime);
  options.prometheus_prefix = kPrometheusPrefix;
  options.on_trouble = nullptr;  // troubles() tells kymod's log
  options.sink = std::move(memory);
  if (std::shared_ptr<Sink> log = make_log_sink(config, log_path)) {
    auto apart = std::make_shared<OwnThreadSink>(std::move(log));
    options.sink = std::make_shared<TeeSink>(options.sink, std::move(apart));
  }
  return options;
}

}  // namespace

RecorderRun::RecorderRun(const Registry& registry, const Config& config)
    : cuts_(std::make_shared<CutSink>(
          std::max<std::chrono::nanoseconds>(kKeep, config.profiling_keep + kOnItsWay))),
      snapshots_(std::make_shared<Snapshots>(cuts_, flight_recorder_options(config))),
      log_path_(log_path_for(config)),
      profiler_(registry, profiler_options(config, log_path_, snapshots_)),
      watch_(profiler_) {}

Result<void> RecorderRun::start() {
  if (Result<void> started = profiler_.start(); !started) return started;
  if (std::optional<RecordingInfo> info = cuts_->info()) info_ = *std::move(info);
  return {};
}

std::vector<Trouble> RecorderRun::troubles() {
  std::vector<Trouble> troubles = watch_.look();
  std::erase_if(troubles, [](const Trouble& trouble) {  // new_warnings() tells of these
    return trouble.what == Trouble::What::callback_error ||
           trouble.what == Trouble::What::unrecorded;
  });
  return troubles;
}

std::vector<std::string> RecorderRun::new_warnings() {
  std::vector<std::string> warnings = profiler_.warnings();
  std::erase(warnings, profiler_.lost_rows().text);  // troubles() tells of it
  std::erase_if(warnings, [this](const std::string& warning) {
    return !warnings_told_.insert(warning.substr(0, warning.find(':'))).second;
  });
  return warnings;
}

std::uint64_t RecorderRun::on_clock(std::uint64_t monotonic_ns) const {
  return monotonic_ns - std::min(monotonic_ns, info_.start_monotonic_ns);
}

std::chrono::nanoseconds RecorderRun::kept() const {
  return std::max<std::chrono::nanoseconds>(cuts_->kept() - kOnItsWay, std::chrono::nanoseconds(0));
}

std::chrono::nanoseconds RecorderRun::reach() const {
  if (!running()) return std::chrono::nanoseconds(0);
  // If memory has no row yet, all rows since the start are still in the ring.
  const std::vector<std::uint64_t> oldest = cuts_->copy_rows(0, 1);
  const std::uint64_t from_ns = oldest.empty() ? 0 : oldest.front();
  const std::uint64_t now = now_ns();
  return std::chrono::nanoseconds(now - std::min(now, from_ns));
}

void RecorderRun::read(std::uint64_t from_ns, const std::function<void(const Rows&)>& each) const {
  const std::size_t stride = info_.columns.size() + 1;
  constexpr std::size_t kPiece = 4096;
  for (;;) {
    const std::vector<std::uint64_t> words = cuts_->copy_rows(from_ns, kPiece);
    if (words.empty()) break;
    each({words.data(), words.size() / stride, stride});
    from_ns = words[words.size() - stride] + 1;
  }
  // The newest rows are still in the ring.
  const std::uint64_t now = now_ns();
  if (now < from_ns) return;
  const auto interval = static_cast<std::uint64_t>(info_.interval.count());
  const std::size_t most =
      std::min<std::uint64_t>((now - from_ns) / interval + 2, info_.slots * info_.rows_per_slot);
  const std::vector<std::uint64_t> words = profiler_.newest_rows(most);
  std::size_t first = 0;
  while (first < words.size() && words[first] < from_ns) first += stride;
  if (first < words.size()) each({&words[first], (words.size() - first) / stride, stride});
}

}  // namespace kymo::daemon
