#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kymo::profiles {

// A cgroup, with those below it.
struct CgroupRule {
  std::string hierarchy;  // of version 1: a controller, or "systemd"; empty: version 2
  std::string path;       // as in /proc/PID/cgroup, such as "/system.slice/nginx.service"
  bool any = false;       // of whatever hierarchy

  bool operator==(const CgroupRule&) const = default;
};

// Makes a rule of a text, which is a path as in /proc/PID/cgroup or a folder below /sys/fs/cgroup.
// The cgroup need not exist. `unified`: only version 2 is mounted there. Returns nothing if the
// text is neither, or names the root of all cgroups.
std::optional<CgroupRule> cgroup_rule(std::string_view text, bool unified);

// Whether /sys/fs/cgroup is of version 2 alone.
bool cgroups_are_unified();

// Whether a process is in the cgroup or below it. `lines`: those of its /proc/PID/cgroup.
bool is_in(const CgroupRule& rule, std::string_view lines);

// The path of a process's cgroup of version 2 or, if that is the root, of its first cgroup that is
// not a root. Empty if it is only in roots.
std::string cgroup_path_in(std::string_view lines);

}  // namespace kymo::profiles
