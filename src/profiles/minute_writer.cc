#include "profiles/minute_writer.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "probe/process.h"
#include "profiles/sqlite_store.h"
#include "stacks/confined_pprof.h"

namespace kymo::profiles {
namespace {

// The programs that are profiled need the CPU more.
constexpr int kNice = 10;

// The minute as it is stored. The process that reads the names is not trusted: its answer is read like
// any file.
Result<Minute> named(const TakenMinute& taken) {
  stacks::Profile profile;
  profile.waits = taken.type == Type::off_cpu;
  profile.period_ns = taken.period_ns;
  profile.begin_unix_ns = taken.begin_unix_ns;
  profile.duration_ns = taken.duration_ns;
  profile.counts.lost = taken.lost;
  profile.traces = taken.traces;
  const Result<std::string> file = stacks::confined_pprof(profile);
  if (!file) return file.error();
  Result<stacks::NamedProfile> read = stacks::read_pprof(*file, "the stacks of a minute");
  if (!read) return read.error();
  return Minute{taken.minute, taken.type, *std::move(read)};
}

std::uint64_t samples_of(const std::deque<TakenMinute>& minutes) {
  std::uint64_t sum = 0;
  for (const TakenMinute& minute : minutes) sum += minute.samples();
  return sum;
}

void say(int to, const std::string& line) {
  std::size_t written = 0;
  static_cast<void>(write_all(to, line + "\n", &written));
}

}  // namespace

void MinuteWriter::add(TakenMinute minute) {
  waiting_.push_back(std::move(minute));
  while (waiting_.size() > kMostWaiting) {
    given_up_ += waiting_.front().samples() + waiting_.front().lost;
    waiting_.pop_front();
  }
}

void MinuteWriter::look() {
  if (child_ != 0) reap();
  if (child_ == 0 && !waiting_.empty()) start();
}

void MinuteWriter::reap() {
  int status = 0;
  const pid_t got = ::waitpid(child_, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return;
  child_ = 0;
  if (got < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return;
  fail(child_samples_, "the process that writes them was ended by signal " +
                           std::to_string(WIFSIGNALED(status) ? WTERMSIG(status) : 0));
}

void MinuteWriter::start() {
  const pid_t child = ::fork();
  if (child == 0) write();
  if (child < 0) return;  // it is tried again
  child_ = child;
  child_samples_ = samples_of(waiting_) + given_up_;
  waiting_.clear();
  given_up_ = 0;
}

// The life of the child. It does not end by exit(), because what that destroys belongs to the keeper.
void MinuteWriter::write() const {
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, kNice));
  std::uint64_t samples = 0;
  Result<void> kept;
  try {
    kept = keep(samples);
  } catch (const std::exception& error) {  // no memory
    kept = Error{Code::resource_exhausted, error.what()};
  }
  std::uint64_t lost = given_up_;
  for (const TakenMinute& minute : waiting_) lost += minute.lost;
  const std::uint64_t all = samples_of(waiting_);
  if (!kept) fail(all - samples + lost, kept.error().message);
  if (kept) say(answers_, kKept + std::to_string(samples) + " " + std::to_string(lost));
  ::_exit(0);
}

Result<void> MinuteWriter::keep(std::uint64_t& samples) const {
  const std::string path = order_.directory + "/" + SqliteStore::kFileName;
  Result<std::unique_ptr<SqliteStore>> store = SqliteStore::open(path);
  if (!store) return store.error();
  for (const TakenMinute& taken : waiting_) {
    const Result<Minute> minute = named(taken);
    if (!minute) return minute.error();
    if (Result<void> added = (*store)->add(*minute); !added) return added;
    samples += taken.samples();
  }
  return (*store)->keep_within(order_.limits, unix_ns() / kNanosPerMinute);
}

void MinuteWriter::fail(std::uint64_t lost, const std::string& why) const {
  say(answers_, kFailed + std::to_string(lost) + " " + why);
}

void MinuteWriter::finish(int ms) {
  const std::uint64_t until_ns = monotonic_ns() + static_cast<std::uint64_t>(ms) * 1'000'000;
  for (look(); !idle() && monotonic_ns() < until_ns; look()) {
    const FileDescriptor child(probe::open_process(child_));
    pollfd ended{child.get(), POLLIN, 0};
    constexpr int kLookMs = 100;
    static_cast<void>(::poll(&ended, 1, kLookMs));
  }
}

}  // namespace kymo::profiles
