#include "checkpoint/runtimes/process/freeze.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/proc/cgroup.h"
#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/freezer.h"

namespace kymo::runtime {
namespace {

constexpr std::string_view kOwnFreezer = "/kymo-frozen-";

std::vector<pid_t> members_of(const std::string& folder) {
  std::ifstream file(folder + "/cgroup.procs");
  std::vector<pid_t> members;
  for (pid_t pid = 0; file >> pid;) {
    members.push_back(pid);
  }
  return members;
}

Result<void> move_into(const std::string& folder, pid_t pid) {
  const std::string path = folder + "/cgroup.procs";
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(pid);
  if (file.valid() && (::write(file.get(), text.data(), text.size()) >= 0 || errno == ESRCH)) {
    return {};
  }
  return system_error("move process " + text + " into " + folder, errno);
}

// Looks again until all processes of the tree have moved, because they may fork meanwhile.
Result<void> move_tree(pid_t root, const std::string& folder, const std::string& proc) {
  for (;;) {
    const std::vector<pid_t> there = members_of(folder);
    const std::set<pid_t> moved(there.begin(), there.end());
    bool any = false;
    const Result<std::vector<pid_t>> tree = probe::whole_process_tree(root, proc);
    if (!tree) return tree.error();  // a process that is not seen would run on
    for (const pid_t member : *tree) {
      if (moved.count(member) == 0) {
        any = true;
        if (Result<void> done = move_into(folder, member); !done) {
          return done;
        }
      }
    }
    if (!any) {
      return {};
    }
  }
}

// Moves the processes of the cgroup to the cgroup above, and removes it. A process that is just
// being created or ends keeps the cgroup busy for a moment, so it tries again for up to a second.
Result<void> remove_cgroup(const std::string& folder) {
  constexpr std::chrono::seconds kBusyFor{1};
  const std::string above = std::filesystem::path(folder).parent_path();
  for (const auto until = std::chrono::steady_clock::now() + kBusyFor;;) {
    for (const pid_t member : members_of(folder)) {
      if (Result<void> done = move_into(above, member); !done) {
        return done;
      }
    }
    if (::rmdir(folder.c_str()) == 0) {
      return {};
    }
    if (errno != EBUSY || std::chrono::steady_clock::now() > until) {
      return system_error("remove " + folder, errno);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool is_own(const std::string& folder) {
  return folder.find(kOwnFreezer) != std::string::npos;
}

// Returns the folder of the process's cgroup in the freezer hierarchy of version 1. A new freezer
// can be made below it. Empty if there is none. The root of the hierarchy counts, although it has
// no freezer itself.
std::string first_version_folder(pid_t pid, const std::string& proc, const std::string& sys) {
  const auto path = probe::cgroup_path(pid, "freezer", proc);
  std::string folder = path ? sys + "/freezer" + (*path == "/" ? "" : *path) : "";
  std::error_code error;
  return path && std::filesystem::exists(folder + "/cgroup.procs", error) ? folder : "";
}

Result<std::string> freeze_by_own_freezer(pid_t root, const std::string& outer,
                                          const std::string& proc) {
  const std::string folder = outer + std::string(kOwnFreezer) + std::to_string(root);
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return system_error("make " + folder, errno);
  }
  Result<void> done = move_tree(root, folder, proc);
  const Freezer own(folder, 1);
  if (done) {
    done = own.set(true);
  }
  if (!done) {
    static_cast<void>(own.set(false).ok());
    static_cast<void>(remove_cgroup(folder).ok());
    return done.error();
  }
  return "frozen by the freezer of cgroup version 1, " + folder;
}

bool has_only_tree_of(const Freezer& freezer, pid_t root, const std::string& proc) {
  const std::vector<pid_t> tree = probe::process_tree(root, proc);
  const std::vector<pid_t> members = members_of(freezer.folder());
  return !members.empty() && std::all_of(members.begin(), members.end(), [&](pid_t member) {
    return std::find(tree.begin(), tree.end(), member) != tree.end();
  });
}

void signal_tree(pid_t root, int signal, const std::string& proc) {
  for (const pid_t member : probe::process_tree(root, proc)) {
    ::kill(member, signal);
  }
}

bool is_stopped(pid_t pid, const std::string& proc) {
  const Result<probe::Process> process = probe::read_process(pid, proc);
  return process && process->stopped();
}

// Waits up to about a second for the process to stop or run: a signal does not act at once.
bool becomes(pid_t pid, bool stopped, const std::string& proc) {
  for (int i = 0; i < 1000; ++i) {
    if (is_stopped(pid, proc) == stopped) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

Result<std::string> freeze_process(const ProcessId& process, const std::string& proc,
                                   const std::string& sys) {
  const std::string tried = "freeze process " + std::to_string(process.pid);
  if (!probe::process_lives(process.pid, process.start_ticks, proc)) {
    return Error{Code::not_found, tried + ": it has ended"};
  }
  const std::vector<pid_t> tree = probe::process_tree(process.pid, proc);
  if (std::find(tree.begin(), tree.end(), getpid()) != tree.end()) {
    return Error{
        Code::invalid_argument,
        tried + ": it is kymod, or a program that started kymod, so kymod would freeze, too"};
  }
  const Result<Freezer> freezer = Freezer::of(process.pid, proc, sys);
  if ((freezer && freezer->frozen()) || is_stopped(process.pid, proc)) {
    return Error{Code::failed_precondition, tried + ": it is frozen already"};
  }
  if (const std::string outer = first_version_folder(process.pid, proc, sys); !outer.empty()) {
    Result<std::string> how = freeze_by_own_freezer(process.pid, outer, proc);
    return how ? how : Error{how.error().code, tried + ": " + how.error().message};
  }
  if (freezer && has_only_tree_of(*freezer, process.pid, proc)) {
    if (Result<void> done = freezer->set(true); !done) {
      static_cast<void>(freezer->set(false).ok());
      return Error{done.error().code, tried + ": " + done.error().message};
    }
    return "frozen by its own cgroup of version 2, " + freezer->folder();
  }
  signal_tree(process.pid, SIGSTOP, proc);
  if (!becomes(process.pid, true, proc)) {
    signal_tree(process.pid, SIGCONT, proc);
    return Error{Code::internal, tried + ": SIGSTOP did not stop it"};
  }
  return std::string("stopped by SIGSTOP: ") +
         (freezer ? "others share its cgroup, " + freezer->folder() : freezer.error().message);
}

Result<std::string> unfreeze_process(const ProcessId& process, const std::string& proc,
                                     const std::string& sys) {
  const std::string tried = "unfreeze process " + std::to_string(process.pid);
  if (!probe::process_lives(process.pid, process.start_ticks, proc)) {
    return Error{Code::not_found, tried + ": it has ended"};
  }
  const Result<Freezer> freezer = Freezer::of(process.pid, proc, sys);
  if (freezer && freezer->frozen()) {
    Result<void> done = freezer->set(false);
    if (done && is_own(freezer->folder())) {
      done = remove_cgroup(freezer->folder());
    }
    return done ? Result<std::string>("thawed " + freezer->folder())
                : Error{done.error().code, tried + ": " + done.error().message};
  }
  if (is_stopped(process.pid, proc)) {
    signal_tree(process.pid, SIGCONT, proc);
    static_cast<void>(becomes(process.pid, false, proc));
    return std::string("continued by SIGCONT");
  }
  return Error{Code::failed_precondition, tried + ": it is not frozen"};
}

}  // namespace kymo::runtime
