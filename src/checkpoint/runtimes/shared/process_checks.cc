#include "checkpoint/runtimes/shared/process_checks.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/proc/id_uses.h"
#include "base/proc/terminals.h"
#include "checkpoint/criu/drive/program_names.h"
#include "checkpoint/criu/images/images.h"
#include "checkpoint/runtimes/shared/companions.h"
#include "checkpoint/runtimes/shared/descriptors.h"
#include "checkpoint/runtimes/shared/freezer.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kRunningWithin{2000};
constexpr milliseconds kTracerEndsWithin{500};  // unless it waits for its disk
constexpr milliseconds kReapedWithin{
    10000};  // a parent may take this long to reap a zombie: some inits look every 1.6 s
constexpr milliseconds kLookAgainEvery{5};

Result<void> check_directory(const std::string& tried, const std::string& what,
                             const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) {
    return system_error(tried + ": " + what + " " + path, errno);
  }
  if (!S_ISDIR(st.st_mode)) {
    return Error{Code::invalid_argument, tried + ": " + what + " " + path + " is not a directory"};
  }
  if (faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return system_error(tried + ": " + what + " " + path + " is not writable", errno);
  }
  return {};
}

Result<void> check_empty(const std::string& tried, const std::string& path) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(path, error);
  if (error) {
    return system_error(tried + ": cannot list the images directory " + path, error.value());
  }
  if (entries == std::filesystem::directory_iterator()) {
    return {};
  }
  return Error{Code::already_exists,
               tried + ": the images directory " + path + " is not empty (it has " +
                   entries->path().filename().string() + "); name an empty or a new one"};
}

// Whether this is kymod itself or a process that started it. A dump would freeze kymod, which waits
// for the dump.
bool is_kymod_or_its_parent(pid_t pid) {
  for (pid_t at = getpid(); at > 0;) {
    if (at == pid) {
      return true;
    }
    const Result<pid_t> parent = probe::parent_of(at);
    if (!parent && parent.error().code != Code::not_found) {
      return true;  // unknown, for example because no descriptor is free: assume that it is
    }
    at = parent ? *parent : 0;
  }
  return false;
}

// With --shell-job CRIU would dump a process on a terminal. But CRIU can restore it only if CRIU
// was started in a terminal itself. A daemon has none, so the process would be lost.
Result<void> check_terminal(const std::string& tried, pid_t pid, const CheckpointOptions& options) {
  const auto terminal = probe::outside_terminal(probe::process_tree(pid), options.external);
  if (!terminal) {
    return {};
  }
  const std::string whose =
      terminal->pid == pid ? "it" : "its process " + std::to_string(terminal->pid);
  return Error{Code::failed_precondition,
               tried + ": " + whose + " has the terminal " + terminal->path +
                   " open, which a restore cannot give back to it; start the program with "
                   "kymo run, or with setsid and its input and output redirected to files. Or pass "
                   "--external \"$(stat -c 'tty[%R:%D]' " +
                   terminal->path +
                   ")\" to the dump, and another terminal to the restore (--inherit-fd, see "
                   "docs/runtimes.md)"};
}

// If a program was started from outside of this pid namespace, for example by `docker exec`, the
// leader of its session is outside, and the kernel shows the session as 0. CRIU refuses to dump
// such a program, but only after it has frozen the processes. This check refuses it earlier.
Result<void> check_session(const std::string& tried, pid_t pid) {
  for (const pid_t member : probe::process_tree(pid)) {
    const Result<probe::Process> process = probe::read_process(member);
    if (!process || process->session != 0) {
      continue;
    }
    const std::string whose =
        member == pid ? "its" : "its process " + std::to_string(member) + "'s";
    return Error{Code::failed_precondition,
                 tried + ": " + whose +
                     " session was begun outside of this pid namespace, which CRIU cannot dump; "
                     "start the program with kymo run, or with setsid"};
  }
  return {};
}

