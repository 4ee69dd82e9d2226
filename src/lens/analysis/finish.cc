#include "lens/analysis/finish.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <thread>

#include "base/file.h"
#include "base/proc/process.h"
#include "base/process_identity.h"
#include "base/recording_name.h"

namespace kymo::analysis {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

std::string this_host() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

// Whether the process existed when the recording began. One second of tolerance allows for changes
// of the wall clock.
bool is_old_enough(const probe::Process& process, std::int64_t recording_unix_ns) {
  const std::int64_t tick_ns = kSecond / std::max<std::int64_t>(::sysconf(_SC_CLK_TCK), 1);
  const std::int64_t boot_unix_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
  const std::int64_t started =
      boot_unix_ns + static_cast<std::int64_t>(process.start_ticks) * tick_ns;
  return started <= recording_unix_ns + kSecond;
}

// The recorder of an older recording: all that is known of it is its pid and that it was there when
// the recording began.
Finish finish_by_pid(const Metadata& metadata, const std::string& proc) {
  if (metadata.host != this_host()) return Finish::unfinished;
  const auto process = probe::read_process(static_cast<pid_t>(metadata.pid), proc);
  if (!process && process.error().code != Code::not_found) return Finish::unfinished;
  const bool lives =
      process && !process->zombie() && is_old_enough(*process, metadata.start_unix_ns);
  return lives ? Finish::writing : Finish::cut_short;
}

// Whether this process, with a pid as it is here, is the recorder and not gone.
bool is_recorder(const Result<probe::Process>& process, const ProcessIdentity& recorder) {
  if (!process || process->zombie()) return false;
  const std::uint64_t ticks = without_time_namespace(process->start_ticks);
  return ticks + 1 >= recorder.start_ticks && ticks <= recorder.start_ticks + 1;
}

// The pid of a process in its own namespace, if that is below the namespace of `proc`. Else 0.
std::uint64_t inner_pid(pid_t pid, const std::string& proc) {
  constexpr std::string_view kKey = "\nNSpid:";
  const Result<std::string> status = read_file(proc + "/" + std::to_string(pid) + "/status");
  const std::size_t at = status ? status->find(kKey) : std::string::npos;
  if (at == std::string::npos) return 0;
  const std::size_t begin = at + kKey.size();
  std::istringstream pids(status->substr(begin, status->find('\n', begin) - begin));
  std::uint64_t inner = 0;
  int levels = 0;
  while (pids >> inner) ++levels;
  return levels > 1 ? inner : 0;
}

Finish finish_in_other_namespace(const Metadata& metadata, std::uint64_t own_namespace,
                                 const std::string& proc) {
  const ProcessIdentity& recorder = metadata.process;
  for (const pid_t pid : probe::all_processes(proc)) {
    if (inner_pid(pid, proc) != metadata.pid) continue;
    struct stat space {};
    // Only its user and root may look at the namespace.
    const bool known = ::stat((proc + "/" + std::to_string(pid) + "/ns/pid").c_str(), &space) == 0;
    if (known && space.st_ino != recorder.pid_namespace) continue;
    if (is_recorder(probe::read_process(pid, proc), recorder)) return Finish::writing;
  }
  const bool all_are_visible = own_namespace == kFirstPidNamespace && probe::read_process(1, proc);
  return all_are_visible ? Finish::cut_short : Finish::unfinished;
}

// Whether it is certain that a process of this pid namespace does not have this file open.
bool has_let_go(pid_t pid, const std::string& path, const std::string& proc) {
  const std::string folder = proc + "/" + std::to_string(pid);
  struct stat file {};
  struct stat here {};
  struct stat there {};
  // In another mount namespace the same file may have another number.
  if (::stat(path.c_str(), &file) != 0 || ::stat((proc + "/self/ns/mnt").c_str(), &here) != 0 ||
      ::stat((folder + "/ns/mnt").c_str(), &there) != 0 || here.st_ino != there.st_ino) {
    return false;
  }
  std::error_code error;
  std::filesystem::directory_iterator descriptor(folder + "/fd", error);
  for (; !error && descriptor != std::filesystem::directory_iterator();
       descriptor.increment(error)) {
    struct stat open {};
    const bool is_it = ::stat(descriptor->path().c_str(), &open) == 0 &&
                       open.st_dev == file.st_dev && open.st_ino == file.st_ino;
    if (is_it) return false;
  }
  return !error;
}

// "process 1", and where it has this pid.
std::string recorder_of(const Metadata& metadata) {
  const std::uint64_t here = own_pid_namespace();
  const std::uint64_t there = metadata.process.pid_namespace;
  return "process " + std::to_string(metadata.pid) +
         (here != 0 && there != 0 && here != there ? " of another pid namespace" : "");
}

bool is_about_to_end(const std::string& path) {
  const Result<Metadata> metadata = read_metadata(recording_stem(path) + ".meta.json");
  return metadata && metadata->about->contains("request") &&
         finish_of(*metadata, path) == Finish::writing;
}

}  // namespace

