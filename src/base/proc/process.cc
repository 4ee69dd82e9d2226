#include "base/proc/process.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace kymo::probe {
namespace {

constexpr std::uint64_t kPfExiting = 0x0000'0004;   // PF_EXITING of the kernel's sched.h
constexpr std::uint64_t kPfSignaled = 0x0000'0400;  // PF_SIGNALED
constexpr std::uint64_t kPfKthread = 0x0020'0000;   // PF_KTHREAD
constexpr std::uint64_t kSigkillBit = 1U << 8U;     // of SIGKILL, 9, in proc(5)'s masks

// Fields of /proc/PID/stat after the name, counted from 0 (field 3 of proc(5)).
constexpr std::size_t kState = 0;
constexpr std::size_t kParent = 1;
constexpr std::size_t kSession = 3;
constexpr std::size_t kFlags = 6;
constexpr std::size_t kThreads = 17;
constexpr std::size_t kStartTime = 19;
constexpr std::size_t kResidentPages = 21;

// The content of a file, or empty if it cannot be read: a process may end at any time, also between
// open(2) and read(2).
std::string read_or_empty(const std::string& path) {
  Result<std::string> text = read_file(path);
  return text ? std::move(text).value() : std::string();
}

// Whether this error of a file in /proc means that the process is gone. Any other, such as EMFILE,
// says nothing about the process.
bool means_gone(int error) {
  return error == ENOENT || error == ESRCH;
}

template <class Number>
bool parse_number(std::string_view text, Number& out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(" \t\n");
    if (begin == std::string_view::npos) {
      return words;
    }
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

// Parses /proc/PID/stat. The name can contain spaces and parentheses: it ends at the last closing
// parenthesis.
bool parse_stat(std::string_view stat, Process& process) {
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return false;
  }
  process.name = std::string(stat.substr(open + 1, close - open - 1));
  const std::vector<std::string_view> fields = split(stat.substr(close + 1));
  if (fields.size() <= kResidentPages || fields[kState].size() != 1) {
    return false;
  }
  process.state = fields[kState][0];
  std::uint64_t flags = 0;
  std::uint64_t pages = 0;
  std::uint64_t threads = 0;
  if (!parse_number(fields[kParent], process.parent) ||
      !parse_number(fields[kSession], process.session) || !parse_number(fields[kFlags], flags) ||
      !parse_number(fields[kThreads], threads) ||
      !parse_number(fields[kStartTime], process.start_ticks) ||
      !parse_number(fields[kResidentPages], pages)) {
    return false;
  }
  process.kernel_thread = (flags & kPfKthread) != 0;
  process.first_thread_ended = process.state == 'Z' && threads > 1 && (flags & kPfSignaled) == 0;
  process.ending = (flags & kPfExiting) != 0 && !process.first_thread_ended;
  process.resident_bytes = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return true;
}

// Parses /proc/PID/status. It has about 60 lines, of which four are wanted, and is read for each check of a process, so this
// copies nothing.
void parse_status(std::string_view status, Process& process) {
  constexpr int kHexadecimal = 16;
  while (!status.empty()) {
    const std::string_view line = status.substr(0, status.find('\n'));
    status.remove_prefix(std::min(line.size() + 1, status.size()));
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string_view key = line.substr(0, colon);
    const bool pending = key == "SigPnd" || key == "ShdPnd";
    if (!pending && key != "TracerPid" && key != "Uid") continue;
    const std::vector<std::string_view> words =
        split(line.substr(std::min(colon + 1, line.size())));
    if (key == "TracerPid" && !words.empty()) {
      parse_number(words[0], process.tracer);
    } else if (key == "Uid" && words.size() > 1) {
      parse_number(words[1], process.uid);  // the first one is the real id
    } else if (pending && !words.empty()) {
      std::uint64_t signals = 0;
      parse_number(words[0], signals, kHexadecimal);
      process.ending = process.ending || (signals & kSigkillBit) != 0;
    }
  }
}

// Sets `unseen` to the errno if the folder exists but cannot be opened, for example because no file
// descriptor is free.
std::vector<pid_t> numbered_entries(const std::string& path, int* unseen = nullptr) {
  std::vector<pid_t> numbers;
  DIR* dir = opendir(path.c_str());
  if (dir == nullptr) {
    if (unseen != nullptr && !means_gone(errno)) *unseen = errno;
    return numbers;
  }
  while (const dirent* entry = readdir(dir)) {
    pid_t number = 0;
    if (parse_number(std::string_view(entry->d_name), number)) {
      numbers.push_back(number);
    }
  }
  closedir(dir);
  return numbers;
}

std::string path_of(const std::string& root, pid_t pid) {
  return root + "/" + std::to_string(pid);
}

}  // namespace

namespace {

// What /proc/PID/stat says. Errors: as read_process().
Result<Process> read_stat(pid_t pid, const std::string& root) {
  const std::string path = path_of(root, pid) + "/stat";
  const Result<std::string> stat = read_file(path);
  if (!stat && means_gone(stat.error().errno_value)) {
    return Error{Code::not_found, "there is no process " + std::to_string(pid), ESRCH};
  }
  if (!stat) return stat.error();
  Process process;
  process.pid = pid;
  if (!parse_stat(*stat, process)) {
    return Error{Code::data_loss, "cannot understand " + path + ": it is not as in proc(5)"};
  }
  return process;
}

}  // namespace

