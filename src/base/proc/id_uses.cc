#include "base/proc/id_uses.h"

#include <unistd.h>

#include <algorithm>

namespace kymo::probe {
namespace {

void add(pid_t pid, pid_t id, const char* as, std::vector<IdUse>& uses) {
  Result<Process> process = read_process(pid);
  if (process) uses.push_back({id, *std::move(process), as});
}

}  // namespace

Result<std::vector<IdUse>> uses_of(const std::set<pid_t>& ids) {
  std::vector<IdUse> uses;
  for (const pid_t id : ids) {
    Result<Process> process = read_process(id);
    if (process) {
      uses.push_back({id, *std::move(process), ""});
    } else if (process.error().code != Code::not_found) {
      return Error{process.error().code,
                   "whether its pid " + std::to_string(id) +
                       " is free is not known: " + process.error().message,
                   process.error().errno_value};
    }
  }
  for (const pid_t pid : all_processes()) {
    const pid_t session = ::getsid(pid);
    const pid_t group = ::getpgid(pid);
    if (session != pid && ids.contains(session)) {
      add(pid, session, "session", uses);
    } else if (group != pid && ids.contains(group)) {
      add(pid, group, "process group", uses);
    }
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const IdUse& one, const IdUse& other) { return one.id < other.id; });
  return uses;
}

std::string text_of(const IdUse& use) {
  const std::string in_use = "its pid " + std::to_string(use.id) + " is in use ";
  if (use.as.empty()) return in_use + "by '" + use.process.name + "'";
  return in_use + "as the " + use.as + " of process " + std::to_string(use.process.pid) + " (" +
         use.process.name + ")";
}

}  // namespace kymo::probe