Finish finish_of(const Metadata& metadata, const std::string& path, const std::string& proc) {
  if (metadata.state != "running") return Finish::ended;
  if (metadata.pid == 0) return Finish::unfinished;
  const ProcessIdentity& recorder = metadata.process;
  const std::string boot = boot_id();
  const std::uint64_t own_namespace = own_pid_namespace();
  if (!recorder.boot_id.empty() && !boot.empty() && recorder.boot_id != boot) {
    // This machine has booted since, or it is another one.
    return metadata.host == this_host() ? Finish::cut_short : Finish::unfinished;
  }
  if (recorder.boot_id.empty() || boot.empty() || recorder.pid_namespace == 0 ||
      own_namespace == 0 || recorder.start_ticks == 0) {
    return finish_by_pid(metadata, proc);
  }
  if (recorder.pid_namespace != own_namespace) {
    return finish_in_other_namespace(metadata, own_namespace, proc);
  }
  const auto process = probe::read_process(static_cast<pid_t>(metadata.pid), proc);
  if (!process && process.error().code != Code::not_found) return Finish::unfinished;
  const bool writes = is_recorder(process, recorder) && !has_let_go(process->pid, path, proc);
  return writes ? Finish::writing : Finish::cut_short;
}

const char* to_string(Finish finish) {
  switch (finish) {
    case Finish::ended:
      return "ended";
    case Finish::writing:
      return "writing";
    case Finish::cut_short:
      return "cut short";
    case Finish::unfinished:
      break;
  }
  return "unfinished";
}

std::string sentence_of(Finish finish, const Metadata& metadata) {
  const std::string process = recorder_of(metadata);
  switch (finish) {
    case Finish::ended:
      break;
    case Finish::writing:
      return "unfinished: " + process +
             " still writes it; rows that it adds from now on are not in it";
    case Finish::cut_short:
      return "cut short: its recorder (" + process +
             ") stopped without finishing it (killed, replaced by execve(2), or its disk was "
             "full), or this is a copy; its last rows and totals may be missing" +
             (metadata.ring_file.empty()
                  ? ""
                  : "; to get them from its ring, use 'kymo recover " + metadata.ring_file + "'");
    case Finish::unfinished:
      return "unfinished: it does not say that it has ended; its last rows and totals may be "
             "missing";
  }
  return {};
}

std::vector<std::string> about_to_end(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(found), is_about_to_end);
  return found;
}

std::vector<std::string> wait_until_ended(std::vector<std::string> paths,
                                          std::chrono::milliseconds most) {
  constexpr std::chrono::milliseconds kPause(50);
  const auto until = std::chrono::steady_clock::now() + most;
  for (paths = about_to_end(paths); !paths.empty() && std::chrono::steady_clock::now() < until;
       paths = about_to_end(paths)) {
    std::this_thread::sleep_for(kPause);
  }
  return paths;
}

}  // namespace kymo::analysis