Result<Process> read_process(pid_t pid, const std::string& root) {
  Result<Process> process = read_stat(pid, root);
  if (!process) return process;
  const std::string base = path_of(root, pid);
  const Result<std::string> status = read_file(base + "/status");
  if (status) {
    parse_status(*status, *process);
  } else if (!means_gone(status.error().errno_value)) {  // its tracer and user are not known
    return status.error();
  }
  std::istringstream command(read_or_empty(base + "/cmdline"));
  for (std::string word; std::getline(command, word, '\0');) {
    process->command.push_back(word);
  }
  return process;
}

Result<pid_t> parent_of(pid_t pid, const std::string& root) {
  const Result<Process> process = read_stat(pid, root);
  if (!process) return process.error();
  return process->parent;
}

Life life_of(pid_t pid, std::uint64_t start_ticks, const std::string& root) {
  const Result<Process> process = read_process(pid, root);
  if (!process) {
    return process.error().code == Code::not_found ? Life::ended : Life::unknown;
  }
  const bool runs = !process->zombie() && !process->ending &&
                    (start_ticks == 0 || process->start_ticks == start_ticks);
  return runs ? Life::runs : Life::ended;
}

bool process_lives(pid_t pid, std::uint64_t start_ticks, const std::string& root) {
  return life_of(pid, start_ticks, root) != Life::ended;
}

bool waits_in_kernel(pid_t pid, const std::string& root) {
  const Result<Process> seen = read_process(pid, root);
  return seen && seen->state == 'D';
}

int open_process(pid_t pid) {
  // pidfd_open() cannot be used: glibc 2.36 declares it without C linkage.
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

std::vector<pid_t> all_processes(const std::string& root) {
  return numbered_entries(root);
}

std::vector<pid_t> threads_of(pid_t pid, const std::string& root) {
  return numbered_entries(path_of(root, pid) + "/task");
}

Result<std::vector<pid_t>> children_of_thread(pid_t pid, pid_t thread, const std::string& root) {
  std::vector<pid_t> children;
  const Result<std::string> text =
      read_file(path_of(path_of(root, pid) + "/task", thread) + "/children");
  if (!text && !means_gone(text.error().errno_value)) return text.error();
  if (!text) return children;
  for (const std::string_view word : split(*text)) {
    pid_t child = 0;
    if (parse_number(word, child)) children.push_back(child);
  }
  return children;
}

Result<std::vector<pid_t>> children_of(pid_t pid, const std::string& root) {
  std::vector<pid_t> children;
  int unseen = 0;
  for (const pid_t thread : numbered_entries(path_of(root, pid) + "/task", &unseen)) {
    const Result<std::vector<pid_t>> own = children_of_thread(pid, thread, root);
    if (!own) return own.error();
    children.insert(children.end(), own->begin(), own->end());
  }
  if (unseen != 0)
    return system_error("list the children of process " + std::to_string(pid), unseen);
  return children;
}

namespace {

// Sets `error`, unless it is null, to the first error, and goes on.
std::vector<pid_t> tree_of(pid_t pid, const std::string& root, std::optional<Error>* error) {
  std::vector<pid_t> tree;
  const auto keep = [error](const Error& why) {
    if (error != nullptr && !*error) *error = why;
  };
  if (pid <= 0) return tree;
  const Result<Process> process = read_process(pid, root);
  if (!process && process.error().code == Code::not_found) return tree;
  if (!process) keep(process.error());
  tree.push_back(pid);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const Result<std::vector<pid_t>> children = children_of(tree[i], root);
    if (children) {
      tree.insert(tree.end(), children->begin(), children->end());
    } else {
      keep(children.error());
    }
  }
  return tree;
}

}  // namespace

std::vector<pid_t> process_tree(pid_t pid, const std::string& root) {
  return tree_of(pid, root, nullptr);
}

Result<std::vector<pid_t>> whole_process_tree(pid_t pid, const std::string& root) {
  std::optional<Error> error;
  std::vector<pid_t> tree = tree_of(pid, root, &error);
  if (error) return *error;
  return tree;
}

namespace {

// The threads of the tree for which `wanted` returns true, and what cannot be looked at.
template <class Wanted>
std::vector<pid_t> threads_where(pid_t pid, const std::string& root, Wanted wanted) {
  std::vector<pid_t> found;
  for (const pid_t member : process_tree(pid, root)) {
    const std::string tasks = path_of(root, member) + "/task";
    int unseen = 0;
    for (const pid_t thread : numbered_entries(tasks, &unseen)) {
      const Result<Process> state = read_process(thread, tasks);
      if (state ? wanted(*state) : state.error().code != Code::not_found) {
        found.push_back(thread);
      }
    }
    if (unseen != 0) {
      found.push_back(member);
    }
  }
  return found;
}

}  // namespace

std::vector<pid_t> stopped_threads(pid_t pid, const std::string& root) {
  return threads_where(pid, root, [](const Process& thread) { return thread.stopped(); });
}

std::vector<pid_t> halted_threads(pid_t pid, const std::string& root) {
  return threads_where(
      pid, root, [](const Process& thread) { return thread.stopped() || thread.tracer != 0; });
}

}  // namespace kymo::probe