// Checks whether the ids are free, because CRIU gives every restored thread its old id, and makes a helper process for
// each session and process group whose leader has ended.
Result<void> check_free(const std::string& tried, const std::set<pid_t>& ids) {
  const auto until = steady_clock::now() + kReapedWithin;
  for (;;) {
    const Result<std::vector<probe::IdUse>> uses = probe::uses_of(ids);
    if (!uses) return Error{uses.error().code, tried + ": " + uses.error().message};
    if (uses->empty()) return {};
    const auto lives = std::find_if(uses->begin(), uses->end(),
                                    [](const probe::IdUse& use) { return !use.process.zombie(); });
    if (lives != uses->end()) {
      return Error{Code::failed_precondition,
                   tried + ": " + probe::text_of(*lives) + "; end that process first"};
    }
    if (steady_clock::now() >= until) {
      const probe::IdUse& held = uses->front();
      return Error{Code::failed_precondition,
                   tried + ": its pid " + std::to_string(held.id) +
                       " is held by a zombie until its parent, process " +
                       std::to_string(held.process.parent) + ", reaps it or ends"};
    }
    std::this_thread::sleep_for(kLookAgainEvery);
  }
}

// Returns the threads that are stopped or traced now and were not before the dump.
std::vector<pid_t> left_halted(const DumpTarget& before) {
  std::vector<pid_t> halted = probe::halted_threads(before.process.pid);
  std::erase_if(halted, [&](pid_t thread) {
    return std::find(before.halted.begin(), before.halted.end(), thread) != before.halted.end();
  });
  return halted;
}

std::string tried_to_dump(const DumpSpec& spec) {
  return "cannot dump " + (spec.container.empty() ? "process " + std::to_string(spec.process.pid)
                                                  : "container " + name_of_container(spec));
}

// Whether the process was killed and waits in the kernel, which no signal can end.
bool cannot_end(const probe::Process& process) {
  return process.ending && process.state == 'D';
}

pid_t tracer_of(pid_t thread) {
  const Result<probe::Process> seen = probe::read_process(thread);
  return seen ? seen->tracer : 0;
}

bool tracer_cannot_end(pid_t tracer) {
  const Result<probe::Process> seen = probe::read_process(tracer);
  return seen && cannot_end(*seen);
}

// Says what keeps a thread of the process from running.
Error still_halted(pid_t pid, pid_t thread) {
  const std::string what = "process " + std::to_string(pid);
  if (const pid_t tracer = tracer_of(thread); tracer != 0) {
    return {Code::unavailable,
            what + (tracer_cannot_end(tracer)
                        ? " is " + held_text(tracer)
                        : " is still traced by process " + std::to_string(tracer) +
                              ": it runs on when that process lets it go or ends")};
  }
  return {Code::internal,
          what + " is still stopped (thread " + std::to_string(thread) + "): send it SIGCONT"};
}

}  // namespace

Result<probe::Process> check_program(const std::string& tried, const ProcessId& id) {
  if (id.pid <= 0) {
    return Error{Code::invalid_argument, tried + ": a pid is a number above 0"};
  }
  Result<probe::Process> process = probe::read_process(id.pid);
  if (!process) {
    const bool gone = process.error().code == Code::not_found;
    return Error{process.error().code,
                 tried + ": " + process.error().message + (gone ? "; see ps" : ""),
                 process.error().errno_value};
  }
  if (process->kernel_thread) {
    return Error{Code::invalid_argument, tried + ": it is the kernel thread [" + process->name +
                                             "]; only processes of programs can be dumped"};
  }
  if (id.start_ticks != 0 && process->start_ticks != id.start_ticks) {
    return Error{Code::not_found, tried + ": the process that had this pid is gone, and '" +
                                      process->name + "' has it now"};
  }
  if (process->zombie()) {
    return Error{Code::not_found, tried + ": it has ended, and its parent " +
                                      std::to_string(process->parent) + " has not reaped it yet"};
  }
  if (kill(id.pid, 0) != 0 && errno == EPERM) {
    return Error{Code::permission_denied,
                 tried + ": it belongs to uid " + std::to_string(process->uid) +
                     " and this is uid " + std::to_string(geteuid()) + "; run the daemon as root",
                 EPERM};
  }
  if (id.pid == 1) {
    return Error{Code::invalid_argument, tried + ": it is init, which every other process needs"};
  }
  if (is_kymod_or_its_parent(id.pid)) {
    return Error{
        Code::invalid_argument,
        tried + ": it is this program, or a program that started it, and a dump would freeze it"};
  }
  return process;
}

