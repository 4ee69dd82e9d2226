// State that CRIU does not save, and says nothing of. After a restore, the thread, process or socket has what a new one has.
// What follows was tried with CRIU 4.2.1: StateTest.* restores a process that has all of it. docs/runtimes.md says what else
// is lost, and that nothing shows.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/proc/process.h"
#include "checkpoint/preflight/checks.h"
#include "checkpoint/preflight/socket_state.h"
#include "checkpoint/preflight/socket_tables.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

// A process, or this program, which has what CRIU gives to a restored one.
struct Owner {
  pid_t pid = 0;
  std::string folder;  // "/proc/12"
  std::string_view status;
};

std::string first_bytes(const std::string& path) {
  constexpr std::size_t kFirst = 64;  // so that the kernel lists one mapping only
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, kFirst> text{};
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  return size <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(size));
}

std::string personality_of(const Owner& owner) {
  return first_bytes(owner.folder + "/personality");
}

// Each virtual machine of Java adds the pages of files, which is no loss.
std::string coredump_filter_of(const Owner& owner) {
  constexpr std::uint64_t kFiles = 0x0c;
  const std::string text = first_bytes(owner.folder + "/coredump_filter");
  return text.empty() ? text : std::to_string(number_at(text, 16) & ~kFiles);
}

// A thread with a policy of real time has none.
std::string timer_slack_of(const Owner& owner) {
  const std::string text = first_bytes(owner.folder + "/timerslack_ns");
  return number_at(text) == 0 ? std::string() : text;
}

// A mapping without a policy of its own shows that of the process. The first one is code.
std::string numa_policy_of(const Owner& owner) {
  const std::string text = first_bytes(owner.folder + "/numa_maps");
  const std::string line = text.substr(0, text.find('\n'));
  const std::vector<std::string_view> words = words_of(line);
  return words.size() < 2 ? std::string() : std::string(words[1]);
}

// The kernel takes long to list this, so only a process with locked memory is asked.
std::string lock_on_fault_of(const Owner& owner) {
  if (number_of(owner.status, "VmLck") == 0) return {};
  const Result<std::string> maps = read_file(owner.folder + "/smaps");
  return maps && maps->find(" lf") != std::string::npos ? "lf" : "";
}

// Without CAP_SYS_RESOURCE, CRIU cannot give back a limit that is higher than its own.
std::string high_limits_of(const Owner& owner) {
  if (owner.pid == 0 || ::prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) == 1) return {};
  for (int limit = 0; limit < static_cast<int>(RLIM_NLIMITS); ++limit) {
    const auto which = static_cast<__rlimit_resource>(limit);
    rlimit theirs{};
    rlimit ours{};
    if (::prlimit(owner.pid, which, nullptr, &theirs) == 0 && ::getrlimit(which, &ours) == 0 &&
        theirs.rlim_max > ours.rlim_max) {
      return "higher";
    }
  }
  return {};
}

// The namespace that its next child gets is not its own. The kernel shows none before that has a first process, and none of
// a process that is ending, which shows no other namespace, either.
std::string other_pid_namespace_of(const Owner& owner) {
  const auto link = [&](const char* kind) {
    std::error_code error;
    return std::filesystem::read_symlink(owner.folder + "/ns/" + kind, error).string();
  };
  if (link("pid_for_children") == link("pid")) return {};
  const std::string lives = link("uts");
  return lives.empty() ? lives : "another";
}

struct OfProcess {
  std::string_view name;
  std::string (*value)(const Owner& owner);  // empty: none, or not seen
  bool of_container = true;                  // else its runtime or cgroup has a value of its own
};
constexpr std::array kOfProcess{
    OfProcess{"its personality (personality(2))", personality_of},
    OfProcess{"its coredump_filter", coredump_filter_of},
    OfProcess{"its timer slack", timer_slack_of},
    OfProcess{"its NUMA policy", numa_policy_of},
    OfProcess{"MLOCK_ONFAULT of its memory", lock_on_fault_of},
    OfProcess{"the pid namespace of its children (unshare(2))", other_pid_namespace_of},
    OfProcess{"its limits (they are higher than those of kymod)", high_limits_of, false}};

std::string affinity_of(const Thread& thread) {
  return thread.cpus;
}

std::string io_priority_of(const Thread& thread) {
  // IOPRIO_WHO_PROCESS and IOPRIO_CLASS_SHIFT, whose header C++ does not take. The class 0: not chosen.
  constexpr int kOfThread = 1;
  constexpr unsigned kClass = 13;
  const long priority = ::syscall(SYS_ioprio_get, kOfThread, thread.tid);
  return priority >> kClass > 0 ? std::to_string(priority) : std::string();
}

struct OfThread {
  std::string_view name;
  std::string (*value)(const Thread& thread);
  bool of_container;
};
constexpr std::array kOfThread{OfThread{"its CPU affinity", affinity_of, false},
                               OfThread{"its I/O priority", io_priority_of, true}};

bool is_semaphore(const OpenFile& file, int /*copy*/) {
  return number_of(file.info, "eventfd-semaphore") == 1;
}

