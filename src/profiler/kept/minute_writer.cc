#include "profiler/kept/minute_writer.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <set>
#include <utility>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/helper_process.h"
#include "base/proc/process.h"
#include "base/reap.h"
#include "profiler/kept/sqlite_store.h"

namespace kymo::profiles {
namespace {

// The programs that are profiled need the CPU more. At the end the program that started the keeper waits.
constexpr int kNice = 10;

// The sum of profiles that were pulled.
Result<Minute> added(const TakenMinute& taken) {
  Minute minute{taken.minute, taken.type, taken.begin_unix_ns, {}};
  minute.profile.quantity = quantity_of(taken.type);
  bool first = true;
  for (const PulledProfile& pulled : taken.pulled) {
    Result<stacks::NamedProfile> read =
        stacks::read_pprof(pulled.profile, "a profile that was pulled", quantity_of(taken.type));
    if (!read) return read.error();
    for (stacks::NamedProfile::Stack& stack : read->stacks) stack.service = pulled.service;
    const std::uint64_t duration_ns = std::max(minute.profile.duration_ns, read->duration_ns);
    if (std::exchange(first, false)) minute.profile.period_ns = read->period_ns;
    if (const Result<void> one = stacks::add(minute.profile, *read); !one) return one.error();
    // The answers were taken at the same time, so their durations are not added.
    minute.profile.duration_ns = taken.type == Type::go_cpu ? duration_ns : taken.duration_ns;
  }
  return minute;
}

// Whether the answer of a process that reads names has just the samples and services that it was
// asked about.
bool matches(const stacks::NamedProfile& said, const TakenMinute& taken) {
  std::set<std::string> services;
  for (const auto& [trace, weight] : taken.traces) services.insert(trace.service);
  return said.sum().samples == taken.samples() &&
         std::all_of(said.stacks.begin(), said.stacks.end(),
                     [&](const auto& stack) { return services.contains(stack.service); });
}

// The minute as it is stored. The process that reads the names is not trusted: its answer is read
// like any file.
Result<Minute> named(const TakenMinute& taken, MinuteWriter::Namer namer) {
  if (!taken.pulled.empty()) return added(taken);
  stacks::Profile profile;
  profile.waits = taken.type == Type::off_cpu;
  profile.period_ns = taken.period_ns;
  profile.begin_unix_ns = taken.begin_unix_ns;
  profile.duration_ns = taken.duration_ns;
  profile.counts.lost = taken.lost;
  profile.traces = taken.traces;
  const Result<std::string> file = namer(profile);
  if (!file) return file.error();
  Result<stacks::NamedProfile> read =
      stacks::read_pprof(*file, "the stacks of a minute", quantity_of(taken.type));
  if (!read) return read.error();
  if (!matches(*read, taken)) {
    return Error{Code::data_loss, "the process that reads names sent an answer that is not valid"};
  }
  return Minute{taken.minute, taken.type, taken.begin_unix_ns, *std::move(read)};
}

}  // namespace

void MinuteWriter::add(TakenMinute minute) {
  waiting_.push_back(std::move(minute));
  try_again_ = true;
  while (minutes() > kMaxMinutes && waiting_.size() > writing_ + 1) {
    const auto oldest = waiting_.begin() + static_cast<std::ptrdiff_t>(writing_);
    fail(oldest->samples() + oldest->lost, "it has waited too long");
    waiting_.erase(oldest);
  }
}

// How many minutes wait. A minute has an entry for each of its types.
std::size_t MinuteWriter::minutes() const {
  std::set<std::int64_t> minutes;
  for (const TakenMinute& taken : waiting_) minutes.insert(taken.minute);
  return minutes.size();
}

void MinuteWriter::look() {
  if (child_ != 0) reap();
  if (child_ == 0 && try_again_ && !waiting_.empty()) start();
}

void MinuteWriter::reap() {
  int status = 0;
  const pid_t got = ::waitpid(child_, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return;
  child_ = 0;
  const bool exited = got > 0 && WIFEXITED(status);
  const std::size_t kept =
      exited ? std::min(writing_, static_cast<std::size_t>(WEXITSTATUS(status))) : 0;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(kept));
  // After a failure, the next try is when the next minute is added.
  try_again_ = kept == writing_;
  writing_ = 0;
  if (exited) return;
  fail(0, "the process that writes them " + (got > 0 ? how_it_ended(status) : "is gone"));
}

void MinuteWriter::start() {
  const Result<pid_t> child = fork_child(
      {.ends = ChildLife::Ends::by_itself, .nice = ends_ ? 0 : kNice}, [this] { return write(); });
  if (!child) return;  // it is tried again
  child_ = *child;
  writing_ = waiting_.size();
}

// The life of the child. Its exit code is the number of minutes that it has written.
int MinuteWriter::write() const {
  static_cast<void>(::close(lock_));
  std::size_t kept = 0;
  Result<void> done;
  try {
    done = keep(kept);
  } catch (const std::exception& error) {  // no memory
    done = Error{Code::resource_exhausted, error.what()};
  }
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    samples += waiting_[i].samples();
    lost += waiting_[i].lost;
  }
  if (kept != 0) write_line(answers_, kKept + std::to_string(samples) + " " + std::to_string(lost));
  if (!done) fail(0, done.error().message);
  return static_cast<int>(kept);
}

// `kept`: the number of minutes that were written.
Result<void> MinuteWriter::keep(std::size_t& kept) const {
  const std::string path = order_.directory + "/" + SqliteStore::kFileName;
  Result<std::unique_ptr<SqliteStore>> store = SqliteStore::open(path);
  if (!store) return store.error();
  for (const TakenMinute& taken : waiting_) {
    const Result<Minute> minute = named(taken, namer_);
    if (!minute) return minute.error();
    if (Result<void> added = (*store)->add(*minute); !added) return added;
    ++kept;
  }
  const Result<Removed> removed = (*store)->keep_within(order_.limits);
  if (!removed) return removed.error();
  if (removed->minutes() != 0) write_line(answers_, kRemoved + removed_text(*removed));
  return {};
}

void MinuteWriter::fail(std::uint64_t lost, const std::string& why) const {
  write_line(answers_, kFailed + std::to_string(lost) + " " + why);
}

void MinuteWriter::finish(int ms) {
  ends_ = true;
  const std::uint64_t until_ns = monotonic_ns() + static_cast<std::uint64_t>(ms) * 1'000'000;
  for (look(); child_ != 0 && monotonic_ns() < until_ns; look()) {
    const FileDescriptor child(probe::open_process(child_));
    pollfd ended{child.get(), POLLIN, 0};
    constexpr int kLookMs = 100;
    static_cast<void>(::poll(&ended, 1, kLookMs));
  }
  if (child_ != 0) return;
  std::uint64_t lost = 0;
  for (const TakenMinute& minute : waiting_) lost += minute.samples() + minute.lost;
  if (lost != 0) fail(lost, "kymod stopped before that was possible");
}

}  // namespace kymo::profiles