Result<probe::Process> check_target(const DumpSpec& spec) {
  const std::string tried = tried_to_dump(spec);
  Result<probe::Process> process = check_program(tried, spec.process);
  if (!process) {
    return process;
  }
  const Result<void> enough = check_descriptors(tried, spec.process.pid);
  if (!enough) {
    return enough.error();
  }
  if (!spec.container.empty()) {
    Result<void> alone;
    if (!spec.leave_running && !spec.force) alone = refuse_companions(tried, spec.process.pid);
    return alone ? process : alone.error();
  }
  // A frozen process does not stop, so CRIU would wait until its timeout.
  if (const Result<Freezer> freezer = Freezer::of(spec.process.pid); freezer && freezer->frozen()) {
    return Error{Code::failed_precondition, tried + ": it is frozen; kymo unfreeze process " +
                                                std::to_string(spec.process.pid) + " first"};
  }
  if (Result<void> ok = check_session(tried, spec.process.pid); !ok) {
    return ok.error();
  }
  if (Result<void> ok = check_terminal(tried, spec.process.pid, spec.options); !ok) {
    return ok.error();
  }
  return process;
}

Result<DumpTarget> check_dump(const DumpSpec& spec) {
  const Scope scope("check the process", {.category = "runtime"});
  const std::string tried = tried_to_dump(spec);
  Result<probe::Process> process = check_target(spec);
  if (!process) {
    return process.error();
  }
  if (Result<void> ok = check_directory(tried, "the images directory", spec.images_dir); !ok) {
    return ok.error();
  }
  if (Result<void> ok = check_empty(tried, spec.images_dir); !ok) {
    return ok.error();
  }
  if (Result<void> ok = check_directory(tried, "the work directory", spec.work_dir); !ok) {
    return ok.error();
  }
  DumpTarget target{
      *process, {}, probe::halted_threads(spec.process.pid), NetworkOfDump(spec.process.pid)};
  for (const pid_t thread : target.halted) {
    // halted_threads() also returns processes that it could not read. After a failed dump they
    // would be taken for threads that were halted before, so refuse the dump.
    if (const auto seen = probe::read_process(thread);
        !seen && seen.error().code != Code::not_found) {
      return Error{Code::unavailable, tried + ": " + seen.error().message};
    }
  }
  for (const pid_t member : probe::process_tree(spec.process.pid)) {
    if (const auto seen = probe::read_process(member); seen) {
      target.tree.push_back({member, seen->start_ticks});
    }
  }
  return target;
}

Result<milliseconds> time_left(const DumpSpec& spec) {
  if (spec.deadline_ns == 0) {
    return milliseconds(0);
  }
  const std::uint64_t now_ns = monotonic_ns();
  const std::chrono::nanoseconds left(spec.deadline_ns > now_ns ? spec.deadline_ns - now_ns : 0);
  if (left < milliseconds(1)) {
    return Error{Code::deadline_exceeded, "the deadline was over before CRIU began"};
  }
  return std::chrono::duration_cast<milliseconds>(left);
}

std::set<pid_t> ids_of(const std::vector<criu::ImageProcess>& tree) {
  std::set<pid_t> ids;
  for (const criu::ImageProcess& process : tree) {
    ids.insert(process.pid);
    ids.insert(process.threads.begin(), process.threads.end());
    // If the root leads neither, it was dumped with --shell-job, and gets CRIU's own.
    if (process.session != tree.front().session) ids.insert(process.session);
    if (process.group != tree.front().group) ids.insert(process.group);
  }
  ids.erase(0);
  return ids;
}

Result<std::vector<criu::ImageProcess>> check_images(const RestoreSpec& spec) {
  const Scope scope("check the images", {.category = "runtime"});
  const std::string tried = "cannot restore " + spec.images_dir;
  struct stat st {};
  if (stat(spec.images_dir.c_str(), &st) != 0) {
    return system_error(tried, errno);
  }
  if (criu::stored_path(spec.images_dir + "/inventory.img").empty()) {
    return Error{Code::not_found, tried + ": it holds no checkpoint (inventory.img is missing)"};
  }
  Result<std::vector<criu::ImageProcess>> tree =
      spec.tree ? *spec.tree : criu::read_pstree(spec.images_dir + "/pstree.img");
  if (!tree) {
    return Error{tree.error().code, tried + ": " + tree.error().message};
  }
  if (!tree->empty() && criu::is_first_of_pid_namespace(tree->front().pid)) {
    return Error{Code::failed_precondition, tried + ": " + kOwnPidNamespace +
                                                ": criu restore --images-dir " + spec.images_dir +
                                                " --restore-detached restores them"};
  }
  if (Result<void> free = check_free(tried, ids_of(*tree)); !free) {
    return free.error();
  }
  return tree;
}

