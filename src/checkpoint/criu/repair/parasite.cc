#include "checkpoint/criu/repair/parasite.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/mappings.h"
#include "base/proc/process.h"
#include "checkpoint/criu/repair/borrowed.h"

namespace kymo::criu {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kThreadStopsWithin{500};
// How long to wait for a thread that was sent to other code. If it were let go there, its process
// would die. It comes back at once, unless it gets no processor.
constexpr std::chrono::milliseconds kComesBackWithin{60'000};
constexpr std::chrono::milliseconds kLeavesCodeWithin{5000};
constexpr std::chrono::microseconds kStopLookEvery{100};
constexpr std::uint64_t kCode64 = 0x33;  // the code segment of a thread that runs 64-bit code
constexpr int kSystemCallStop = SIGTRAP | 0x80;
constexpr int kEventStop = SIGTRAP | PTRACE_EVENT_STOP << 8;

Result<std::vector<Mapping>> parasite_in(pid_t pid) {
  Result<std::vector<Mapping>> found = mappings_of(pid);
  if (found) {
    std::erase_if(*found, [](const Mapping& one) { return !is_parasite(one); });
  }
  return found;
}

// The address of a `syscall` instruction in the vdso; 0 if there is none.
std::uint64_t system_call_of(pid_t pid) {
  const Result<std::vector<Mapping>> mappings = mappings_of(pid);
  if (!mappings) {
    return 0;
  }
  const auto vdso = std::find_if(mappings->begin(), mappings->end(),
                                 [](const Mapping& one) { return one.name == "[vdso]"; });
  if (vdso == mappings->end()) {
    return 0;
  }
  std::string code(vdso->end - vdso->begin, '\0');
  const iovec here{code.data(), code.size()};
  void* const begin = reinterpret_cast<void*>(vdso->begin);  // NOLINT: of another process
  const iovec there{begin, code.size()};
  if (::process_vm_readv(pid, &here, 1, &there, 1, 0) != static_cast<ssize_t>(code.size())) {
    return 0;
  }
  const std::size_t at = code.find("\x0f\x05");
  return at == std::string::npos ? 0 : vdso->begin + at;
}

bool has_ended(pid_t thread) {
  const Result<probe::Process> seen = probe::read_process(thread);
  return seen ? seen->zombie() : seen.error().code == Code::not_found;
}

// Returns the status of a thread's next stop (waitpid(2), under ptrace), or nothing if the thread
// has ended or does not stop in time. It does not reap the thread.
std::optional<int> next_stop(pid_t thread, std::chrono::milliseconds patience) {
  for (const auto until = steady_clock::now() + patience; steady_clock::now() < until;) {
    siginfo_t seen{};
    if (::waitid(P_PID, static_cast<id_t>(thread), &seen, WSTOPPED | WNOHANG | __WALL) != 0 &&
        errno != EINTR) {
      return std::nullopt;
    }
    if (seen.si_pid == thread) {
      return seen.si_status;
    }
    if (has_ended(thread)) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(kStopLookEvery);
  }
  return std::nullopt;
}

// Lets a stopped thread go with this signal (or 0), and stops it again at once, at the point at
// which the kernel restarts an interrupted system call. If another signal is due, the thread stops
// for the signal instead of the interruption. Then it gets the signal and is interrupted again.
// Returns nothing in the cases of next_stop().
std::optional<int> stop_again(pid_t thread, int signal) {
  std::optional<int> stop = signal;
  while (stop && *stop >> 8 == 0) {
    if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 ||
        ::ptrace(PTRACE_CONT, thread, nullptr, *stop) != 0) {
      return std::nullopt;
    }
    stop = next_stop(thread, kComesBackWithin);
  }
  return stop;
}

// Stops all threads of a process under ptrace. The destructor lets them go.
class StoppedProcess {
 public:
  explicit StoppedProcess(pid_t pid) : pid_(pid) {
    // Repeat until the list has no new thread: a thread may start others before it is stopped.
    for (bool more = true; more && !trouble_;) {
      more = false;
      for (const pid_t thread : probe::threads_of(pid)) {
        if (!trouble_ && !threads_.contains(thread)) {
          more = true;
          hold(thread);
        }
      }
    }
  }
  ~StoppedProcess() {
    for (const auto& [thread, signal] : threads_) {
      ::ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
      if (signal != 0) {
        ::syscall(SYS_tgkill, pid_, thread, signal);
      }
    }
  }
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;

  [[nodiscard]] const std::optional<Error>& trouble() const { return trouble_; }

  // Whether a thread is in one of these ranges, or may be.
  [[nodiscard]] bool executes_in(const std::vector<Mapping>& ranges) const {
    return std::any_of(threads_.begin(), threads_.end(), [&](const auto& thread) {
      user_regs_struct registers{};
      return ::ptrace(PTRACE_GETREGS, thread.first, nullptr, &registers) != 0 ||
             std::any_of(ranges.begin(), ranges.end(),
                         [&](const Mapping& range) { return range.has(registers.rip); });
    });
  }

