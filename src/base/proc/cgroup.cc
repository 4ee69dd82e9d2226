#include "base/proc/cgroup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

namespace kymo::probe {
namespace {

constexpr std::string_view kUsage = "usage_usec ";
constexpr std::uint64_t kNanosPerMicro = 1000;

// The cgroup in the hierarchy of `controller` (v1), or in v2 if `controller` is empty. A line of
// /proc/PID/cgroup is ID:CONTROLLERS:PATH.
std::optional<std::string> path_in(const std::string& file, std::string_view controller) {
  std::ifstream lines(file);
  std::string wanted = ",";
  wanted.append(controller).append(",");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    std::string list = ",";
    list.append(line, first + 1, second - first - 1).append(",");
    if (list.find(wanted) != std::string::npos) {
      return line.substr(second + 1);
    }
  }
  return std::nullopt;
}

FileDescriptor open_file(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// Opens a file of a v1 controller. In a container, the mounted hierarchy may begin at the
// container's own cgroup, and the kernel's path does not exist there. Then try the mount's root.
FileDescriptor open_v1(const std::string& groups, const std::string& sys,
                       const std::string& controller, const std::string& name) {
  const std::optional<std::string> path = path_in(groups, controller);
  if (!path) {
    return FileDescriptor();
  }
  FileDescriptor file = open_file(sys + "/" + controller + *path + "/" + name);
  return file.valid() ? std::move(file) : open_file(sys + "/" + controller + "/" + name);
}

// The number behind `before`, which is at the beginning of the file or, if it begins with a line feed, in it.
std::optional<std::uint64_t> read_number(const FileDescriptor& file, std::string_view before) {
  std::array<char, 512> buffer{};
  const ssize_t got = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  const std::string_view text(buffer.data(), got <= 0 ? 0 : static_cast<std::size_t>(got));
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos || (at != 0 && !before.starts_with('\n'))) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data() + at + before.size(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The number at the beginning of the file, or behind the first `key` in it. Nothing: there is none, such as "max".
std::optional<std::uint64_t> number_in(const std::string& path, std::string_view key = {}) {
  const Result<std::string> text = read_file(path);
  const std::size_t at = text ? text->find(key) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto parsed =
      std::from_chars(text->data() + at + key.size(), text->data() + text->size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// How a version of cgroups names the files of a limit.
struct LimitFiles {
  const char* limit;
  const char* used;
  std::array<std::string_view, 2> files{};  // lines of memory.stat; empty: of no limit of memory
};

std::optional<CgroupLimit> limit_of(const std::string& folder, const LimitFiles& files) {
  const auto limit = number_in(folder + files.limit);
  const auto used = number_in(folder + files.used);
  if (!limit || !used) return std::nullopt;
  CgroupLimit found{folder, *limit, *used};
  for (const std::string_view key : files.files) {
    if (key.empty()) continue;
    const std::uint64_t files_of = number_in(folder + "/memory.stat", key).value_or(0);
    found.used -= std::min(found.used, files_of);
  }
  return found;
}

// Calls `look` with the folder of a cgroup and of each above it.
template <class Look>
void for_each_above(const std::string& top, const std::optional<std::string>& path, Look look) {
  namespace fs = std::filesystem;
  if (!path) return;
  for (fs::path below = fs::path(*path).relative_path();; below = below.parent_path()) {
    look((fs::path(top) / below).string());
    if (below.empty()) return;
  }
}

// Each hierarchy of v1 (of `controller`) and v2 that a process may be in.
template <class Look>
void for_each_group(pid_t pid, const std::string& controller, const std::string& proc,
                    const std::string& sys, Look look) {
  const auto of = [&look](bool v2) { return [&look, v2](const std::string& at) { look(at, v2); }; };
  for_each_above(sys + "/" + controller, cgroup_path(pid, controller, proc), of(false));
  const auto path = cgroup_path(pid, "", proc);
  for_each_above(sys, path, of(true));
  for_each_above(sys + "/unified", path, of(true));
}

}  // namespace

std::optional<std::string> cgroup_path(pid_t pid, std::string_view controller,
                                       const std::string& proc) {
  return path_in(proc + "/" + std::to_string(pid) + "/cgroup", controller);
}

Cgroup::Cgroup(pid_t pid, const std::string& proc, const std::string& sys) {
  const std::string groups = proc + "/" + std::to_string(pid) + "/cgroup";
  if (const std::optional<std::string> path = path_in(groups, ""); path) {
    memory_ = open_file(sys + *path + "/memory.current");
    cpu_ = open_file(sys + *path + "/cpu.stat");
    cpu_in_us_ = cpu_.valid();
  }
  if (!memory_.valid()) {
    memory_ = open_v1(groups, sys, "memory", "memory.usage_in_bytes");
  }
  if (!cpu_.valid()) {
    cpu_ = open_v1(groups, sys, "cpuacct", "cpuacct.usage");
  }
}

std::optional<CgroupLimit> least_room(pid_t pid, const std::string& controller,
                                      const std::string& proc, const std::string& sys) {
  const bool memory = controller == "memory";
  const LimitFiles one = memory ? LimitFiles{"/memory.limit_in_bytes",
                                             "/memory.usage_in_bytes",
                                             {"\ntotal_inactive_file ", "\ntotal_active_file "}}
                                : LimitFiles{"/pids.max", "/pids.current", {}};
  const LimitFiles two =
      memory ? LimitFiles{"/memory.max", "/memory.current", {"\ninactive_file ", "\nactive_file "}}
             : LimitFiles{"/pids.max", "/pids.current", {}};
  std::optional<CgroupLimit> least;
  for_each_group(pid, controller, proc, sys, [&](const std::string& folder, bool v2) {
    std::optional<CgroupLimit> found = limit_of(folder, v2 ? two : one);
    if (found && (!least || found->room() < least->room())) least = std::move(found);
  });
  return least;
}

CpuQuotas::CpuQuotas(pid_t pid, const std::string& proc, const std::string& sys) {
  std::string below;
  for_each_group(pid, "cpu", proc, sys, [&](const std::string& folder, bool v2) {
    const bool own = !std::exchange(below, folder).starts_with(folder);
    // v1: two files, and -1 is no limit. v2: "max 100000" or "5000 100000".
    const auto quota = number_in(folder + (v2 ? "/cpu.max" : "/cpu.cfs_quota_us"));
    const auto period =
        v2 ? number_in(folder + "/cpu.max", " ") : number_in(folder + "/cpu.cfs_period_us");
    if (!quota || period.value_or(0) == 0) return;
    FileDescriptor file = open_file(folder + "/cpu.stat");
    if (!file.valid()) return;
    const double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
    if (folder_.empty() || cpus < cpus_) {
      folder_ = folder;
      cpus_ = cpus;
    }
    limited_.push_back({std::move(file), v2 ? "\nthrottled_usec " : "\nthrottled_time ",
                        v2 ? kNanosPerMicro : 1, own});
  });
}

std::uint64_t CpuQuotas::longest(bool with_own) const {
  std::uint64_t longest = 0;
  for (const Statistics& one : limited_) {
    if (one.own && !with_own) continue;
    const std::optional<std::uint64_t> waited = read_number(one.file, one.key);
    if (waited) longest = std::max(longest, *waited * one.unit_ns);
  }
  return longest;
}

std::uint64_t out_of_memory_kills(const std::string& proc) {
  return number_in(proc + "/vmstat", "\noom_kill ").value_or(0);
}

std::optional<std::uint64_t> Cgroup::memory_bytes() const {
  return read_number(memory_, "");
}

std::optional<std::uint64_t> Cgroup::cpu_ns() const {
  const std::optional<std::uint64_t> usage = read_number(cpu_, cpu_in_us_ ? kUsage : "");
  return usage && cpu_in_us_ ? std::optional(*usage * kNanosPerMicro) : usage;
}

}  // namespace kymo::probe
