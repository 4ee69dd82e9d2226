#include "checkpoint/runtimes/shared/session.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/proc/process.h"

namespace kymo::runtime {
namespace {

template <class Look>
void for_each_process(Look look) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos) {
      look(static_cast<pid_t>(std::stoi(name)));
    }
  }
}

}  // namespace

std::vector<pid_t> members_of(const std::vector<pid_t>& sessions) {
  std::vector<pid_t> members;
  if (sessions.empty()) {
    return members;
  }
  for_each_process([&](pid_t pid) {
    const Result<probe::Process> process = probe::read_process(pid);
    if (process && !process->zombie() &&
        std::find(sessions.begin(), sessions.end(), process->session) != sessions.end()) {
      members.push_back(pid);
    }
  });
  return members;
}

std::vector<pid_t> stop_sessions(const std::vector<pid_t>& sessions) {
  std::set<pid_t> stopped;
  for (bool more = true; more;) {
    more = false;
    for (const pid_t member : members_of(sessions)) {
      if (stopped.insert(member).second) {
        ::kill(member, SIGSTOP);
        more = true;
      }
    }
  }
  return {stopped.begin(), stopped.end()};
}

void continue_all(const std::vector<pid_t>& stopped) {
  for (const pid_t member : stopped) {
    ::kill(member, SIGCONT);
  }
}

void kill_sessions(const std::vector<pid_t>& sessions) {
  for (const pid_t member : stop_sessions(sessions)) {
    ::kill(member, SIGKILL);
  }
}

std::vector<pid_t> sessions_with(const std::string& variable) {
  std::set<pid_t> sessions;
  const std::string whole = std::string(1, '\0') + variable + std::string(1, '\0');
  for_each_process([&](pid_t pid) {
    const Result<std::string> environment = read_file("/proc/" + std::to_string(pid) + "/environ");
    if (!environment || ('\0' + *environment).find(whole) == std::string::npos) {
      return;
    }
    if (const Result<probe::Process> process = probe::read_process(pid); process) {
      sessions.insert(process->session);
    }
  });
  return {sessions.begin(), sessions.end()};
}

}  // namespace kymo::runtime
