#include "checkpoint/runtimes/shared/command.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "base/proc/process.h"
#include "base/reap.h"
#include "checkpoint/runtimes/shared/launch.h"
#include "checkpoint/runtimes/shared/session.h"

namespace kymo::runtime {
namespace {

constexpr std::string_view kPathVariable = "PATH=";
// A killed command ends within this time, unless the kernel waits for its disk.
constexpr std::chrono::milliseconds kKilledWithin{3000};
constexpr std::chrono::milliseconds kOneLineWithin{30'000};
constexpr int kLookEveryMs = 10;
constexpr off_t kMaxErrors = 64 * 1024;
constexpr off_t kMaxOutput = 16 * 1024 * 1024;

// A file in memory without a name. path() gives it to a command as its output. A pipe would not do:
// if a container keeps it open, reading from it never ends.
struct MemoryFile {
  explicit MemoryFile(const char* name) : file(::memfd_create(name, MFD_CLOEXEC)) {}
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(file.get()); }
  // Returns the last bytes of the file.
  [[nodiscard]] std::string text(off_t most) const {
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    std::string text(static_cast<std::size_t>(std::clamp<off_t>(size, 0, most)), '\0');
    const ssize_t got =
        ::pread(file.get(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  FileDescriptor file;
};

// Whether the process ended before the timeout and before a cancellation.
bool wait_ended(pid_t pid, std::chrono::milliseconds timeout, const Cancellation* cancel) {
  const FileDescriptor process(probe::open_process(pid));
  if (!process.valid() && errno == ESRCH) {
    return true;  // it has ended; waitpid() tells how
  }
  const std::uint64_t until_ns =
      monotonic_ns() + static_cast<std::uint64_t>(timeout.count()) * (kNanosPerSecond / 1000);
  for (;;) {
    int wait_ms = -1;
    if (timeout.count() != 0) {
      const std::uint64_t now_ns = monotonic_ns();
      wait_ms = now_ns >= until_ns ? 0
                                   : static_cast<int>(std::min<std::uint64_t>(
                                         (until_ns - now_ns) / 1'000'000 + 1, 3'600'000));
    }
    if (!process.valid()) {  // no descriptor is free: poll its state instead
      siginfo_t ended{};
      ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT);
      if (ended.si_pid == pid) {
        return true;
      }
      wait_ms = wait_ms < 0 ? kLookEveryMs : std::min(wait_ms, kLookEveryMs);
    }
    pollfd fds[] = {{process.get(), POLLIN, 0}, {fd_of(cancel), POLLIN, 0}};
    const int ready = ::poll(fds, 2, wait_ms);
    if (ready > 0) {
      return fds[0].revents != 0;
    }
    if (ready == 0 && timeout.count() != 0 && monotonic_ns() >= until_ns) {
      return false;
    }
  }
}

// The priority of this session among all (sched(7)). A runtime has a session of its own, which would begin with 0, and so
// would the CRIU that it starts. Empty: the kernel has none.
std::string own_autogroup_nice() {
  constexpr std::string_view kNice = " nice ";
  const Result<std::string> text = read_file("/proc/self/autogroup");
  const std::size_t at = text ? text->rfind(kNice) : std::string::npos;
  return at == std::string::npos ? std::string() : last_line(text->substr(at + kNice.size()));
}

}  // namespace

Result<CommandOutcome> run_command(const Command& command) {
  const MemoryFile output("command-output");
  const MemoryFile errors("command-errors");
  if (!output.file.valid() || !errors.file.valid()) {
    return system_error("cannot make files for the output of " + command.words.front(), errno);
  }
  RunSpec spec;
  spec.command = command.words;
  spec.environment = command.environment;
  const bool kept = command.output_path.empty();
  spec.stdout_path = kept ? output.path() : command.output_path;
  spec.stderr_path = kept ? errors.path() : command.output_path;
  const std::uint64_t began_ns = monotonic_ns();
  const Result<pid_t> pid = launch(spec, own_autogroup_nice());
  if (!pid) {
    return pid.error();
  }
  const bool in_time = wait_ended(*pid, command.timeout, command.cancel);
  if (!in_time) {
    if (command.time_over) {
      command.time_over(*pid);
    }
    kill_sessions({*pid});
    ::kill(*pid, SIGKILL);
  }
  CommandOutcome outcome;
  const std::optional<int> ended = in_time ? reap(*pid) : reap_within(*pid, kKilledWithin);
  const int status = ended.value_or(SIGKILL);  // not gone yet: treat it as killed
  outcome.life_ns = monotonic_ns() - began_ns;
  const bool ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!in_time && !ended_well && is_asked(command.cancel)) {
    return Error{Code::cancelled, command.cancel->why()};
  }
  if (!in_time && !ended_well) {
    return Error{Code::deadline_exceeded, command.words.front() + " took longer than " +
                                              human::duration(command.timeout) + " and was ended"};
  }
  outcome.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.ended = how_it_ended(status);
  outcome.output = output.text(kMaxOutput);
  outcome.errors = errors.text(kMaxErrors);
  return outcome;
}

std::string last_line(const std::string& text) {
  std::string_view rest = text;
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t end = rest.find_last_not_of(kBlank);
  if (end == std::string_view::npos) {
    return {};
  }
  rest = rest.substr(0, end + 1);
  rest = rest.substr(rest.rfind('\n') + 1);  // without '\n': npos + 1 is 0, so all of it
  return std::string(rest.substr(rest.find_first_not_of(kBlank)));
}

std::string first_line_of(std::vector<std::string> words) {
  Command command;
  command.words = std::move(words);
  command.environment = environment_with_path("");
  command.timeout = kOneLineWithin;
  const Result<CommandOutcome> outcome = run_command(command);
  if (!outcome) return {};
  std::string line = outcome->output.substr(0, outcome->output.find('\n'));
  line.erase(line.find_last_not_of("\r\n ") + 1);
  return line;
}

std::vector<std::string> environment_with_path(const std::string& folder) {
  std::vector<std::string> environment;
  std::string path = "PATH=" + folder;
  const std::string_view colon = folder.empty() ? "" : ":";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with(kPathVariable)) {
      path += std::string(colon) + std::string(text.substr(kPathVariable.size()));
    } else {
      environment.emplace_back(text);
    }
  }
  environment.push_back(path);
  return environment;
}

std::string on_path(const std::string& name, std::string_view path) {
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    std::string candidate = std::string(path.substr(0, colon)) + "/" + name;
    std::error_code error;
    if (candidate.front() == '/' && std::filesystem::is_regular_file(candidate, error) &&
        ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    path = colon == std::string_view::npos ? std::string_view() : path.substr(colon + 1);
  }
  return {};
}

std::string on_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  return on_path(name, path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin");
}

}  // namespace kymo::runtime