// Of a watch that was disarmed by EPOLLONESHOT the kernel keeps the flags alone.
bool has_disarmed(const OpenFile& file, int /*copy*/) {
  constexpr std::uint64_t kFlags =
      EPOLLONESHOT | EPOLLET | EPOLLWAKEUP | EPOLLEXCLUSIVE;  // EP_PRIVATE_BITS
  for (std::string_view rest = file.info; !rest.empty();) {
    const std::string_view line = take_line(rest);
    const std::size_t at = line.find("events:");
    if (!line.starts_with("tfd:") || at == std::string_view::npos) continue;
    const std::uint64_t events = number_of(line.substr(at), "events", 16);
    if ((events & EPOLLONESHOT) != 0 && (events & ~kFlags) == 0) return true;
  }
  return false;
}

bool has_unread(const OpenFile& /*file*/, int copy) {
  int bytes = 0;
  return ::ioctl(copy, FIONREAD, &bytes) == 0 && bytes > 0;
}

struct OfFile {
  std::string_view kind;  // how the link or the protocol of a socket begins
  std::string_view name;
  bool (*has)(const OpenFile& file, int copy);
  bool asks;  // `has` asks the file itself, by a copy of the descriptor
};
constexpr std::array kOfFile{OfFile{"anon_inode:[eventfd]", "EFD_SEMAPHORE", is_semaphore, false},
                             OfFile{"anon_inode:[eventpoll]",
                                    "that a watch is disarmed (EPOLLONESHOT)", has_disarmed, false},
                             OfFile{"anon_inode:inotify", "its unread events", has_unread, true},
                             OfFile{"anon_inode:[inotify]", "its unread events", has_unread, true},
                             OfFile{"UDP", "its unread datagrams", has_unread, true}};

void add(std::string& names, std::string_view name) {
  if (!names.empty()) names += ", ";
  names += name;
}

void add(const std::string& names, Place place, Findings& found) {
  if (names.empty()) return;
  found.add(Grade::warns, kNotRestored, std::move(place), "a restore does not bring back " + names);
}

void look_at_processes(const Tree& tree, const Options& options, Findings& found) {
  const Result<std::string> status = read_file(tree.proc + "/self/status");
  if (!status) return;
  const Owner here{0, tree.proc + "/self", *status};
  std::array<std::string, kOfProcess.size()> ours;
  std::transform(kOfProcess.begin(), kOfProcess.end(), ours.begin(),
                 [&](const OfProcess& row) { return row.value(here); });
  for (const Member& member : tree.members) {
    if (member.process.shows_nothing()) continue;
    const Owner owner{member.process.pid, tree.folder_of(member), member.status};
    std::string names;
    for (std::size_t i = 0; i < kOfProcess.size(); ++i) {
      const OfProcess& row = kOfProcess.at(i);
      if (options.container && !row.of_container) continue;
      const std::string theirs = row.value(owner);
      if (!theirs.empty() && theirs != ours.at(i)) add(names, row.name);
    }
    add(names, place_of(member), found);
  }
}

void look_at_threads(const Tree& tree, const Options& options, Findings& found) {
  const Result<std::string> status = read_file(tree.proc + "/self/status");
  if (!status) return;
  Thread here{::getpid()};
  here.cpus = value_of(*status, "Cpus_allowed");
  for (const OfThread& row : kOfThread) {
    if (options.container && !row.of_container) continue;
    const std::string ours = row.value(here);
    for (const Member& member : tree.members) {
      const auto other =
          std::find_if(member.threads.begin(), member.threads.end(), [&](const Thread& thread) {
            const std::string theirs = row.value(thread);
            return !theirs.empty() && theirs != ours;
          });
      if (other == member.threads.end()) continue;
      add(std::string(row.name), place_of(member, "thread " + std::to_string(other->tid)), found);
    }
  }
}

// What is lost of an open file.
std::string lost_of(const OpenFile& file, int process, SocketState& sockets) {
  std::string names;
  const std::string_view kind = file.inode != 0 ? file.protocol : file.link;
  FileDescriptor copy;
  const auto open = [&] {
    if (!copy.valid()) {
      Result<FileDescriptor> opened = copy_of(process, file.fd, file.inode);
      if (opened) copy = *std::move(opened);
    }
    return copy.valid();
  };
  for (const OfFile& row : kOfFile) {
    if (!kind.starts_with(row.kind) || (row.asks && !open())) continue;
    if (row.has(file, copy.get())) add(names, row.name);
  }
  if (file.inode != 0 && open()) {
    for (const std::string_view name : sockets.lost_of(copy.get())) add(names, name);
  }
  return names;
}

void look_at_files(const Tree& tree, const Options& /*options*/, Findings& found) {
  if (tree.proc != "/proc") return;
  for (const Member& member : tree.members) {
    const FileDescriptor process(probe::open_process(member.process.pid));
    SocketState sockets(tree.folder_of(member));
    for (const OpenFile& file : member.files) {
      add(lost_of(file, process.get(), sockets), place_of(member, file), found);
    }
  }
}

constexpr std::array kLostState{Check{"lost state of processes", look_at_processes},
                                Check{"lost state of threads", look_at_threads},
                                Check{"lost state of files", look_at_files}};

}  // namespace

std::span<const Check> lost_state_checks() {
  return kLostState;
}

}  // namespace kymo::preflight
