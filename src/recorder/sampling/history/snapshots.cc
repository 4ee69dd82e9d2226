#include "recorder/sampling/history/snapshots.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/absolute_path.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/foreign_call.h"
#include "base/human.h"
#include "base/json_object.h"

namespace kymo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNamePrefix = "snapshot-";
constexpr std::string_view kNameEnding = ".tsv";
// How long snapshot() waits for a snapshot to be complete, counted from its end. A snapshot is
// complete when a row after its end has come.
constexpr auto kLatestRow = std::chrono::seconds(10);
// How long snapshot() waits to learn whether the files can be created.
constexpr auto kCreated = std::chrono::seconds(1);
// The metadata of a snapshot that is being written are replaced every second. Older ones that say
// "running" were left behind by a process that was killed.
constexpr auto kLeftBehind = std::chrono::minutes(1);

// The time as in 20261121T093005Z, so that names sort by time.
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

// A path that no other recorder of this process gets, also if two have the same folder.
std::string new_path(const std::string& directory) {
  static std::atomic<std::uint64_t> next_number{1};
  std::string stem = directory.empty() ? "." : directory;
  stem += '/' + std::string(kNamePrefix) + utc_now();
  std::array<char, 32> number{};
  std::snprintf(
      number.data(), number.size(), "-%06llu",
      static_cast<unsigned long long>(next_number.fetch_add(1, std::memory_order_relaxed)));
  return stem + '-' + std::to_string(::getpid()) + number.data() + std::string(kNameEnding);
}

// The names of the snapshots that all recorders of this process are writing. A name contains the pid and a number
// of this process, so that it needs no folder. Never destroyed: threads that write snapshots may run until the end.
struct WrittenHere {
  std::mutex mutex;
  std::set<std::string> names;  // guarded by mutex
};

WrittenHere& written_here() {
  static auto* const kOne = new WrittenHere;
  return *kOne;
}

bool is_written_here(const std::string& name) {
  WrittenHere& here = written_here();
  const std::lock_guard lock(here.mutex);
  return here.names.contains(name);
}

// What a snapshot may contain. `what`: what cannot be done, to begin the message.
Result<void> check_span(const std::string& what, std::chrono::nanoseconds before,
                        std::chrono::nanoseconds after) {
  if (before.count() >= 0 && after.count() >= 0 && after <= Snapshots::kMaxAfter &&
      (before.count() != 0 || after.count() != 0)) {
    return {};
  }
  return Error{Code::invalid_argument,
               what + " from " + human::duration(before) + " before to " + human::duration(after) +
                   " after: must be 0 s or more before, and 0 to 600 s after, but not both 0",
               0};
}

// Whether another recorder, perhaps of another process, is still writing the snapshot. `stem`: its
// path without the ending.
bool is_written_elsewhere(const std::string& stem) {
  const std::string metadata = stem + ".meta.json";
  std::error_code error;
  const auto changed = fs::last_write_time(metadata, error);
  if (error || fs::file_time_type::clock::now() - changed > kLeftBehind) {
    return false;
  }
  const Result<std::string> text = read_file(metadata);
  return text && text_of(parse_object(*text), "state") == "running";
}

}  // namespace

// The folder for snapshots whose request names none, and what has failed. It is shared with the threads that write
// snapshots, which may outlive the Snapshots object.
struct Snapshots::Folder : std::enable_shared_from_this<Snapshots::Folder> {
  FlightRecorderOptions options;
  std::mutex mutex;          // held while the oldest snapshots are removed
  std::mutex writing_mutex;  // guards the next one; no thread waits for a file while it holds it
  std::set<std::string> writing;  // names of the snapshots that are not whole yet
  std::mutex place_mutex;
  std::string place;  // the absolute path of the folder since open(); guarded by place_mutex
  std::mutex fired_mutex;
  std::optional<Error> fired_error;  // the first exception of `fired`; guarded by fired_mutex
  std::mutex failed_mutex;           // guards the next three
  std::uint64_t failed = 0;          // snapshots that could not be written, or not whole
  std::string first_failure;
  std::uint64_t refused = 0;  // snapshots of rules that were not begun: see reserve()

  void settle();
  std::string directory();
  // `recorder`: who waits for the thread (ForeignCall).
  void tell(const std::string& rule, const Result<std::string>& path, const void* recorder);
  void count_failure(const Error& why);
  void count_refusal();
  void forget_failures();
  std::uint64_t failures();
  LostRows losses();
  [[nodiscard]] std::size_t limit() const {
    return std::max<std::size_t>(1, options.max_snapshots);
  }
  Result<std::shared_ptr<const Place>> reserve(const std::string& path);
  std::set<std::string> names_in_writing();
  Result<void> prepare();
  void remove_oldest();
};

