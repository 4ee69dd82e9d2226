#include "daemon/request/cpu_priority.h"

#include <charconv>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/proc/cgroup.h"

namespace kymo::daemon {

// The kernel leaves a session without a group of its own if its cgroup is not the root of the CPU controller (sched(7)).
diagnosis::Priority priority_of(pid_t pid, const std::string& proc, const std::string& sys) {
  const auto v2 = probe::cgroup_path(pid, "", proc);
  if (v2 && ::access((sys + *v2 + "/cpu.weight").c_str(), F_OK) == 0) {
    return diagnosis::Priority::cgroup;
  }
  const auto v1 = probe::cgroup_path(pid, "cpu", proc);
  if (v1 && *v1 != "/") return diagnosis::Priority::cgroup;
  // A kernel without autogroups has no such file.
  const Result<std::string> enabled = read_file(proc + "/sys/kernel/sched_autogroup_enabled");
  return enabled && enabled->starts_with('1') ? diagnosis::Priority::autogroup
                                              : diagnosis::Priority::nice;
}

diagnosis::Quota quota_of(pid_t pid) {
  const probe::CpuQuotas quotas(pid);
  return {quotas.folder(), quotas.cpus()};
}

diagnosis::Autogroup autogroup_of(pid_t pid, const std::string& proc, const std::string& sys) {
  constexpr std::string_view kNice = " nice ";
  if (pid <= 0 || priority_of(pid, proc, sys) != diagnosis::Priority::autogroup) return {};
  const Result<std::string> text = read_file(proc + "/" + std::to_string(pid) + "/autogroup");
  if (!text) return {};
  const std::size_t at = text->find(kNice);
  if (at == std::string::npos) return {};
  diagnosis::Autogroup group{pid, text->substr(0, at), 0};
  const char* const nice = text->data() + at + kNice.size();
  const auto read = std::from_chars(nice, text->data() + text->size(), group.nice);
  return read.ec == std::errc() ? group : diagnosis::Autogroup();
}

}  // namespace kymo::daemon
