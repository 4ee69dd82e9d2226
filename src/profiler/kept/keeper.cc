#include "profiler/kept/keeper.h"

#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/helper_process.h"
#include "base/line_reader.h"
#include "base/lock.h"
#include "base/own_folder.h"
#include "profiler/kept/minute_writer.h"
#include "profiler/kept/puller.h"
#include "profiler/kept/reading.h"
#include "profiler/kept/sqlite_store.h"
#include "profiler/kept/taken.h"

namespace kymo::profiles {
namespace {

// The writer of the last minute may take this long.
constexpr int kFinishMs = 10'000;
// Behind the order: the jobs and the containers.
constexpr std::size_t kFirstLines = 2;
// kymod looks at its jobs each second. So it may say only after the end of a minute which jobs began in it.
constexpr std::uint64_t kJobsKnownNs = 2 * kNanosPerSecond;

std::int64_t minute_now() {
  return unix_ns() / kNanosPerMinute;
}

// Nobody sets this clock. It goes on while the machine sleeps.
std::int64_t minutes_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::int64_t>(to_nanos(now)) / kNanosPerMinute;
}

// Makes the folder, takes its lock and tries the file. Returns the folder, which holds the lock.
Result<FileDescriptor> open_folder(const std::string& path) {
  Result<FileDescriptor> folder = make_own_folder(path);
  if (!folder) {
    const Error& error = folder.error();
    return Error{error.code, "use the folder " + path + ": " + error.message, error.errno_value};
  }
  FileDescriptor held(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!held.valid()) return system_error("open the folder " + path, errno);
  if (const int error = lock_within(held.get(), kLockPatience); error != 0) {
    if (error != EWOULDBLOCK) return system_error("lock the folder " + path, error);
    return Error{Code::unavailable, path + " is used by another kymod: name another folder"};
  }
  const auto store = SqliteStore::open(path + "/" + SqliteStore::kFileName);
  if (!store) return store.error();
  static_cast<void>(::mkdir((path + "/" + kFilesFolder).c_str(), S_IRWXU));  // nothing needs it
  return held;
}

class Keeper {
 public:
  // `folder` has the lock of the folder.
  Keeper(const KeeperOrder& order, LineReader orders, int answers, int folder)
      : services_(order.only),
        writer_(order, answers, folder),
        puller_(order.pull, order.pull_every_s, answers),
        orders_(std::move(orders)),
        answers_(answers),
        folder_(folder) {}

  // Takes what the program has said so far.
  void take_orders();
  Result<void> begin(const KeeperOrder& order) {
    for (const Type type : {Type::cpu, Type::off_cpu}) {
      if (type == Type::off_cpu && !order.off_cpu) continue;
      Result<std::unique_ptr<StackTaker>> taker = StackTaker::begin(type, order.rate, services_);
      if (!taker) return Error{taker.error().code, stacks::why_no_bpf(taker.error())};
      takers_.push_back(*std::move(taker));
    }
    return {};
  }
  // Until the program says that it is over, or is gone.
  void run();

 private:
  void close_minute();
  void write_closed();
  void write(TakenMinute taken);

  ServiceFinder services_;
  std::vector<std::unique_ptr<StackTaker>> takers_;
  MinuteWriter writer_;
  Puller puller_;
  LineReader orders_;
  int answers_;
  int folder_;
  std::int64_t minute_ = minute_now();
  std::int64_t began_ = minutes_since_boot();  // when the minute began
  std::vector<TakenMinute> closed_;            // of the last minute, until the jobs in it are known
  std::uint64_t closed_ns_ = 0;                // when it was over
};

void Keeper::take_orders() {
  while (const std::optional<std::string> line = orders_.take()) {
    if (std::optional<JobSessions> jobs = jobs_in(*line)) services_.set_jobs(*std::move(jobs));
    if (const auto cgroups = containers_in(*line)) services_.set_containers(*cgroups);
  }
}

void Keeper::write(TakenMinute taken) {
  services_.divide(taken);
  writer_.add(std::move(taken));
}

void Keeper::write_closed() {
  for (TakenMinute& taken : closed_) write(std::move(taken));
  closed_.clear();
}

void Keeper::close_minute() {
  write_closed();  // if the clock of the machine was set, the last minute was short
  for (const auto& taker : takers_) closed_.push_back(taker->take(minute_));
  for (TakenMinute& pulled : puller_.take(minute_)) closed_.push_back(std::move(pulled));
  closed_ns_ = monotonic_ns();
  services_.close_minute();
  const std::int64_t now = minute_now();
  const std::int64_t passed = minutes_since_boot() - began_;
  if (const std::string note = clock_note(minute_, now, passed); !note.empty()) {
    write_line(answers_, kNote + note);
  }
  minute_ = now;
  began_ += passed;
}

void Keeper::run() {
  std::vector<pollfd> ready{{orders_.fd(), POLLIN, 0}};
  for (const auto& taker : takers_) ready.push_back({taker->fd(), POLLIN, 0});
  for (;;) {
    static_cast<void>(::poll(ready.data(), ready.size(), stacks::Collection::kRoundMs));
    for (const auto& taker : takers_) taker->round();
    puller_.look();
    if (ready[0].revents != 0 && !orders_.read()) break;  // the program has closed its end
    take_orders();
    if (minute_now() != minute_) close_minute();
    if (monotonic_ns() - closed_ns_ >= kJobsKnownNs) write_closed();
    writer_.look();
  }
  write_closed();
  for (const auto& taker : takers_) write(taker->finish(minute_));
  for (TakenMinute& pulled : puller_.take(minute_)) writer_.add(std::move(pulled));
  // Nothing more is taken, so another keeper may begin. To write the rest may take long.
  static_cast<void>(::flock(folder_, LOCK_UN));
  writer_.finish(kFinishMs);
}

}  // namespace

int keep(int orders, int answers) {
  answers = begin_helper("kymod-profiles", answers);
  allow_many_files();  // each module needs one
  LineReader lines(orders);
  const std::optional<std::string> line = lines.next();
  const std::optional<KeeperOrder> order = line ? order_in(*line) : std::nullopt;
  if (!order) return 1;
  if (!lines.wait_for_lines(kFirstLines)) return 1;
  const Result<FileDescriptor> folder = open_folder(order->directory);
  Keeper keeper(*order, std::move(lines), answers, folder ? folder->get() : -1);
  keeper.take_orders();
  const Result<void> begun = folder ? keeper.begin(*order) : folder.error();
  if (!begun && (!folder || order->pull.place.empty())) {
    write_line(answers, kError + begun.error().message);
    return 1;
  }
  write_line(answers, kReady);
  if (!begun) write_line(answers, kNoStacks + begun.error().message);
  keeper.run();
  return 0;
}

}  // namespace kymo::profiles
