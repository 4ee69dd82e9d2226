#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "base/proc/process.h"
#include "profiler/stacks/source.h"

namespace kymo::stacks {
namespace {

namespace fs = std::filesystem;

// The processes of a cgroup and of those below it.
std::vector<pid_t> members_of(const std::string& folder) {
  std::vector<pid_t> pids;
  const auto add = [&](const std::string& path) {
    const Result<std::string> text = read_file(path + "/cgroup.procs");
    std::istringstream lines(text ? *text : std::string());
    for (pid_t pid = 0; lines >> pid;) pids.push_back(pid);
  };
  add(folder);
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_directory(error)) add(entry.path());
  }
  return pids;
}

}  // namespace

Result<void> Source::add(const Starter& /*starter*/, const std::vector<pid_t>& /*started*/) {
  return Error{Code::unimplemented, "only BPF can follow what a process starts"};
}

Result<Profiled> tree_of(pid_t pid) {
  std::vector<pid_t> pids = probe::process_tree(pid);
  if (pids.empty()) return system_error("cannot profile process " + std::to_string(pid), ESRCH);
  return Profiled{Profiled::Kind::processes, std::move(pids), {}};
}

Result<Profiled> cgroup_at(const std::string& folder) {
  struct statfs system {};
  if (::statfs(folder.c_str(), &system) != 0) {
    return system_error("cannot profile the cgroup " + folder, errno);
  }
  const bool first = system.f_type == CGROUP_SUPER_MAGIC;
  if (!first && system.f_type != CGROUP2_SUPER_MAGIC) {
    return Error{Code::invalid_argument,
                 "cannot profile the cgroup " + folder +
                     ": it is not the folder of a cgroup: give one below /sys/fs/cgroup"};
  }
  std::vector<pid_t> pids = members_of(folder);
  if (!first) return Profiled{Profiled::Kind::cgroup, std::move(pids), folder};
  if (!pids.empty()) return Profiled{Profiled::Kind::processes, std::move(pids), {}};
  return Error{Code::failed_precondition,
               "cannot profile the cgroup " + folder +
                   ": no process is in it, and of a cgroup of version 1 only those are profiled "
                   "that are in it at the start, and their children"};
}

}  // namespace kymo::stacks
