#include "base/proc/container_keeper.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/proc/process.h"

namespace kymo::probe {
namespace {

// The programs, and those that start them. The latter may be about to become the former.
constexpr std::array<std::string_view, 2> kKeepers = {"containerd-shim", "conmon"};
constexpr std::array<std::string_view, 2> kStarters = {"containerd", "podman"};

template <std::size_t N>
bool is_named(const Process& process, const std::array<std::string_view, N>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return process.name.starts_with(name); });
}

// containerd also starts the program of the shim to start the shim, and to clean up after it. These
// have the word start or delete at the end.
bool keeps(const Process& process, const std::string& id) {
  const std::vector<std::string>& words = process.command;
  return is_named(process, kKeepers) && !words.empty() && words.back() != "start" &&
         words.back() != "delete" && std::find(words.begin(), words.end(), id) != words.end();
}

}  // namespace

std::vector<pid_t> ContainerKeeper::look() {
  std::vector<pid_t> keepers;
  std::set<pid_t> now;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(proc_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    if (others_.contains(pid)) {
      now.insert(pid);
      continue;
    }
    const Result<Process> seen = read_process(pid, proc_);
    if (!seen) continue;
    if (keeps(*seen, id_)) {
      keepers.push_back(pid);
    } else if (!is_named(*seen, kKeepers) && !is_named(*seen, kStarters)) {
      now.insert(pid);
    }
  }
  others_ = std::move(now);
  return keepers;
}

}  // namespace kymo::probe