Result<std::vector<criu::ImageProcess>> check_restore(const RestoreSpec& spec) {
  Result<std::vector<criu::ImageProcess>> tree = check_images(spec);
  if (!tree) {
    return tree;
  }
  Result<void> work =
      check_directory("cannot restore " + spec.images_dir, "the work directory", spec.work_dir);
  return work ? std::move(tree) : work.error();
}

Result<void> ensure_running(const DumpTarget& before) {
  const probe::Process& process = before.process;
  const auto began = steady_clock::now();
  bool continued = false;
  for (;;) {
    if (!probe::process_lives(process.pid, process.start_ticks)) {
      return Error{Code::data_loss, "process " + std::to_string(process.pid) + " is gone"};
    }
    const std::vector<pid_t> halted = left_halted(before);
    if (halted.empty()) {
      return {};
    }
    const auto waited = steady_clock::now() - began;
    if (waited > kRunningWithin ||
        (waited > kTracerEndsWithin && tracer_cannot_end(tracer_of(halted.front())))) {
      return still_halted(process.pid, halted.front());
    }
    // Stops by a killed tracer end by themselves. A thread that stays stopped longer got a SIGSTOP.
    if (!continued && waited > kRunningWithin / 2) {
      for (const pid_t thread : halted) {
        // kill(2) with the id of a thread signals its process.
        if (tracer_of(thread) == 0) kill(thread, SIGCONT);
      }
      continued = true;
    }
    std::this_thread::sleep_for(kLookAgainEvery);  // the kernel has no event to wait for
  }
}

pid_t living_tracer(const std::vector<pid_t>& tree) {
  for (const pid_t pid : tree) {
    for (const pid_t thread : probe::threads_of(pid)) {
      const pid_t tracer = tracer_of(thread);
      if (tracer == 0 || tracer == getpid()) continue;
      const Result<probe::Process> seen = probe::read_process(tracer);
      if (seen && !seen->zombie() && !seen->ending) return tracer;
    }
  }
  return 0;
}

pid_t held_by(pid_t pid) {
  const pid_t tracer = tracer_of(pid);
  return tracer_cannot_end(tracer) ? tracer : 0;
}

std::string held_text(pid_t holder) {
  const Result<probe::Process> seen = probe::read_process(holder);
  const bool criu = !seen || criu::is_name_of_criu(seen->name);
  std::string text = "held by process " + std::to_string(holder) + ", ";
  text += criu ? "a CRIU" : "its tracer (" + seen->name + ")";
  text += " that was killed but cannot end ";
  constexpr std::string_view kEnds = "; it runs on as soon as that process ends: ";
  if (const std::string cgroup = frozen_cgroup(holder); !cgroup.empty()) {
    return text.append("while the cgroup ").append(cgroup).append(" is frozen").append(kEnds) +
           "unfreeze that cgroup";
  }
  text += criu ? "before its disk answers" : "before the kernel has done what it waits for";
  return text.append(kEnds) + (criu ? "" : "if it waits for a disk, ") +
         "repair the disk, or unmount it with umount -f";
}

std::string what_holds(pid_t pid) {
  if (const pid_t holder = held_by(pid); holder != 0) return held_text(holder);
  if (const std::string cgroup = frozen_cgroup(pid); !cgroup.empty()) {
    return "stopped by the frozen cgroup " + cgroup +
           ": kymo unfreeze, or what froze it, lets it run on";
  }
  const Result<probe::Process> seen = probe::read_process(pid);
  if (!seen || !seen->stopped()) return {};
  if (seen->tracer == 0 && seen->state == 'T') {
    return "stopped by a signal: kill -CONT " + std::to_string(pid) + " lets it run on";
  }
  const Result<probe::Process> tracer = probe::read_process(seen->tracer);
  return "stopped by its tracer" +
         (tracer ? ", process " + std::to_string(tracer->pid) + " (" + tracer->name + ")"
                 : std::string()) +
         ": it runs on when that lets it go or ends";
}

bool has_own_mounts_on_root(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto look = [](const std::string& path, struct stat& seen) {
    return ::stat(path.c_str(), &seen) == 0;
  };
  struct stat theirs {};
  struct stat ours {};
  if (!look(folder + "/ns/mnt", theirs) || !look("/proc/self/ns/mnt", ours)) return false;
  if (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino) return false;
  if (!look(folder + "/root/.", theirs) || !look("/", ours)) return false;
  return theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

}  // namespace kymo::runtime
