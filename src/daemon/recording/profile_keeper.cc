#include "daemon/recording/profile_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/proc/process.h"
#include "base/reap.h"
#include "lens/report/human.h"

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kFirstPauseNs = 10 * kNanosPerSecond;
constexpr std::uint64_t kMaxPauseNs = 600 * kNanosPerSecond;
constexpr std::uint64_t kReadyWithinNs = 10 * kNanosPerSecond;
constexpr int kWaitAtEndMs = 10'000;
constexpr std::uint64_t kNoteShownNs = 3600 * kNanosPerSecond;
constexpr std::uint64_t kSayRemovedEveryNs = 3600 * kNanosPerSecond;

// The number at the beginning of a text; moves the text behind it and the space that follows.
std::uint64_t take_number(std::string_view& text) {
  const std::string digits(text.substr(0, text.find(' ')));
  text.remove_prefix(std::min(digits.size() + 1, text.size()));
  return std::strtoull(digits.c_str(), nullptr, 10);
}

}  // namespace

ProfileKeeper::ProfileKeeper(profiles::KeeperOrder order, Metrics& metrics)
    : order_(std::move(order)), metrics_(metrics) {}

ProfileKeeper::~ProfileKeeper() {
  if (keeper_.pid == 0) return;
  end();
  const FileDescriptor process(probe::open_process(keeper_.pid));
  pollfd ended{process.get(), POLLIN, 0};
  static_cast<void>(::poll(&ended, 1, kWaitAtEndMs));
  read_answers();
  say_removed();
  if (::waitpid(keeper_.pid, nullptr, WNOHANG) == 0) {
    spdlog::warn(
        "stack profiles: the process that keeps them did not end within 10 s, because no CPU was "
        "free or the disk of {} does not answer: the newest minute may be missing",
        order_.directory);
  }
}

void ProfileKeeper::look(const profiles::JobSessions& jobs,
                         const std::vector<std::string>& containers) {
  std::string text = profiles::jobs_text(jobs) + profiles::containers_text(containers);
  if (keeper_.pid == 0 && monotonic_ns() >= next_ns_) {
    if (const Result<void> started = start(text); !started) trouble(started.error().message);
  }
  if (keeper_.pid == 0) return;
  read_answers();
  tell(std::move(text));
  notice_silence();
  reap();
}

std::string ProfileKeeper::not_kept() const {
  const std::lock_guard lock(mutex_);
  return not_kept_;
}

void ProfileKeeper::set_not_kept(const std::string& why) {
  metrics_.set_profiles_not_kept(!why.empty());
  const std::lock_guard lock(mutex_);
  not_kept_ = why;
}

Result<void> ProfileKeeper::start(std::string jobs_and_containers) {
  pause_ns_ = std::clamp(2 * pause_ns_, kFirstPauseNs, kMaxPauseNs);
  next_ns_ = monotonic_ns() + pause_ns_;
  Result<HelperProcess> keeper =
      start_helper(profiles::kKeeperArgument, profiles::order_text(order_) + jobs_and_containers);
  if (!keeper) return keeper.error();
  keeper_ = *std::move(keeper);
  lines_ = LineReader(keeper_.answers.get());
  told_ = std::move(jobs_and_containers);
  no_stacks_.clear();
  ready_ = false;
  started_ns_ = monotonic_ns();
  ::fcntl(keeper_.orders.get(), F_SETFL, O_NONBLOCK);
  return {};
}

void ProfileKeeper::read_answers() {
  while (lines_.read()) {
  }
  while (const std::optional<std::string> line = lines_.take()) take(*line);
}

