// Checks of what a process outside of the tree has open, too.
#include <unistd.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/proc/open_files.h"
#include "base/proc/process.h"
#include "checkpoint/preflight/checks.h"

namespace kymo::preflight {
namespace {

// The kernel lists a lock of flock(2) at each descriptor of the open file that holds it, whoever has it.
bool has_lock(const std::string& fdinfo) {
  return fdinfo.find("\nlock:") != std::string::npos;
}

bool has_lock(const Tree& tree, const probe::OpenDescriptor& one) {
  const Result<std::string> info =
      read_file(tree.proc + "/" + std::to_string(one.pid) + "/fdinfo/" + std::to_string(one.fd));
  return info && has_lock(*info);
}

}  // namespace

void look_at_holders(const Tree& tree, std::map<std::string, Place> held, Findings& found) {
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      if (file.has_path() && has_lock(file.info)) held.emplace(file.link, place_of(member, file));
    }
  }
  std::set<std::string> links;
  for (const auto& [link, place] : held) links.insert(link);
  if (links.empty()) return;
  for (const probe::OpenDescriptor& one : probe::descriptors_with(links, tree.proc)) {
    const auto at = held.find(one.link);
    const bool locked = one.link.starts_with('/');
    if (at == held.end() || tree.has(one.pid) || one.pid == getpid() ||
        (locked && !has_lock(tree, one)) || !tree.is_outside(one.pid)) {
      continue;
    }
    const Result<probe::Process> holder = probe::read_process(one.pid);
    Place place = std::move(at->second);
    held.erase(at);
    place.object += (place.object.empty() ? "" : ", ") + std::string("also of process ") +
                    std::to_string(one.pid) + (holder ? " (" + holder->name + ")" : "");
    found.add(Grade::warns, locked ? "lock-wait" : "inet-address", std::move(place),
              locked ? "another process has the same file open, with its lock"
                     : "another process has the same socket open",
              "End that process before a restore: until then a restore fails.");
  }
}

}  // namespace kymo::preflight