// A place among the snapshots that are being written, until the last copy is gone.
struct Snapshots::Place {
  std::shared_ptr<Folder> folder;
  std::string name;

  Place(std::shared_ptr<Folder> own_folder, std::string own_name)
      : folder(std::move(own_folder)), name(std::move(own_name)) {
    const std::lock_guard lock(written_here().mutex);
    written_here().names.insert(name);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    {
      const std::lock_guard lock(written_here().mutex);
      written_here().names.erase(name);
    }
    const std::lock_guard lock(folder->writing_mutex);
    folder->writing.erase(name);
  }
};

// The program may change its working directory after the start.
void Snapshots::Folder::settle() {
  const std::lock_guard lock(place_mutex);
  if (place.empty()) {
    const std::string& asked = options.directory;
    std::error_code ignored;
    place = asked.empty() ? fs::current_path(ignored).string() : absolute_path(asked);
  }
}

// The folder; empty: the working directory.
std::string Snapshots::Folder::directory() {
  const std::lock_guard lock(place_mutex);
  return place.empty() ? options.directory : place;
}

void Snapshots::Folder::tell(const std::string& rule, const Result<std::string>& path,
                             const void* recorder) {
  if (!options.fired) {
    return;
  }
  const Result<void> told =
      call_foreign("the callback FlightRecorderOptions::fired", recorder, [&]() -> Result<void> {
        options.fired(rule, path);
        return {};
      });
  const std::lock_guard lock(fired_mutex);
  if (!told && !fired_error) {
    fired_error = told.error();
  }
}

void Snapshots::Folder::count_failure(const Error& why) {
  const std::lock_guard lock(failed_mutex);
  if (failed == 0) {
    first_failure = why.message;
  }
  ++failed;
}

void Snapshots::Folder::count_refusal() {
  const std::lock_guard lock(failed_mutex);
  ++refused;
}

void Snapshots::Folder::forget_failures() {
  const std::lock_guard lock(failed_mutex);
  failed = 0;
  refused = 0;
  first_failure.clear();
}

std::uint64_t Snapshots::Folder::failures() {
  const std::lock_guard lock(failed_mutex);
  return failed;
}

// The profiler wrote all rows to memory. So none of them is lost to it, and `rows` is 0.
LostRows Snapshots::Folder::losses() {
  const std::lock_guard lock(failed_mutex);
  LostRows lost;
  if (failed == 1) {
    lost.text = "a snapshot could not be written whole: " + first_failure;
  } else if (failed != 0) {
    lost.text = std::to_string(failed) +
                " snapshots could not be written whole; the first: " + first_failure;
  }
  if (refused != 0) {
    lost.text += lost.text.empty() ? "" : "; ";
    lost.text += std::to_string(refused);
    lost.text += refused == 1 ? " snapshot of a rule was not begun, because "
                              : " snapshots of rules were not begun, because ";
    lost.text += std::to_string(limit());
    lost.text += " were being written, the most at once (max_snapshots)";
  }
  return lost;
}

// Takes a place among the snapshots that are being written. Errors: resource_exhausted if all are
// taken. The newest snapshot is refused then, so that the first ones of a storm are kept.
Result<std::shared_ptr<const Snapshots::Place>> Snapshots::Folder::reserve(
    const std::string& path) {
  std::string name = fs::path(path).filename();
  const std::lock_guard lock(writing_mutex);
  if (writing.size() >= limit()) {
    return Error{Code::resource_exhausted,
                 "no snapshot was begun: " + std::to_string(writing.size()) +
                     " are being written, the most at once (max_snapshots)",
                 0};
  }
  writing.insert(name);
  return std::make_shared<const Place>(shared_from_this(), std::move(name));
}

std::set<std::string> Snapshots::Folder::names_in_writing() {
  const std::lock_guard lock(writing_mutex);
  return writing;
}

Result<void> Snapshots::Folder::prepare() {
  const std::string folder = directory();
  if (const int error = make_folders(folder); error != 0) {
    return system_error("cannot make the snapshots' folder " + folder, error);
  }
  remove_oldest();
  return {};
}

