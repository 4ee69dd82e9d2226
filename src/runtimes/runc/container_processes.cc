#include "runtimes/runc/container_processes.h"

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
#include "probe/process.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::milliseconds kLookEvery{5};
constexpr std::chrono::seconds kEndWithin{3};

std::string cgroup_name(const std::string& container, const std::string& bundle) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  const json config = text ? parse_json(*text) : json();
  const json path =
      config.is_object() ? config.value("/linux/cgroupsPath"_json_pointer, json()) : json();
  const std::string named = path.is_string() ? path.get<std::string>() : "";
  if (named.empty()) return container;
  const std::size_t prefix = named.find(':');  // systemd's form: SLICE:PREFIX:NAME
  if (prefix == std::string::npos) return fs::path(named).filename();
  std::string unit = named.substr(prefix + 1);
  std::replace(unit.begin(), unit.end(), ':', '-');
  return unit + ".scope";
}

// `text` is /proc/PID/cgroup: lines with the path after the second colon.
bool is_in_cgroup(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with("/" + name)) return true;
  }
  return false;
}

}  // namespace

std::vector<ProcessId> processes_of_cgroup(const std::string& container, const std::string& bundle,
                                           const std::string& root) {
  const std::string name = cgroup_name(container, bundle);
  std::vector<ProcessId> found;
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string number = entry->path().filename();
    pid_t pid = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), pid);
    if (parsed.ptr != number.data() + number.size()) continue;
    const Result<std::string> cgroups = read_file(entry->path() / "cgroup");
    if (!cgroups || !is_in_cgroup(*cgroups, name)) continue;
    const Result<probe::Process> seen = probe::read_process(pid, root);
    if (seen && !seen->zombie()) found.push_back({pid, seen->start_ticks});
  }
  return found;
}

void kill_half_restored_container(const std::string& container, const std::string& bundle) {
  for (const auto until = std::chrono::steady_clock::now() + kEndWithin;;) {
    const std::vector<ProcessId> left = processes_of_cgroup(container, bundle);
    if (left.empty() || std::chrono::steady_clock::now() > until) return;
    for (const ProcessId& one : left) ::kill(one.pid, SIGKILL);
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace kymo::runtime
