#include "base/proc/directory_bytes.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/patience.h"

namespace kymo::probe {
namespace {

using Sizes = std::map<std::string, std::uint64_t>;

// While the folder's mtime does not change, it is listed only once in this many ticks.
constexpr int kTicksBetweenLists = 50;
// The mtime of a folder changes in the coarse ticks of the kernel (4 ms at 250 Hz). A file that is
// made within the tick of the last listing does not change it. So the folder is listed again as
// long as its mtime is newer than this.
constexpr std::int64_t kMtimeSettlesNs = 20'000'000;
// How long finish() waits for a disk that does not answer.
constexpr std::chrono::milliseconds kPatience{2000};

std::int64_t nanoseconds(const statx_timestamp& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

std::int64_t wall_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Lists the names in the folder, each with its size in `known`, or 0. `dir_fd` stays open.
bool list_names(int dir_fd, const Sizes& known, Sizes& names) {
  // Do not duplicate the descriptor: it would share the read position with other listings.
  const int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  DIR* dir = fdopendir(fd);
  if (dir == nullptr) {
    close(fd);
    return false;
  }
  names.clear();
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") {
      continue;
    }
    const auto it = known.find(name);
    names.emplace(name, it == known.end() ? 0 : it->second);
  }
  closedir(dir);
  return true;
}

struct Sums {
  std::uint64_t total = 0;
  std::uint64_t pages = 0;
};

// Sets the sizes and returns their sums. A file that is gone has size 0.
Sums sum_sizes(int dir_fd, Sizes& names, int sync_flag) {
  Sums sums;
  for (auto& [name, size] : names) {
    struct statx st {};
    const int rc = statx(dir_fd, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | sync_flag,
                         STATX_TYPE | STATX_SIZE, &st);
    if (rc == 0) {
      size = S_ISREG(st.stx_mode) ? st.stx_size : 0;
    } else if (errno == ENOENT) {
      size = 0;
    }
    sums.total += size;
    if (name.starts_with("pages-")) {
      sums.pages += size;
    }
  }
  return sums;
}

Result<int> open_directory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return system_error("cannot read the folder " + path, errno);
  }
  return fd;
}

}  // namespace

Result<std::uint64_t> directory_bytes(const std::string& path) {
  Result<int> fd = open_directory(path);
  if (!fd) {
    return fd.error();
  }
  Sizes names;
  if (!list_names(*fd, {}, names)) {
    const Error error = system_error("cannot list the folder " + path, errno);
    close(*fd);
    return error;
  }
  const std::uint64_t total = sum_sizes(*fd, names, AT_STATX_SYNC_AS_STAT).total;
  close(*fd);
  return total;
}

struct DirectoryBytesWatcher::State {
  Report report;
  PagesReport pages_report;
  std::function<void()> each_look;
  int dir_fd = -1;
  int timer_fd = -1;
  int stop_fd = -1;
  std::mutex mutex;
  std::condition_variable over;
  bool ended = false;      // guarded by mutex: the last total was reported
  bool abandoned = false;  // guarded by mutex: report nothing any more
  std::thread thread;
  bool finished = false;  // only finish() uses it
  // Only the watching thread uses what follows, except for `total`.
  Sizes names;
  std::int64_t listed_mtime_ns = -1;
  int ticks_since_list = 0;
  std::uint64_t total = 0;  // guarded by mutex

  ~State() {
    for (const int fd : {dir_fd, timer_fd, stop_fd}) {
      if (fd >= 0) {
        close(fd);
      }
    }
  }

  void list_if_changed() {
    struct statx st {};
    if (statx(dir_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MTIME, &st) != 0) {
      return;
    }
    const std::int64_t mtime_ns = nanoseconds(st.stx_mtime);
    const bool fresh = wall_clock_ns() - mtime_ns < kMtimeSettlesNs;
    if (mtime_ns == listed_mtime_ns && !fresh && ++ticks_since_list < kTicksBetweenLists) {
      return;
    }
    Sizes now;
    if (list_names(dir_fd, names, now)) {
      names = std::move(now);
      listed_mtime_ns = mtime_ns;
      ticks_since_list = 0;
    }
  }

  void tick() {
    if (each_look) each_look();
    list_if_changed();
    report_sums(sum_sizes(dir_fd, names, AT_STATX_DONT_SYNC), false);
  }

  // Reports the sums if the total has grown, or if it is the last report.
  void report_sums(const Sums& sums, bool last) {
    const std::lock_guard lock(mutex);
    if (abandoned || (!last && sums.total <= total)) {
      return;
    }
    total = std::max(total, sums.total);
    report(total);
    if (pages_report) {
      pages_report(total, std::min(total, sums.pages));
    }
  }

  // Reports the exact total, no matter how long the disk takes.
  void report_last() {
    Sizes now;
    Sums sums;
    if (list_names(dir_fd, names, now)) {
      sums = sum_sizes(dir_fd, now, AT_STATX_SYNC_AS_STAT);
    }
    report_sums(sums, true);
    const std::lock_guard lock(mutex);
    ended = true;
    over.notify_all();
  }

  void watch() {
    pollfd fds[] = {{stop_fd, POLLIN, 0}, {timer_fd, POLLIN, 0}};
    for (;;) {
      if (poll(fds, 2, -1) < 0) {
        continue;  // interrupted by a signal
      }
      if (fds[0].revents != 0) {
        return report_last();
      }
      std::uint64_t expirations = 0;
      if (read(timer_fd, &expirations, sizeof expirations) > 0) {
        tick();
      }
    }
  }
};

DirectoryBytesWatcher::DirectoryBytesWatcher(std::shared_ptr<State> state)
    : state_(std::move(state)) {}

Result<std::unique_ptr<DirectoryBytesWatcher>> DirectoryBytesWatcher::start(
    const std::string& path, Report report, std::chrono::microseconds interval,
    PagesReport pages_report, std::function<void()> each_look) {
  auto state = std::make_shared<State>();
  Result<int> dir_fd = open_directory(path);
  if (!dir_fd) {
    return dir_fd.error();
  }
  state->dir_fd = *dir_fd;
  state->report = std::move(report);
  state->pages_report = std::move(pages_report);
  state->each_look = std::move(each_look);
  state->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  state->stop_fd = eventfd(0, EFD_CLOEXEC);
  if (state->timer_fd < 0 || state->stop_fd < 0) {
    return system_error("cannot watch the folder " + path, errno);
  }
  const auto us = std::max<std::int64_t>(interval.count(), 1);
  const timespec period{us / 1'000'000, us % 1'000'000 * 1000};
  const itimerspec spec{period, period};
  if (timerfd_settime(state->timer_fd, 0, &spec, nullptr) != 0) {
    return system_error("cannot watch the folder " + path, errno);
  }
  state->thread = std::thread([state] { state->watch(); });
  return std::unique_ptr<DirectoryBytesWatcher>(new DirectoryBytesWatcher(std::move(state)));
}

DirectoryBytesWatcher::~DirectoryBytesWatcher() {
  finish();
}

std::uint64_t DirectoryBytesWatcher::finish() {
  State& s = *state_;
  if (s.finished) {
    return s.total;
  }
  s.finished = true;
  const std::uint64_t one = 1;
  while (write(s.stop_fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
  std::unique_lock lock(s.mutex);
  s.abandoned = !join_or_leave(
      s.thread, lock, s.over, [&s] { return s.ended; }, kPatience);
  return s.total;
}

}  // namespace kymo::probe
