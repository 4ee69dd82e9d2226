#include "profiler/kept/cgroup_rule.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>

namespace kymo::profiles {
namespace {

constexpr const char* kMount = "/sys/fs/cgroup";

// A line of /proc/PID/cgroup: "7:cpu,cpuacct:/user.slice", of version 2 "0::/user.slice".
struct Line {
  std::string_view hierarchies;
  std::string_view path;
};

std::optional<Line> take_line(std::string_view& lines) {
  const std::size_t end = std::min(lines.find('\n'), lines.size());
  const std::string_view line = lines.substr(0, end);
  lines.remove_prefix(std::min(end + 1, lines.size()));
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  return Line{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

bool is_below(std::string_view path, std::string_view parent) {
  return path.starts_with(parent) && (path.size() == parent.size() || path[parent.size()] == '/');
}

// Whether a rule applies to one of these hierarchies, a list such as "cpu,cpuacct". That of systemd
// is "name=systemd".
bool is_hierarchy(const CgroupRule& rule, std::string_view hierarchies) {
  if (rule.any || rule.hierarchy == hierarchies) return true;
  if (rule.hierarchy.empty()) return false;
  constexpr std::string_view kNamed = "name=";
  while (!hierarchies.empty()) {
    const std::size_t end = std::min(hierarchies.find(','), hierarchies.size());
    std::string_view one = hierarchies.substr(0, end);
    hierarchies.remove_prefix(std::min(end + 1, hierarchies.size()));
    if (one.starts_with(kNamed)) one.remove_prefix(kNamed.size());
    if (one == rule.hierarchy) return true;
  }
  return false;
}

}  // namespace

std::optional<CgroupRule> cgroup_rule(std::string_view text, bool unified) {
  CgroupRule rule;
  rule.any = !is_below(text, kMount);
  if (!rule.any) text.remove_prefix(std::string_view(kMount).size());
  while (text.ends_with('/')) text.remove_suffix(1);
  if (!text.starts_with('/')) return std::nullopt;
  if (!rule.any && !unified) {
    const std::size_t end = std::min(text.find('/', 1), text.size());
    rule.hierarchy = text.substr(1, end - 1);
    if (rule.hierarchy == "unified") rule.hierarchy.clear();
    text.remove_prefix(end);
  }
  if (text.empty()) return std::nullopt;
  rule.path = text;
  return rule;
}

bool cgroups_are_unified() {
  struct statfs system {};
  return ::statfs(kMount, &system) == 0 && system.f_type == CGROUP2_SUPER_MAGIC;
}

bool is_in(const CgroupRule& rule, std::string_view lines) {
  while (!lines.empty()) {
    const std::optional<Line> line = take_line(lines);
    if (line && is_hierarchy(rule, line->hierarchies) && is_below(line->path, rule.path)) {
      return true;
    }
  }
  return false;
}

std::string cgroup_path_in(std::string_view lines) {
  std::string first;
  while (!lines.empty()) {
    const std::optional<Line> line = take_line(lines);
    if (!line || line->path.size() <= 1) continue;
    if (line->hierarchies.empty()) return std::string(line->path);
    if (first.empty()) first = line->path;
  }
  return first;
}

}  // namespace kymo::profiles
