#include "checkpoint/criu/drive/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/human.h"
#include "base/proc/process.h"
#include "base/reap.h"
#include "base/spawn.h"
#include "checkpoint/criu/drive/options.h"
#include "checkpoint/criu/repair/borrowed.h"
#include "checkpoint/criu/repair/connections.h"

namespace kymo::criu {
namespace {

// criu stops within this time after SIGSTOP. While it waits for its disk, it cannot stop.
constexpr std::chrono::milliseconds kStopsWithin{100};
// The longest wait for the end of criu. It ends within milliseconds after its last answer.
constexpr std::chrono::milliseconds kLingering{5000};
// criu is gone within this time after SIGKILL, unless the kernel waits for its disk. If it still
// waits in the kernel after the shorter time, that is the case.
constexpr std::chrono::milliseconds kKilledWithin{3000};
constexpr std::chrono::milliseconds kWaitsForDisk{500};

enum class Change : std::uint8_t { none, stopped, ended };

// Whether the child stopped or ended within the time, or within kRunnableStopsWithin if it only
// waits for a processor. It still has to be reaped.
Change change_of(pid_t pid, std::chrono::milliseconds within) {
  const auto began = std::chrono::steady_clock::now();
  for (;;) {
    siginfo_t seen{};
    const int rc =
        waitid(P_PID, static_cast<id_t>(pid), &seen, WSTOPPED | WEXITED | WNOWAIT | WNOHANG);
    if (rc == 0 && seen.si_pid == pid) {
      return seen.si_code == CLD_STOPPED ? Change::stopped : Change::ended;
    }
    const auto waited = std::chrono::steady_clock::now() - began;
    if (waited >= within && (waited >= kRunnableStopsWithin || !is_runnable(pid))) {
      return Change::none;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// If /proc cannot be read, the answer is yes. This is safe, because the caller's wait is limited.
bool borrows(pid_t criu) noexcept {
  try {
    return borrows_a_process(criu);
  } catch (...) {
    return true;
  }
}

void give_up_connections(pid_t criu) noexcept {
  try {
    for (const pid_t process : traced_by(criu)) {
      leave_repair_mode(process);
    }
  } catch (...) {  // out of memory: the caller still has to kill criu
  }
}

// Whether the child was ended by a signal. It can still be reaped afterwards.
bool was_killed(pid_t pid) {
  siginfo_t info{};
  const auto id = static_cast<id_t>(pid);
  return waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid &&
         info.si_code != CLD_EXITED;
}

}  // namespace

Result<std::unique_ptr<Child>> Child::start(const std::string& path,
                                            std::vector<std::string> arguments,
                                            std::chrono::milliseconds timeout,
                                            const Cancellation* cancel,
                                            const std::vector<int>& inherited) {
  std::unique_ptr<Child> child(new Child);
  child->path_ = path;
  child->timeout_ = timeout;
  child->cancel_ = cancel;
  child->output_ = memfd_create("criu-output", MFD_CLOEXEC);
  if (child->output_ < 0) {
    return system_error("cannot make descriptors for criu", errno);
  }
  arguments.insert(arguments.begin(), path);
  // A group, to kill criu with all that it has started. If this program is killed, criu gets
  // SIGPIPE, because its pipes are closed, and SIGHUP from the kernel if it is stopped. Either would end criu at once, and leave connections in repair mode, in which every
  // send(2) of the process fails. With both blocked it sees an error, and gives the process back as
  // it was.
  Program program{.file = path,
                  .words = std::move(arguments),
                  .descriptors = {kDevNull, child->output_, child->output_},
                  .leads = Program::Leads::group,
                  .blocked = {SIGPIPE, SIGHUP},
                  .keeps_file_limit = true,  // CRIU needs one above that of each process
                  .parent_lasts = true};     // what CRIU restores becomes a child of the thread
  program.descriptors.resize(kFirstInherited, kDevNull);
  program.descriptors.insert(program.descriptors.end(), inherited.begin(), inherited.end());
  child->started_ = Clock::now();
  const Result<pid_t> pid = spawn(program);
  if (!pid) {
    Error error =
        system_error("cannot start criu, looked for as '" + path + "'", pid.error().errno_value);
    error.message += "; install CRIU or name its binary (--criu PATH)";
    return error;
  }
  child->pid_ = *pid;
  child->process_fd_ = probe::open_process(child->pid_);
  if (child->process_fd_ < 0) {
    return system_error("cannot watch criu", errno);
  }
  return child;
}

Child::~Child() {
  try {
    reap(true);
  } catch (const std::exception&) {  // no memory to look at the process
    kill(-pid_, SIGKILL);
  }
  for (const int fd : {process_fd_, output_}) {
    if (fd >= 0) {
      close(fd);
    }
  }
}

int Child::remaining_ms() const {
  if (timeout_.count() == 0) {
    return -1;
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(started_ + timeout_ - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

std::string Child::output() const {
  constexpr off_t kMost = 4096;
  const off_t size = lseek(output_, 0, SEEK_END);
  std::string text(static_cast<std::size_t>(std::clamp<off_t>(size, 0, kMost)), '\0');
  const off_t from = size - static_cast<off_t>(text.size());
  const ssize_t n = pread(output_, text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string Child::said() const {
  const std::string text = output();
  return text.substr(text.rfind('\n') + 1);  // npos + 1 is 0: the whole text
}

Error Child::ended_by_us() {
  reap(true);
  if (is_asked(cancel_)) {
    return Error{Code::cancelled, cancel_->why()};
  }
  return Error{Code::deadline_exceeded,
               "criu '" + path_ + "' did not answer within " + human::duration(timeout_) +
                   " and was killed" +
                   (lingers_ ? ", but does not end: its disk does not answer" : "")};
}

Error Child::lingering() const {
  return {Code::deadline_exceeded,
          "criu '" + path_ + "' was killed, but does not end: its disk does not answer"};
}

Child::Clock::time_point Child::deadline() const {
  return timeout_.count() == 0 ? Clock::time_point::max() : started_ + timeout_;
}

// Also watches the process itself: its children may keep `fd` open after its end.
Result<Child::Ready> Child::poll_with(int fd) {
  pollfd fds[] = {{fd, POLLIN, 0}, {process_fd_, POLLIN, 0}, {fd_of(cancel_), POLLIN, 0}};
  if (poll(fds, 3, remaining_ms()) < 0 && errno != EINTR) {
    return system_error("cannot wait for criu", errno);
  }
  return Ready{fds[0].revents != 0, fds[1].revents != 0};
}

Result<bool> Child::wait_for(int fd) {
  for (;;) {
    const Result<Ready> ready = poll_with(fd);
    if (!ready) return ready.error();
    if (ready->fd || ready->ended) return ready->fd;
    if (is_over()) return ended_by_us();
  }
}

Result<void> Child::check_time() {
  return is_over() ? Result<void>(ended_by_us()) : Result<void>();
}

std::string Child::name() const {
  if (pid_ < 0) return name_;
  const Result<probe::Process> seen = probe::read_process(pid_);
  return seen ? seen->name : "";
}

Result<void> Child::check_end() {
  finish();
  if (lingers_) return lingering();
  if (WIFEXITED(wait_status_) && WEXITSTATUS(wait_status_) == 0) {
    return {};
  }
  const std::string last = said();
  return Error{WIFEXITED(wait_status_) ? Code::failed_precondition : Code::unavailable,
               "criu '" + path_ + "' " + how_it_ended(wait_status_) +
                   (last.empty() ? "" : ", saying: " + last)};
}

std::uint64_t Child::finish() {
  if (pid_ < 0) {
    return life_ns_;
  }
  const int allowed = timeout_.count() == 0
                          ? static_cast<int>(kLingering.count())
                          : std::min<int>(static_cast<int>(kLingering.count()), remaining_ms());
  reap(!ends_within(std::chrono::milliseconds(allowed)));
  return life_ns_;
}

bool Child::ends_within(std::chrono::milliseconds time) const {
  pollfd ended{process_fd_, POLLIN, 0};
  int ready = -1;
  do {
    ready = poll(&ended, 1, static_cast<int>(time.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// Stops criu at a time at which its processes do not need it. If there is no such time within the
// BorrowingLimit, it returns anyway. A criu that waits for a stalled disk cannot stop. But it does
// nothing to its processes in this time either, so it can be killed.
void Child::wait_until_killable() const noexcept try {
  const BorrowingLimit limit({pid_});
  for (std::chrono::milliseconds pause(1);; pause = next_look(pause)) {
    kill(pid_, SIGSTOP);
    if (change_of(pid_, kStopsWithin) == Change::ended || !borrows(pid_) || limit.over()) {
      return;
    }
    kill(pid_, SIGCONT);
    std::this_thread::sleep_for(pause);
  }
} catch (const std::exception&) {  // no memory to look: it is killed as it is
}

void Child::keep_connections() {
  if (Result<Guard> guard = Guard::start(pid_); guard) guard_.emplace(*std::move(guard));
}

void Child::reap(bool kill_first) {
  if (pid_ < 0) {
    return;
  }
  name_ = name();
  if (was_killed(pid_)) kill(-pid_, SIGKILL);  // it could not end what it had started
  if (kill_first) {
    if (!may_lose_processes_) {
      wait_until_killable();
      give_up_connections(pid_);
    }
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);  // in case it has left its process group
  }
  if (guard_) guard_->wake();
  rusage used{};
  const bool stuck = !ends_within(kWaitsForDisk) && probe::waits_in_kernel(pid_);
  const std::optional<int> status =
      reap_within(pid_, stuck ? std::chrono::milliseconds(0) : kKilledWithin, &used);
  lingers_ = !status;
  wait_status_ = status.value_or(0);
  major_faults_ = static_cast<std::uint64_t>(used.ru_majflt);
  life_ns_ = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - started_).count());
  pid_ = -1;
  guard_.reset();  // it ends with criu
}

}  // namespace kymo::criu
