#include "checkpoint/runtimes/shared/companions.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/file.h"
#include "base/proc/process.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kSoonOver{1000};
constexpr milliseconds kLookAtOthersEvery{20};

// Whether the process is the first one of a pid namespace below ours. Its ids are in the line NSpid, the innermost last.
bool is_first(pid_t pid, const std::string& root) {
  constexpr std::string_view kKey = "\nNSpid:";
  const Result<std::string> status = read_file(root + "/" + std::to_string(pid) + "/status");
  const std::size_t at = status ? status->find(kKey) : std::string::npos;
  if (at == std::string::npos) return false;
  const std::size_t from = at + kKey.size();
  std::istringstream ids(status->substr(from, status->find('\n', from) - from));
  std::vector<pid_t> all;
  for (pid_t id = 0; ids >> id;) all.push_back(id);
  return all.size() > 1 && all.back() == 1;
}

std::string pid_namespace(pid_t pid, const std::string& root) {
  std::error_code error;
  const fs::path link = fs::read_symlink(root + "/" + std::to_string(pid) + "/ns/pid", error);
  return error ? std::string() : link.string();
}

}  // namespace

std::vector<pid_t> companions_of(pid_t first, const std::string& root) {
  std::vector<pid_t> found;
  const std::string space = is_first(first, root) ? pid_namespace(first, root) : "";
  if (space.empty()) return found;
  for (const pid_t pid : probe::all_processes(root)) {
    if (pid_namespace(pid, root) == space) found.push_back(pid);
  }
  // The tree is read later, so a process that it started meanwhile is in it.
  const std::vector<pid_t> tree = probe::process_tree(first, root);
  const std::set<pid_t> own(tree.begin(), tree.end());
  std::erase_if(found, [&](pid_t pid) {
    return own.contains(pid) || pid_namespace(pid, root) != space;  // it has ended
  });
  return found;
}

Result<void> refuse_companions(const std::string& tried, pid_t first) {
  std::vector<pid_t> found = companions_of(first);
  const auto until = steady_clock::now() + kSoonOver;
  while (!found.empty() && steady_clock::now() < until) {
    std::this_thread::sleep_for(kLookAtOthersEvery);
    found = companions_of(first);
  }
  if (found.empty()) return {};
  const Result<probe::Process> one = probe::read_process(found.front());
  const std::string name = one ? " (" + one->name + ")" : "";
  const std::string which = "process " + std::to_string(found.front()) + name +
                            (found.size() == 1 ? " was"
                                               : " and " + std::to_string(found.size() - 1) +
                                                     " more of its processes were");
  return Error{Code::failed_precondition,
               tried + ": " + which +
                   " started in it from outside (such as by docker exec), which a dump does not "
                   "have and which would end with the container: end that first, or use "
                   "--leave-running, or --force to lose it"};
}

}  // namespace kymo::runtime
