#include "checkpoint/runtimes/shared/killed_restore.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/mounts.h"
#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/container_processes.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

constexpr char kRootOfRestore[] = "/criu-root";

// Whether only root can have made the folder and what is in it.
bool is_made_by_root(const std::string& folder) {
  struct stat about {};
  return ::lstat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == 0 &&
         (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Whether runc had written its state there, the last thing that it does before the container resumes.
bool is_finished(const std::string& folder) {
  std::error_code error;
  return is_made_by_root(folder) && fs::exists(folder + "/state.json", error);
}

// runc's folders of the container that have a place for its root and no state.
std::vector<std::string> half_made_folders(const std::string& id, const std::string& usual) {
  std::vector<std::string> folders;
  const auto take = [&folders](const std::string& folder) {
    std::error_code error;
    const bool half = fs::exists(folder + kRootOfRestore, error) && !error &&
                      !fs::exists(folder + "/state.json", error) && !error &&
                      is_made_by_root(folder);
    const bool known = std::find(folders.begin(), folders.end(), folder) != folders.end();
    if (half && !known) folders.push_back(folder);
  };
  take(usual);
  for (const std::string& point : mount_points_that_end("/" + id + kRootOfRestore)) {
    take(fs::path(point).parent_path());
  }
  return folders;
}

// Whether the process is a `program` that restores this container.
bool restores(pid_t process, const std::string& id, std::string_view program = "runc") {
  const Result<std::string> words = read_file("/proc/" + std::to_string(process) + "/cmdline");
  if (!words || fs::path(words->c_str()).filename() != program) return false;
  const std::string all = '\0' + *words;
  const auto has = [&all](const std::string& word) {
    return all.find('\0' + word + '\0') != std::string::npos;
  };
  return has("restore") && has(id);
}

}  // namespace

pid_t restored_by(const std::string& id) {
  const std::string name = fs::path(id).filename();
  const std::vector<pid_t> all = probe::all_processes();
  const auto found = std::find_if(all.begin(), all.end(), [&](pid_t one) {
    return restores(one, name) || restores(one, name, "podman");
  });
  return found == all.end() ? 0 : *found;
}

bool is_being_restored(const std::string& id) {
  return restored_by(id) != 0;
}

std::uint64_t made_at_ticks(const std::string& folder) {
  struct statx about {};
  if (::statx(AT_FDCWD, folder.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &about) != 0 ||
      (about.stx_mask & STATX_BTIME) == 0) {
    return UINT64_MAX;
  }
  timespec since_boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const std::int64_t ticks = ::sysconf(_SC_CLK_TCK);
  const auto in_ticks = [ticks](std::int64_t seconds, std::int64_t ns) {
    return seconds * ticks + ns * ticks / 1'000'000'000;
  };
  const auto age = static_cast<std::int64_t>(unix_ns()) / 1'000'000 -
                   (about.stx_btime.tv_sec * 1000 + about.stx_btime.tv_nsec / 1'000'000);
  const std::int64_t made = in_ticks(since_boot.tv_sec, since_boot.tv_nsec) - age * ticks / 1000;
  return made > 0 ? static_cast<std::uint64_t>(made) : 0;
}

void detach_roots_of_killed_restores() {
  for (const std::string& point : mount_points_that_end(kRootOfRestore)) {
    const fs::path folder = fs::path(point).parent_path();
    if (!is_made_by_root(folder)) continue;
    const std::vector<pid_t> all = probe::all_processes();
    const bool goes_on = std::any_of(all.begin(), all.end(),
                                     [&](pid_t one) { return restores(one, folder.filename()); });
    if (!goes_on) static_cast<void>(detach_mounts(point).ok());
  }
}

Result<void> remove_killed_restore(const std::string& id, const std::string& usual_folder,
                                   const std::vector<std::string>& cgroups,
                                   const std::string& work_dir) {
  if (const pid_t other = restored_by(id); other != 0) {
    return Error{
        Code::failed_precondition,
        "process " + std::to_string(other) + " is restoring it: wait for that to end, or end it"};
  }
  // If runc was killed after it had written state.json, others delete the folder, and must not find the root there.
  for (const std::string& point : mount_points_that_end("/" + id + kRootOfRestore)) {
    if (!is_finished(fs::path(point).parent_path())) continue;
    if (Result<void> detached = detach_mounts(point); !detached) return detached;
  }
  const std::vector<std::string> folders = half_made_folders(id, usual_folder);
  if (folders.empty()) return {};
  const Scope scope("remove what a killed restore has left", {.category = "runtime"});
  const std::string& folder = folders.front();
  const auto left_alone = [&folder](pid_t process, const char* what) {
    return Error{Code::failed_precondition, "an earlier restore has left its root mounted in " +
                                                folder + ", and process " +
                                                std::to_string(process) + what};
  };
  const std::uint64_t made = made_at_ticks(folder);
  const std::vector<ProcessId> inside = processes_of_cgroups(cgroups);
  for (const ProcessId& one : inside) {
    if (one.start_ticks < made) {
      return left_alone(one.pid, " in the container's cgroups is older than that");
    }
  }
  if (!inside.empty()) kill_half_restored_container(cgroups, {});
  criu::remove_leftover_mounts(work_dir);
  for (const std::string& half : folders) {
    if (Result<void> detached = detach_mounts(half + "/"); !detached) return detached;
    ::rmdir((half + kRootOfRestore).c_str());  // only if it is empty: the root stays as it is
    ::rmdir(half.c_str());
  }
  return {};
}

}  // namespace kymo::runtime
