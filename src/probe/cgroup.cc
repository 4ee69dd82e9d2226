#include "probe/cgroup.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>
#include <string_view>

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

std::optional<std::uint64_t> read_number(const FileDescriptor& file, std::string_view before) {
  std::array<char, 256> buffer{};
  const ssize_t got = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  const std::string_view text(buffer.data(), got <= 0 ? 0 : static_cast<std::size_t>(got));
  if (!text.starts_with(before)) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data() + before.size(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
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

std::optional<std::uint64_t> Cgroup::memory_bytes() const {
  return read_number(memory_, "");
}

std::optional<std::uint64_t> Cgroup::cpu_ns() const {
  const std::optional<std::uint64_t> usage = read_number(cpu_, cpu_in_us_ ? kUsage : "");
  return usage && cpu_in_us_ ? std::optional(*usage * kNanosPerMicro) : usage;
}

}  // namespace kymo::probe
