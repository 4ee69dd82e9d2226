#include "sampling/snapshots.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/clock.h"

namespace kymo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNamePrefix = "snapshot-";
constexpr std::string_view kNameEnding = ".tsv";
// A snapshot is whole when a row after its end has come: at the latest so long after it.
constexpr auto kLatestRow = std::chrono::seconds(10);

// Names sort by time: 20261121T093005Z.
std::string utc_now() {
  const auto seconds = static_cast<time_t>(unix_ns() / static_cast<std::int64_t>(kNanosPerSecond));
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  ::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return text.data();
}

bool is_snapshot(const fs::path& path) {
  return path.filename().string().starts_with(kNamePrefix) && path.extension() == kNameEnding &&
         !path.stem().string().ends_with(".gaps");
}

}  // namespace

Snapshots::Snapshots(std::shared_ptr<History> history, FlightRecorderOptions options)
    : history_(std::move(history)), options_(std::move(options)) {}

Result<void> Snapshots::open(const RecordingInfo& info) {
  start_monotonic_ns_ = info.start_monotonic_ns;
  rules_.clear();
  for (const std::string& text : options_.rules) {
    Result<Rule> rule = Rule::parse(text);
    if (!rule) {
      return rule.error();
    }
    if (Result<void> bound = rule->bind(info.columns); !bound) {
      return bound;
    }
    rules_.push_back(*std::move(rule));
  }
  return {};
}

void Snapshots::pass(const Rows& rows) {
  if (rows.count == 0) {
    return;
  }
  for (Rule& rule : rules_) {
    for (std::size_t i = 0; i < rows.count; ++i) {
      if (rule.fires_at(rows.row(i))) {
        fire(rule, rows.row(i)[0]);
      }
    }
  }
  newest_ns_.store(rows.row(rows.count - 1)[0], std::memory_order_relaxed);
}

void Snapshots::fire(const Rule& rule, std::uint64_t at_ns) {
  Result<std::string> path = new_path(options_.directory);
  if (path) {
    const Span span{at_ns - std::min(at_ns, to_nanos(options_.before)), at_ns,
                    at_ns + to_nanos(options_.after)};
    const Result<History::CutId> cut =
        begin(*path, span, {{"request", "snapshot"}, {"reason", "rule"}, {"rule", rule.text()}});
    if (!cut) {
      path = cut.error();
    }
  }
  if (options_.fired) {
    options_.fired(rule.text(), path);
  }
}

Result<std::string> Snapshots::snapshot(const SnapshotRequest& request, bool wait) {
  if (request.before.count() < 0 || request.after.count() < 0 || request.after > kMaxAfter) {
    return Error{Code::invalid_argument,
                 "a snapshot takes from 0 s before, and from 0 to 600 s after", 0};
  }
  Result<std::string> path =
      new_path(request.directory.empty() ? options_.directory : request.directory);
  if (!path) {
    return path;
  }
  // The clock of the rows; where that was re-anchored, the newest row is nearer to the truth.
  const std::uint64_t at_ns =
      std::max(monotonic_ns() - start_monotonic_ns_, newest_ns_.load(std::memory_order_relaxed));
  const Span span{at_ns - std::min(at_ns, to_nanos(request.before)), at_ns,
                  at_ns + to_nanos(request.after)};
  const Result<History::CutId> cut =
      begin(*path, span, {{"request", "snapshot"}, {"reason", request.reason}});
  if (!cut) {
    return cut.error();
  }
  if (wait) {
    const auto longest =
        std::chrono::duration_cast<std::chrono::milliseconds>(request.after + kLatestRow);
    if (Result<void> whole = history_->wait(*cut, longest); !whole) {
      return whole.error();
    }
  }
  return path;
}

Result<History::CutId> Snapshots::begin(const std::string& path, const Span& span,
                                        nlohmann::json about) {
  Result<History::CutId> cut = history_->begin(path, span.from_ns, std::move(about));
  if (cut) {
    history_->mark(*cut, "snapshot", span.at_ns);
    history_->end(*cut, span.until_ns, nlohmann::json::object());
  }
  return cut;
}

Result<std::string> Snapshots::new_path(const std::string& directory) {
  if (directory == options_.directory && !directory.empty()) {
    std::error_code error;
    fs::create_directories(directory, error);
    if (error) {
      return system_error("cannot make the snapshots' folder " + directory, error.value());
    }
    remove_oldest();
  }
  std::string stem = directory.empty() ? "." : directory;
  stem += '/' + std::string(kNamePrefix) + utc_now();
  std::array<char, 32> number{};
  std::snprintf(
      number.data(), number.size(), "-%06llu",
      static_cast<unsigned long long>(next_number_.fetch_add(1, std::memory_order_relaxed)));
  return stem + '-' + std::to_string(::getpid()) + number.data() + std::string(kNameEnding);
}

// Makes room for one more.
void Snapshots::remove_oldest() const {
  std::vector<fs::path> there;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.directory, error)) {
    if (is_snapshot(entry.path())) {
      there.push_back(entry.path());
    }
  }
  std::sort(there.begin(), there.end());
  const std::size_t most = std::max<std::size_t>(1, options_.max_snapshots) - 1;
  for (std::size_t i = 0; i + most < there.size(); ++i) {
    const std::string stem = (there[i].parent_path() / there[i].stem()).string();
    for (const char* ending : {".tsv", ".gaps.tsv", ".meta.json"}) {
      fs::remove(stem + ending, error);
    }
  }
}

}  // namespace kymo