// Removes the oldest whole snapshots, so that with those that are being written at most `limit()`
// are left.
void Snapshots::Folder::remove_oldest() {
  const std::lock_guard lock(mutex);
  std::vector<fs::path> whole;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory(), error)) {
    if (is_snapshot(entry.path())) {
      whole.push_back(entry.path());
    }
  }
  // In this order: whatever was found and is not in here is whole.
  const std::set<std::string> own = names_in_writing();
  std::erase_if(whole, [&](const fs::path& path) { return own.contains(path.filename()); });
  // One with a later time than now is of a clock that was wrong. It must not outlive the others.
  const std::string now = std::string(kNamePrefix) + utc_now();
  std::sort(whole.begin(), whole.end(), [&](const fs::path& a, const fs::path& b) {
    const auto age = [&](const fs::path& path) {
      const std::string name = path.filename();
      return std::pair(name.compare(0, now.size(), now) <= 0, name);
    };
    return age(a) < age(b);
  });
  const std::size_t most = limit() - std::min(limit(), own.size());
  for (std::size_t i = 0; i + most < whole.size(); ++i) {
    const std::string stem = (whole[i].parent_path() / whole[i].stem()).string();
    if (is_written_here(whole[i].filename()) || is_written_elsewhere(stem)) {
      continue;
    }
    // The .tsv last: if this process is killed in between, the snapshot is still found.
    for (const char* ending : {".gaps.tsv", ".meta.json", ".tsv"}) {
      fs::remove(stem + ending, error);
    }
  }
}

Snapshots::Snapshots(std::shared_ptr<CutSink> cuts, FlightRecorderOptions options)
    : cuts_(std::move(cuts)), folder_(std::make_shared<Folder>()) {
  folder_->options = std::move(options);
}

std::vector<std::string> Snapshots::warnings() const {
  const FlightRecorderOptions& options = folder_->options;
  const std::chrono::nanoseconds kept = cuts_->kept();
  if (rules_.empty() || options.before <= kept) {
    return {};
  }
  return {std::string("the snapshots of rules reach back ") + human::duration(kept) + ", not " +
          human::duration(options.before) + " (FlightRecorderOptions::before): " +
          (options.keep < options.before
               ? std::string("only the rows of ") + human::duration(options.keep) +
                     " are kept (FlightRecorderOptions::keep)"
               : "at this interval, no more rows of so many columns fit into the memory")};
}

Result<void> Snapshots::open(const RecordingInfo& info) {
  const FlightRecorderOptions& options = folder_->options;
  if (options.keep.count() < 0) {
    return Error{Code::invalid_argument,
                 "flight recorder option keep = " + std::to_string(options.keep.count()) +
                     " ns: must be 0 or more",
                 0};
  }
  if (Result<void> span = check_span("the flight recorder's rules cannot take snapshots",
                                     options.before, options.after);
      !span) {
    return span;
  }
  std::vector<Rule> rules;
  for (const std::string& text : options.rules) {
    Result<Rule> rule = Rule::parse(text);
    if (!rule) {
      return rule.error();
    }
    if (Result<void> bound = rule->bind(info.columns, info.interval); !bound) {
      return bound;
    }
    rules.push_back(*std::move(rule));
  }
  // If the sink is open already, the rules are in use.
  if (Result<void> opened = cuts_->open(info); !opened) {
    return opened;
  }
  folder_->forget_failures();  // of the recording before
  folder_->settle();
  rules_ = std::move(rules);
  stops_.clear();
  start_monotonic_ns_ = info.start_monotonic_ns;
  return {};
}

Result<void> Snapshots::write(const Rows& rows) {
  Result<void> kept = cuts_->write(rows);
  check_rules(rows);
  return kept;
}

Result<void> Snapshots::close(const ProfilerStats& stats) {
  if (Result<void> closed = cuts_->close(stats); !closed) {
    return closed;
  }
  const std::lock_guard lock(folder_->fired_mutex);
  if (folder_->fired_error) {
    Error error = *std::move(folder_->fired_error);
    folder_->fired_error.reset();  // the recorder may be opened again
    return error;
  }
  // A snapshot that was not begun lacks no rows.
  return folder_->failures() == 0 ? Result<void>()
                                  : Error{Code::data_loss, folder_->losses().text, 0};
}

LostRows Snapshots::lost_rows() const {
  return folder_->losses();
}

void Snapshots::gap(const Gap& gap) {
  if (gap.cause == MissCause::frozen && !rules_.empty()) {
    stops_.push_back(gap.end_ns);
  }
  cuts_->gap(gap);
}