void ProfileKeeper::take(const std::string& line) {
  constexpr std::string_view kKept = profiles::kKept;
  constexpr std::string_view kFailed = profiles::kFailed;
  constexpr std::string_view kError = profiles::kError;
  constexpr std::string_view kNoStacks = profiles::kNoStacks;
  constexpr std::string_view kTrouble = profiles::kTrouble;
  constexpr std::string_view kPulled = profiles::kPulled;
  constexpr std::string_view kNote = profiles::kNote;
  constexpr std::string_view kRemoved = profiles::kRemoved;
  std::string_view text = line;
  if (text == profiles::kReady) {
    ready_ = true;
    set_not_kept("");
    spdlog::info("stack profiles are kept in {}", order_.directory);
  } else if (text.starts_with(kKept)) {
    text.remove_prefix(kKept.size());
    const std::uint64_t samples = take_number(text);
    metrics_.profiles_kept(samples, take_number(text));
    if (!trouble_.empty()) spdlog::info("stack profiles are kept again");
    trouble_.clear();
    set_not_kept(no_stacks_);
    pause_ns_ = 0;
  } else if (text.starts_with(kFailed)) {
    text.remove_prefix(kFailed.size());
    metrics_.profiles_failed(take_number(text));
    trouble("a minute is not written: " + std::string(text));
  } else if (text.starts_with(kPulled)) {
    text.remove_prefix(kPulled.size());
    if (const auto counts = profiles::pulled_counts_in(text)) metrics_.profiles_pulled(*counts);
  } else if (text.starts_with(kNoStacks)) {
    text.remove_prefix(kNoStacks.size());
    metrics_.profiles_failed(0);
    no_stacks_ = std::string(text) + "; profiles are only pulled";
    set_not_kept(no_stacks_);
    spdlog::warn("stack profiles (--profiles): {}", no_stacks_);
  } else if (text.starts_with(kTrouble)) {
    text.remove_prefix(kTrouble.size());
    metrics_.profiles_failed(0);
    spdlog::warn("stack profiles (--profiles): {}; kymod tries again", text);
  } else if (text.starts_with(kNote)) {
    text.remove_prefix(kNote.size());
    note(text);
  } else if (text.starts_with(kRemoved)) {
    text.remove_prefix(kRemoved.size());
    if (const auto gone = profiles::removed_in(text)) removed(*gone);
  } else if (text.starts_with(kError)) {
    text.remove_prefix(kError.size());
    metrics_.profiles_failed(0);
    trouble(std::string(text));
  }
}

// The pipe has room, because the process reads it; if not, it is tried again.
void ProfileKeeper::tell(std::string text) {
  if (text == told_) return;
  std::size_t written = 0;
  const int error = write_all(keeper_.orders.get(), text, &written);
  if (error == 0) told_ = std::move(text);
}

// The keeper works for about a second before it takes samples. If that takes much longer, its disk may not answer.
void ProfileKeeper::notice_silence() {
  if (ready_ || monotonic_ns() - started_ns_ < kReadyWithinNs) return;
  trouble("they are not taken yet: the disk of " + order_.directory + " may not answer");
}

void ProfileKeeper::reap() {
  int status = 0;
  const pid_t got = ::waitpid(keeper_.pid, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return;
  read_answers();
  keeper_.pid = 0;
  keeper_.orders.reset();
  // A process that gives up has said why.
  if (got > 0 && (WIFSIGNALED(status) || not_kept().empty())) {
    metrics_.profiles_failed(0);
    trouble("the process that takes them " + how_it_ended(status));
  }
}

void ProfileKeeper::note(std::string_view text) {
  metrics_.profiles_failed(0);
  spdlog::warn("stack profiles (--profiles): {}", text);
  const std::lock_guard lock(mutex_);
  clock_note_ = text;
  clock_note_ns_ = monotonic_ns();
}

std::string ProfileKeeper::clock_note() const {
  const std::lock_guard lock(mutex_);
  return monotonic_ns() - clock_note_ns_ < kNoteShownNs ? clock_note_ : std::string();
}

// With --profiles-keep-days, a minute is removed each minute. So the log says what was removed once an hour.
void ProfileKeeper::removed(const profiles::Removed& removed) {
  metrics_.profiles_removed(removed.minutes());
  unsaid_.add(removed);
  if (monotonic_ns() >= say_removed_ns_) say_removed();
}

void ProfileKeeper::say_removed() {
  if (unsaid_.minutes() == 0) return;
  say_removed_ns_ = monotonic_ns() + kSayRemovedEveryNs;
  const auto time = [](std::int64_t minute) {
    return report::wall_clock(minute * profiles::kNanosPerMinute);
  };
  spdlog::info(
      "stack profiles: removed {} minutes, taken from {} to {}: {} are more than "
      "--profiles-keep-days allows, {} more than --profiles-keep-bytes",
      unsaid_.minutes(), time(unsaid_.oldest), time(unsaid_.newest), unsaid_.too_old,
      unsaid_.too_many);
  unsaid_ = {};
}

void ProfileKeeper::trouble(const std::string& why) {
  set_not_kept(why);
  if (why == trouble_) return;
  trouble_ = why;
  spdlog::warn("stack profiles (--profiles): {}; kymod tries again", why);
}

}  // namespace kymo::daemon
