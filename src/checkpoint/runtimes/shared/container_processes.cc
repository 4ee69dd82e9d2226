#include "checkpoint/runtimes/shared/container_processes.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "base/json_text.h"
#include "base/proc/process.h"
#include "checkpoint/criu/repair/connections.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::milliseconds kLookEvery{5};
constexpr std::chrono::milliseconds kEndWithin{3000};
// A killed process that has waited for a disk this long ends only when the disk answers.
constexpr std::chrono::milliseconds kWaitsForDisk{500};

// `text` is /proc/PID/cgroup: lines with the path after the second colon.
bool is_in_cgroup(const std::string& text, const std::vector<std::string>& names) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool named = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return line.ends_with("/" + name);
    });
    if (named) return true;
  }
  return false;
}

// Calls use(process, text of its /proc/PID/cgroup) for each process whose cgroup has one of these names.
template <typename Use>
void for_each_in_cgroups(const std::vector<std::string>& names, const std::string& root, Use use) {
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string number = entry->path().filename();
    pid_t pid = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), pid);
    if (parsed.ptr != number.data() + number.size()) continue;
    const Result<std::string> cgroups = read_file(entry->path() / "cgroup");
    if (!cgroups || !is_in_cgroup(*cgroups, names)) continue;
    const Result<probe::Process> seen = probe::read_process(pid, root);
    if (seen && !seen->zombie()) use(ProcessId{pid, seen->start_ticks}, *cgroups);
  }
}

}  // namespace

std::string cgroup_name(std::string_view spec, const std::string& id) {
  const json config = parse_json(spec);
  const json path =
      config.is_object() ? config.value("/linux/cgroupsPath"_json_pointer, json()) : json();
  const std::string named = path.is_string() ? path.get<std::string>() : "";
  const std::size_t prefix = named.find(':');  // systemd's form: SLICE:PREFIX:NAME
  if (prefix != std::string::npos) {
    std::string unit = named.substr(prefix + 1);
    std::replace(unit.begin(), unit.end(), ':', '-');
    return unit + ".scope";
  }
  std::string relative = fs::path("/" + named).lexically_normal().relative_path();
  return relative.empty() ? id : relative;
}

std::vector<ProcessId> processes_of_cgroups(const std::vector<std::string>& names,
                                            const std::set<std::string>& others,
                                            const std::string& root) {
  std::vector<ProcessId> found;
  for_each_in_cgroups(names, root, [&](const ProcessId& process, const std::string& cgroups) {
    if (others.count(cgroups) == 0) found.push_back(process);
  });
  return found;
}

std::set<std::string> cgroups_in_use(const std::vector<std::string>& names,
                                     const std::string& root) {
  std::set<std::string> found;
  for_each_in_cgroups(names, root,
                      [&](const ProcessId&, const std::string& cgroups) { found.insert(cgroups); });
  return found;
}

void kill_half_restored_container(const std::vector<std::string>& names,
                                  const std::set<std::string>& others) {
  using std::chrono::steady_clock;
  const auto began = steady_clock::now();
  for (;;) {
    const std::vector<ProcessId> left = processes_of_cgroups(names, others);
    const bool stuck = std::all_of(left.begin(), left.end(), [](const ProcessId& one) {
      return probe::waits_in_kernel(one.pid);
    });
    if (left.empty() || steady_clock::now() - began > (stuck ? kWaitsForDisk : kEndWithin)) return;
    for (const ProcessId& one : left) criu::keep_peers_waiting(one.pid);
    for (const ProcessId& one : left) ::kill(one.pid, SIGKILL);
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace kymo::runtime
