#include "checkpoint/runtimes/process/reaper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/proc/process.h"
#include "base/reap.h"

namespace kymo::runtime {
namespace {

// Returns the wait status in the form of waitpid(2).
int wait_status_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return W_EXITCODE(info.si_status, 0);
  return info.si_code == CLD_DUMPED ? info.si_status | WCOREFLAG : info.si_status;
}

}  // namespace

struct Reaper::State {
  struct Child {
    ProcessId id;
    int fd = -1;  // readable once the process has ended
  };

  Ended ended;
  int wake_fd = -1;
  std::mutex mutex;
  std::condition_variable reaped;
  std::map<pid_t, Child> children;  // guarded by mutex
  bool stopping = false;            // guarded by mutex
  std::thread thread;

  ~State() {
    for (const auto& [pid, child] : children) {
      close(child.fd);
    }
    if (wake_fd >= 0) {
      close(wake_fd);
    }
  }

  void wake() {
    const std::uint64_t one = 1;
    while (write(wake_fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  // Fills in the descriptors to poll, wake_fd first. Returns false if the thread must stop.
  bool collect(std::vector<pollfd>& fds, std::vector<pid_t>& pids) {
    const std::lock_guard lock(mutex);
    fds.assign(1, {wake_fd, POLLIN, 0});
    pids.assign(1, 0);
    for (const auto& [pid, child] : children) {
      fds.push_back({child.fd, POLLIN, 0});
      pids.push_back(pid);
    }
    return !stopping;
  }

  ProcessId id_of(pid_t pid) {
    const std::lock_guard lock(mutex);
    return children.at(pid).id;
  }

  // Reaps the process after `ended` has returned. While `ended` runs, the process is still a zombie
  // and still watched, so other threads see that its end is not handled yet.
  void report_and_reap(pid_t pid) {
    siginfo_t info{};
    int error = 0;
    do {
      error = waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    } while (error < 0 && errno == EINTR);
    if (error == 0 && info.si_pid == 0) {
      return;
    }
    if (ended) {
      ended(id_of(pid), error == 0 ? wait_status_of(info) : 0);
    }
    reap(pid);
    {
      const std::lock_guard lock(mutex);
      const auto it = children.find(pid);
      close(it->second.fd);
      children.erase(it);
    }
    reaped.notify_all();
  }

  void run() {
    std::vector<pollfd> fds;
    std::vector<pid_t> pids;
    while (collect(fds, pids)) {
      if (poll(fds.data(), fds.size(), -1) < 0) {
        continue;  // interrupted by a signal
      }
      std::uint64_t count = 0;
      if (fds[0].revents != 0 && read(wake_fd, &count, sizeof count) < 0) {
        continue;
      }
      for (std::size_t i = 1; i < fds.size(); ++i) {
        if (fds[i].revents != 0) {
          report_and_reap(pids[i]);
        }
      }
    }
  }
};

Reaper::Reaper(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Reaper>> Reaper::start(Ended ended) {
  auto state = std::make_unique<State>();
  state->ended = std::move(ended);
  state->wake_fd = eventfd(0, EFD_CLOEXEC);
  if (state->wake_fd < 0) {
    return system_error("cannot watch for processes that end", errno);
  }
  State* raw = state.get();
  state->thread = std::thread([raw] { raw->run(); });
  return std::unique_ptr<Reaper>(new Reaper(std::move(state)));
}

Reaper::~Reaper() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake();
  state_->thread.join();
}

Result<void> Reaper::watch(const ProcessId& child) {
  const int fd = probe::open_process(child.pid);
  if (fd < 0) {
    return system_error("cannot watch process " + std::to_string(child.pid), errno);
  }
  {
    std::unique_lock lock(state_->mutex);
    // A restored process gets the pid of an earlier one, which may be being reaped just now. Wait
    // until that is done.
    state_->reaped.wait(lock, [&] {
      const auto old = state_->children.find(child.pid);
      return old == state_->children.end() || old->second.id.start_ticks == child.start_ticks;
    });
    const auto [it, added] = state_->children.try_emplace(child.pid, State::Child{child, fd});
    if (!added) {
      close(fd);  // it is watched already
    }
  }
  state_->wake();
  return {};
}

bool Reaper::watches(pid_t pid) {
  const std::lock_guard lock(state_->mutex);
  return state_->children.contains(pid);
}

bool Reaper::wait_reaped(pid_t pid, std::chrono::milliseconds timeout) {
  std::unique_lock lock(state_->mutex);
  return state_->reaped.wait_for(lock, timeout, [&] { return !state_->children.contains(pid); });
}

}  // namespace kymo::runtime