void Snapshots::check_rules(const Rows& rows) {
  if (rows.count == 0) {
    return;
  }
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::uint64_t at_ns = rows.row(i)[0];
    // The gap comes before the row after it. What grew in a stop says nothing about the program.
    bool stopped = false;
    for (; !stops_.empty() && at_ns >= stops_.front(); stops_.pop_front()) {
      stopped = true;
    }
    for (Rule& rule : rules_) {
      if (stopped) {
        rule.forget_rows();
      }
      if (rule.fires_at(rows.row(i))) {
        fire(rule, at_ns);
      }
    }
  }
  newest_ns_.store(rows.row(rows.count - 1)[0], std::memory_order_relaxed);
}

void Snapshots::fire(const Rule& rule, std::uint64_t at_ns) {
  const FlightRecorderOptions& options = folder_->options;
  const std::string path = new_path(folder_->directory());
  const Span span{at_ns - std::min(at_ns, to_nanos(options.before)), at_ns,
                  at_ns + to_nanos(options.after)};
  const auto tell = [folder = folder_, text = rule.text(), path,
                     recorder = ForeignCall::owner()](const Result<void>& outcome) {
    folder->tell(text, outcome ? Result<std::string>(path) : outcome.error(), recorder);
  };
  const Result<CutSink::CutId> cut =
      begin(path, span, {{"request", "snapshot"}, {"reason", "rule"}, {"rule", rule.text()}}, tell);
  if (!cut) {
    tell(cut.error());
  }
}

Result<std::string> Snapshots::snapshot(const SnapshotRequest& request, bool wait) {
  if (Result<void> span = check_span("cannot take a snapshot", request.before, request.after);
      !span) {
    return span.error();
  }
  std::string path =
      new_path(request.directory.empty() ? folder_->directory() : absolute_path(request.directory));
  // Now, on the clock of the rows. If the start of this clock has moved (after a restore), the time
  // of the newest row is closer to the truth.
  const std::uint64_t at_ns =
      std::max(monotonic_ns() - start_monotonic_ns_, newest_ns_.load(std::memory_order_relaxed));
  const Span span{at_ns - std::min(at_ns, to_nanos(request.before)), at_ns,
                  at_ns + to_nanos(request.after)};
  const Result<CutSink::CutId> cut =
      begin(path, span, {{"request", "snapshot"}, {"reason", request.reason}}, {});
  if (!cut) {
    return cut.error();
  }
  if (wait) {
    const auto longest =
        std::chrono::duration_cast<std::chrono::milliseconds>(request.after + kLatestRow);
    const Result<void> finished = cuts_->wait(*cut, longest);
    if (const std::optional<Error> loss = cuts_->loss_of(*cut)) {
      return *loss;
    }
    if (!finished) {
      return finished.error();
    }
  } else if (Result<void> created = cuts_->wait_created(*cut, kCreated);
             !created && created.error().code != Code::deadline_exceeded) {
    return created.error();
  }
  return path;
}

Result<CutSink::CutId> Snapshots::begin(const std::string& path, const Span& span,
                                        nlohmann::json about, const Told& told) {
  CutOptions options;
  // A request is answered with the error if its files cannot be created. So only a rule, which
  // nobody may listen to, counts that as a failure.
  options.created = [folder = folder_, told](const Result<void>& created) {
    if (told) {
      if (!created) {
        folder->count_failure(created.error());
      }
      told(created);
    }
  };
  options.over = [folder = folder_, told](const Result<void>& kept) {
    if (kept) {
      return;
    }
    folder->count_failure(kept.error());
    if (told) {
      told(kept);
    }
  };
  if (const std::string own = folder_->directory();
      !folder_->options.directory.empty() &&
      path.starts_with(own + '/' + std::string(kNamePrefix))) {
    Result<std::shared_ptr<const Place>> place = folder_->reserve(path);
    if (!place) {
      if (told) {
        folder_->count_refusal();
      }
      return place.error();
    }
    // The cut keeps its functions, and so the place, until it is over.
    options.prepare = [folder = folder_, kept = *std::move(place)] { return folder->prepare(); };
  }
  Result<CutSink::CutId> cut =
      cuts_->begin(path, span.from_ns, std::move(about), std::move(options));
  if (!cut && told) {
    folder_->count_failure(cut.error());
  }
  if (cut) {
    cuts_->mark(*cut, "snapshot", span.at_ns);
    cuts_->end(*cut, span.until_ns, nlohmann::json::object());
  }
  return cut;
}

}  // namespace kymo
