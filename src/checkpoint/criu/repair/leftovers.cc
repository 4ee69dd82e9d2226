#include "checkpoint/criu/repair/leftovers.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include "base/beneath.h"
#include "base/mounts.h"
#include "base/own_folder.h"
#include "base/patience.h"
#include "base/proc/open_files.h"
#include "base/proc/process.h"
#include "checkpoint/criu/repair/borrowed.h"
#include "checkpoint/criu/repair/connections.h"

namespace kymo::criu {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{10'000};
constexpr std::chrono::milliseconds kLookEvery{2};
constexpr std::chrono::milliseconds kCriuStopsWithin{500};
// A killed process that has waited for a disk this long ends only when the disk answers.
constexpr std::chrono::milliseconds kKilledEndsWithin{500};

// After these lines of its log, CRIU finishes without its caller.
constexpr std::string_view kDumpIsDone = "Unfreezing tasks into";
constexpr std::string_view kRestoreIsDone = "Running pre-resume scripts";

// Also returns false if the disk of the log does not answer.
bool log_has(const std::string& log_path, std::string_view mark) {
  const auto has = within(kDiskPatience, [log_path, mark] {
    const Result<std::string> log = read_no_link(log_path, std::size_t{1} << 30U);
    return log && log->find(mark) != std::string::npos;
  });
  return has.value_or(false);
}

bool is_in(const std::vector<pid_t>& tree, pid_t pid) {
  return std::find(tree.begin(), tree.end(), pid) != tree.end();
}

// Whether the process is a CRIU by its command line. The runtimes call `criu swrk FD`, which then calls itself
// "dump --rpc ...", and kymod calls `criu dump --images-dir DIR ...`. A debugger may trace the tree as well, and is not ours
// to kill. A process that was killed may have no command line any more, and another signal changes nothing for it.
bool may_be_criu(const probe::Process& process) {
  const std::vector<std::string>& words = process.command;
  const auto has = [&words](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const bool serves = words.size() > 2 && words[words.size() - 2] == "swrk";
  const bool says_so = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find("dump --rpc ") != std::string::npos;
  });
  const bool dumps = (has("dump") || has("pre-dump")) && has("--images-dir");
  return process.ending || serves || says_so || dumps;
}

// The CRIUs of this user that trace the tree.
std::vector<pid_t> tracers_of(const std::vector<pid_t>& tree) {
  std::set<pid_t> tracers;
  for (const pid_t pid : tree) {
    const Result<probe::Process> seen = probe::read_process(pid);
    if (!seen || seen->tracer == 0) continue;
    const Result<probe::Process> tracer = probe::read_process(seen->tracer);
    if (tracer && tracer->uid == ::geteuid() && may_be_criu(*tracer)) tracers.insert(seen->tracer);
  }
  return {tracers.begin(), tracers.end()};
}

// Each process that has the log open for writing is taken for one of CRIU's, and killed. So check
// that only this user could have made the log and opened it: no other user can change a folder of
// its path, and it has no other name elsewhere. Its name alone says nothing.
Result<void> check_log(const std::string& log_path) {
  const Error not_ours{Code::permission_denied,
                       "look for the processes of a CRIU by its log: " + log_path};
  struct stat info {};
  if (::lstat(log_path.c_str(), &info) != 0) {
    return errno == ENOENT ? Result<void>() : system_error(not_ours.message, errno);
  }
  if (S_ISLNK(info.st_mode)) return {};  // it is not followed
  if (const Result<FileDescriptor> own = open_own_path(log_path); !own) {
    return Error{own.error().code, not_ours.message + ": " + own.error().message,
                 own.error().errno_value};
  }
  if (info.st_nlink <= 1) return {};
  return Error{
      Code::permission_denied,
      not_ours.message + ": it has another name, so it may be the file of another program"};
}

// The processes that have the log open for writing: those of the tree if `of_the_tree`, else CRIU's
// own. Processes that only read the log do not count. If the disk of the log does not answer, these are
// the CRIUs that trace the tree.
std::vector<pid_t> holders(const std::string& log_path, const std::vector<pid_t>& tree,
                           bool of_the_tree) {
  const auto found_by_log =
      within(kDiskPatience, [log_path] { return probe::processes_writing(log_path); });
  std::vector<pid_t> found;
  if (found_by_log) {
    found = *found_by_log;
  } else if (!of_the_tree) {
    found = tracers_of(tree);
  }
  std::erase_if(found, [&](pid_t pid) {
    const Result<probe::Process> seen = probe::read_process(pid);
    const bool gone = seen ? seen->zombie() : seen.error().code == Code::not_found;
    const bool ours = pid == getpid();
    return ours || is_in(tree, pid) != of_the_tree || gone;
  });
  return found;
}

// Stops a CRIU, so that nothing changes between reading its log and killing it.
void stop(pid_t criu) {
  const auto began = steady_clock::now();
  kill(criu, SIGSTOP);
  for (;;) {
    const Result<probe::Process> seen = probe::read_process(criu);
    const bool still =
        seen ? seen->stopped() || seen->zombie() : seen.error().code == Code::not_found;
    const bool runnable = seen && seen->runnable();
    if (still ||
        steady_clock::now() - began > (runnable ? kRunnableStopsWithin : kCriuStopsWithin)) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Error does_not_end(pid_t pid) {
  return Error{
      Code::deadline_exceeded,
      "process " + std::to_string(pid) + " of a CRIU that a killed kymod had started does not end"};
}

// Kills CRIU's processes. If the log has the line `done`, it waits instead, because they end by
// themselves. In a dump it also waits, within the BorrowingLimit, while CRIU borrows a process,
// because that process has to run on. In a restore it does not, because the processes end anyway.
Result<void> end_criu(const std::string& log_path, const std::vector<pid_t>& tree,
                      std::string_view done, bool dump) {
  const auto own = within(kDiskPatience, [log_path] { return check_log(log_path); });
  if (own && !*own) return *own;
  if (!own && !dump) {  // without its log nothing of it can be found
    return Error{Code::deadline_exceeded, "the disk of " + log_path + " does not answer"};
  }
  const auto began = steady_clock::now();
  std::optional<BorrowingLimit> limit;
  std::optional<steady_clock::time_point> killed;  // the first time
  for (auto pause = kLookEvery;; pause = next_look(pause)) {
    const std::vector<pid_t> running = holders(log_path, tree, false);
    if (running.empty()) {
      return {};
    }
    if (dump && !limit) limit.emplace(running);
    const auto now = steady_clock::now();
    const bool stuck = killed && now - *killed > kKilledEndsWithin &&
                       std::all_of(running.begin(), running.end(),
                                   [](pid_t criu) { return probe::waits_in_kernel(criu); });
    if (stuck || now - began > kPatience) {
      return does_not_end(running.front());
    }
    for (const pid_t criu : running) {
      stop(criu);
    }
    const auto borrows = [](pid_t criu) { return borrows_a_process(criu); };
    const bool leave =
        log_has(log_path, done) ||
        (dump && !limit->over() && std::any_of(running.begin(), running.end(), borrows));
    if (!leave && dump) {
      for (const pid_t pid : tree) leave_repair_mode(pid);
    }
    for (const pid_t criu : running) {
      kill(criu, leave ? SIGCONT : SIGKILL);
    }
    if (!leave && !killed) killed = steady_clock::now();
    std::this_thread::sleep_for(pause);
  }
}

bool remove_mounts(const std::string& work_dir) {
  constexpr std::string_view kCgroups = ".criu.cgyard.";
  if (!detach_mounts(work_dir + "/" + std::string(kCgroups))) return false;
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (std::filesystem::directory_iterator entry(work_dir, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(kCgroups)) left.push_back(entry->path());
  }
  for (const std::filesystem::path& folder : left) {
    ::rmdir(folder.c_str());
  }
  return true;
}

}  // namespace

Result<void> end_leftover_dump(const std::string& log_path, const std::vector<pid_t>& tree) {
  return end_criu(log_path, tree, kDumpIsDone, true);
}

Result<void> end_leftover_restore(const std::string& log_path, const std::vector<pid_t>& tree) {
  if (Result<void> ended = end_criu(log_path, tree, kRestoreIsDone, false); !ended) {
    return ended;
  }
  // Nobody resumes the processes that are only half restored, so kill them.
  for (const auto until = steady_clock::now() + kPatience;;) {
    const std::vector<pid_t> halves = holders(log_path, tree, true);
    if (halves.empty()) {
      return {};
    }
    if (steady_clock::now() > until) {
      return does_not_end(halves.front());
    }
    for (const pid_t half : halves) keep_peers_waiting(half);
    for (const pid_t half : halves) kill(half, SIGKILL);
    std::this_thread::sleep_for(kLookEvery);
  }
}

pid_t killed_under_its_runtime(const std::string& log_path) {
  const std::vector<pid_t> criu = holders(log_path, {}, false);
  std::set<pid_t> parents;
  for (const pid_t one : criu) {
    if (const Result<probe::Process> seen = probe::read_process(one); seen) {
      parents.insert(seen->parent);
    }
  }
  for (const pid_t one : criu) parents.erase(one);  // it may restore zombies
  for (const pid_t parent : parents) {
    const Result<std::vector<pid_t>> children = probe::children_of(parent);
    if (!children) continue;
    for (const pid_t child : *children) {
      const Result<probe::Process> seen = probe::read_process(child);
      if (seen && seen->zombie() && !log_has(log_path, kRestoreIsDone)) return child;
    }
  }
  return 0;
}

void remove_leftover_mounts(const std::string& work_dir) {
  static_cast<void>(within(kDiskPatience, [work_dir] { return remove_mounts(work_dir); }));
}

}  // namespace kymo::criu