  // Makes the first thread unmap these ranges.
  Result<void> unmap(const std::vector<Mapping>& ranges) {
    const std::uint64_t instruction = system_call_of(pid_);
    user_regs_struct own{};
    std::uint64_t mask = 0;
    if (::ptrace(PTRACE_GETREGS, pid_, nullptr, &own) != 0 ||
        ::ptrace(PTRACE_GETSIGMASK, pid_, sizeof mask, &mask) != 0) {
      return failed();
    }
    if (own.cs != kCode64 || instruction == 0) {
      return Error{Code::failed_precondition, said() + "it runs no 64-bit code"};
    }
    std::uint64_t all = ~std::uint64_t{0};
    if (::ptrace(PTRACE_SETSIGMASK, pid_, sizeof all, &all) != 0) {
      return failed();
    }
    bool good = true;
    for (const Mapping& range : ranges) {
      good = good && unmap_one(range, own, instruction);
    }
    return give_back(own, mask) && good ? Result<void>() : failed();
  }

 private:
  [[nodiscard]] std::string said() const {
    return "unmap CRIU's code from process " + std::to_string(pid_) + ": ";
  }
  [[nodiscard]] Error failed() const {
    return Error{Code::unavailable, said() + "the system call in that process failed"};
  }

  void hold(pid_t thread) {
    const auto options = PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP;
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, options) != 0) {
      if (errno == ESRCH && thread != pid_) {
        threads_.try_emplace(thread, 0);  // the thread has ended
        return;
      }
      trouble_ = Error{Code::unavailable, said() + "it cannot be traced", errno};
      return;
    }
    threads_.try_emplace(thread, 0);
    ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
    std::optional<int> stop = next_stop(thread, kThreadStopsWithin);
    if (stop && *stop >> 8 == 0) {
      stop = stop_again(thread, *stop);
    }
    if (!stop || *stop != kEventStop) {
      trouble_ = Error{Code::failed_precondition, said() + "it is stopped, or has ended"};
    }
  }

  // Lets the first thread run to the next begin or end of a system call. Returns whether it got
  // there.
  bool to_system_call() {
    for (;;) {
      if (::ptrace(PTRACE_SYSCALL, pid_, nullptr, nullptr) != 0) {
        return false;
      }
      const std::optional<int> stop = next_stop(pid_, kComesBackWithin);
      if (!stop || *stop == kSystemCallStop) {
        return stop.has_value();
      }
      if (*stop >> 8 == 0) {  // SIGSTOP, which cannot be blocked: the thread gets it afterwards
        threads_[pid_] = *stop;
      }
    }
  }

  bool unmap_one(const Mapping& range, user_regs_struct registers, std::uint64_t instruction) {
    registers.rip = instruction;
    registers.orig_rax = ~0ULL;  // the kernel must not restart a system call here
    registers.rax = SYS_munmap;
    registers.rdi = range.begin;
    registers.rsi = range.end - range.begin;
    return ::ptrace(PTRACE_SETREGS, pid_, nullptr, &registers) == 0 && to_system_call() &&
           to_system_call() && ::ptrace(PTRACE_GETREGS, pid_, nullptr, &registers) == 0 &&
           registers.rax == 0;
  }

  // Restores what the first thread was doing. If that was a system call, the kernel restarts it
  // after a stop for a signal or an interruption, and after no other stop. So it stops again.
  bool give_back(const user_regs_struct& own, std::uint64_t mask) {
    return ::ptrace(PTRACE_SETREGS, pid_, nullptr, &own) == 0 &&
           ::ptrace(PTRACE_SETSIGMASK, pid_, sizeof mask, &mask) == 0 &&
           stop_again(pid_, 0).has_value();
  }

  pid_t pid_;
  std::map<pid_t, int> threads_;  // with the signal that each gets when it is let go
  std::optional<Error> trouble_;
};

Result<std::size_t> remove_here(pid_t pid) {
  for (const auto until = steady_clock::now() + kLeavesCodeWithin;;) {
    const Result<std::vector<Mapping>> left = parasite_in(pid);
    if (!left) {
      return left.error();
    }
    if (left->empty()) {
      return std::size_t{0};
    }
    StoppedProcess held(pid);
    if (!held.trouble() && !held.executes_in(*left)) {
      Result<void> done = held.unmap(*left);
      return done ? Result<std::size_t>(left->size()) : done.error();
    }
    const bool for_good = held.trouble() && held.trouble()->code == Code::failed_precondition;
    if (for_good || steady_clock::now() > until) {
      return held.trouble()
                 ? *held.trouble()
                 : Error{Code::deadline_exceeded, "process " + std::to_string(pid) +
                                                      " still runs CRIU's code instead of its own"};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

Result<std::size_t> remove_parasite(pid_t pid) {
  const Result<std::vector<Mapping>> left = parasite_in(pid);
  if (!left) {
    return left.error();
  }
  if (left->empty()) {
    return std::size_t{0};
  }
  // Use a separate thread for tracing. If the process ends under ptrace, its parent cannot reap it
  // until the tracer has, or until the tracing thread ends.
  try {
    return std::async(std::launch::async, remove_here, pid).get();
  } catch (const std::system_error& failure) {
    return Error{Code::unavailable, "unmap CRIU's code from process " + std::to_string(pid),
                 failure.code().value()};
  }
}

}  // namespace kymo::criu
