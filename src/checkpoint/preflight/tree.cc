#include "checkpoint/preflight/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

#include "base/file.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

constexpr std::size_t kDiskBlock = 512;  // the unit of stx_blocks

constexpr std::string_view kSocket = "socket:[";

// The target of a link, or empty. Sets errno if it cannot be read.
std::string target_of(const std::string& link) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlink(link.c_str(), text.data(), text.size());
  return size < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(size));
}

// What may still be read.
class Budget {
 public:
  explicit Budget(const Limits& limits)
      : until_(limits.time.count() == 0 ? Clock::time_point::max() : Clock::now() + limits.time),
        bytes_(limits.bytes == 0 ? std::numeric_limits<std::size_t>::max() : limits.bytes) {}
  void take(std::size_t bytes) { bytes_ -= std::min(bytes, bytes_); }
  [[nodiscard]] bool over() const { return bytes_ == 0 || Clock::now() >= until_; }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until_;
  std::size_t bytes_;
};

bool means_ended(int error) {
  return error == ENOENT || error == ESRCH;
}

// Looks at the file behind the descriptor without asking its file system again, which may be one
// that does not answer.
void look_at_file(const std::string& path, OpenFile& file) {
  struct statx seen {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC,
              STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_BLOCKS | STATX_INO, &seen) != 0) {
    return;
  }
  file.mode = seen.stx_mode;
  file.major = seen.stx_rdev_major;
  file.minor = seen.stx_rdev_minor;
  file.links = seen.stx_nlink;
  file.disk_bytes = seen.stx_blocks * kDiskBlock;
  file.id = {seen.stx_dev_major, seen.stx_dev_minor, seen.stx_ino};
}

// The inode in "socket:[INODE]"; 0 if the link is another one.
std::uint64_t socket_inode(std::string_view link) {
  std::uint64_t inode = 0;
  if (!link.starts_with(kSocket)) return inode;
  std::from_chars(link.data() + kSocket.size(), link.data() + link.size(), inode);
  return inode;
}

void look_at_socket(const std::string& path, OpenFile& file) {
  file.inode = socket_inode(file.link);
  std::array<char, 64> name{};
  const ssize_t size =
      ::getxattr(path.c_str(), "system.sockprotoname", name.data(), name.size() - 1);
  if (size > 0) file.protocol = name.data();
}

// Adds the descriptor N. A descriptor that was closed meanwhile is left out.
void add_file(const std::string& folder, const std::string& number, std::vector<OpenFile>& files) {
  OpenFile file;
  const std::string path = folder + "/fd/" + number;
  file.link = target_of(path);
  if (file.link.empty()) return;
  std::from_chars(number.data(), number.data() + number.size(), file.fd);
  if (file.link.starts_with(kSocket)) {
    look_at_socket(path, file);
  } else {
    if (Result<std::string> info = read_file(folder + "/fdinfo/" + number, kMaxFileInfo); info) {
      file.info = *std::move(info);
    }
    if (file.has_path()) look_at_file(path, file);
  }
  files.push_back(std::move(file));
}

std::size_t size_of(const OpenFile& file) {
  return file.link.size() + file.info.size();
}

// Returns 0, or errno of what could not be read.
int read_files(const std::string& folder, Budget& budget, std::vector<OpenFile>& files,
               bool& more) {
  const std::unique_ptr<DIR, int (*)(DIR*)> fds(::opendir((folder + "/fd").c_str()), ::closedir);
  if (!fds) return errno;
  while (const dirent* entry = ::readdir(fds.get())) {
    const std::string number(static_cast<const char*>(entry->d_name));
    if (number.starts_with('.')) continue;
    more = files.size() == kMaxFiles;
    if (more || budget.over()) break;
    add_file(folder, number, files);
    budget.take(sizeof(OpenFile) + (files.empty() ? 0 : size_of(files.back())));
  }
  std::sort(files.begin(), files.end(),
            [](const OpenFile& one, const OpenFile& other) { return one.fd < other.fd; });
  return 0;
}

// Whether the two threads have a different one of this kind (kcmp(2)). False if the kernel does not tell.
bool differ(pid_t one, pid_t other, int kind) {
  return ::syscall(SYS_kcmp, one, other, kind, 0, 0) > 0;
}

// A thread that ends shares nothing any more: the kernel takes it away first.
bool is_ending(pid_t thread) {
  const Result<probe::Process> seen = probe::read_process(thread);
  return !seen || seen->ending || seen->shows_nothing();
}

void look_at_own(pid_t pid, Thread& thread) {
  thread.own_files = differ(pid, thread.tid, KCMP_FILES);
  thread.own_folders = differ(pid, thread.tid, KCMP_FS);
  const std::string folder = "/proc/" + std::to_string(pid) + "/";
  for (const char* kind : {"ns/net", "ns/uts", "ns/ipc"}) {
    const std::string of_first = target_of(folder + kind);
    const std::string its = target_of(folder + "task/" + std::to_string(thread.tid) + "/" + kind);
    if (!its.empty() && !of_first.empty() && its != of_first) thread.own_namespace = its;
  }
  const bool any = thread.own_files || thread.own_folders || !thread.own_namespace.empty();
  if (any && (is_ending(thread.tid) || is_ending(pid))) {
    thread.own_files = thread.own_folders = false;
    thread.own_namespace.clear();
  }
}

void read_threads(Tree& tree, Budget& budget, Member& member) {
  const pid_t pid = member.process.pid;
  for (const pid_t tid : probe::threads_of(pid, tree.proc)) {
    if (member.threads.size() == kMaxThreads) {
      tree.miss("threads", "more than " + std::to_string(kMaxThreads), member);
      return;
    }
    if (budget.over()) return;
    Thread thread{tid};
    if (tree.proc == "/proc") {
      thread.policy = std::max(0, ::sched_getscheduler(tid));
      if (tid != pid) look_at_own(pid, thread);
    }
    const auto status =
        read_file(tree.folder_of(member) + "/task/" + std::to_string(tid) + "/status");
    if (status) {
      thread.tracer = static_cast<pid_t>(number_of(*status, "TracerPid"));
      thread.cpus = value_of(*status, "Cpus_allowed");
    }
    member.threads.push_back(thread);
  }
}

Namespaces namespaces_in(const std::string& folder) {
  Namespaces seen;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    seen.names[i] = target_of(folder + "/ns/" + std::string(kKinds[i]));
  }
  return seen;
}

std::string reason_of(int error) {
  const bool forbidden = error == EACCES || error == EPERM;
  return forbidden ? "permission denied, look as the same user or as root" : std::strerror(error);
}

// Looks at the files of deleted mappings, which only root may.
void read_deleted_mappings(Tree& tree, const Budget& budget, Member& member) {
  std::string last;
  for (const Mapping& mapping : member.mappings) {
    if (budget.over()) return;
    if (!mapping.name.ends_with(" (deleted)")) continue;
    if (mapping.name == last && !is_memory(last)) continue;  // shared memory has no name of its own
    last = mapping.name;
    DeletedMapping deleted{mapping, {}};
    deleted.file.link = mapping.name;
    look_at_file(tree.folder_of(member) + "/map_files/" + range_of(mapping), deleted.file);
    if (deleted.file.mode == 0 && errno == EPERM) {
      tree.miss("mapped files that were deleted", reason_of(errno), member);
      return;
    }
    member.deleted.push_back(std::move(deleted));
  }
}

// Reads what belongs to the user of the process, or to root.
void read_private_parts(Tree& tree, Budget& budget, Member& member) {
  const std::string folder = tree.folder_of(member);
  bool more = false;
  const int error = read_files(folder, budget, member.files, more);
  if (means_ended(error)) return;
  if (error != 0) {
    return tree.miss("open files, memory and namespaces", reason_of(error), member);
  }
  if (more) tree.miss("open files", "more than " + std::to_string(kMaxFiles), member);
  Result<std::vector<Mapping>> mappings = mappings_of(member.process.pid, tree.proc);
  if (mappings) {
    member.mappings = std::move(mappings).value();
    for (const Mapping& each : member.mappings) budget.take(sizeof each + each.name.size());
  } else if (!means_ended(mappings.error().errno_value)) {
    tree.miss("memory", reason_of(mappings.error().errno_value), member);
  }
  read_deleted_mappings(tree, budget, member);
  member.root = target_of(folder + "/root");
  member.namespaces = namespaces_in(folder);
  member.time_of_children = target_of(folder + "/ns/time_for_children");
}

// Returns false if the process has ended.
bool read_member(pid_t pid, Budget& budget, Tree& tree) {
  Result<probe::Process> process = probe::read_process(pid, tree.proc);
  if (!process) return false;
  Member member;
  member.process = *std::move(process);
  Result<std::string> status = read_file(tree.folder_of(member) + "/status");
  if (!status) return false;
  member.status = *std::move(status);
  // The kernel has taken its pid away already. It would seem to have no session either.
  if (value_of(member.status, "NSpid") == "0") return false;
  budget.take(sizeof member + member.status.size());
  read_threads(tree, budget, member);
  if (!member.process.shows_nothing()) read_private_parts(tree, budget, member);
  tree.members.push_back(std::move(member));
  return true;
}

Result<void> check_can_be_dumped(const std::string& tried, const probe::Process& process) {
  if (process.pid == 1) {
    return Error{Code::invalid_argument, tried + ": it is init, which every other process needs"};
  }
  if (process.kernel_thread) {
    return Error{Code::invalid_argument, tried + ": it is the kernel thread [" + process.name +
                                             "]; only processes of programs can be dumped"};
  }
  if (process.zombie()) {
    return Error{Code::not_found, tried + ": it has ended, and its parent " +
                                      std::to_string(process.parent) + " has not reaped it yet"};
  }
  return {};
}

}  // namespace

std::string range_of(const Mapping& mapping) {
  std::array<char, 2 * 16 + 2> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "%" PRIx64 "-%" PRIx64, mapping.begin, mapping.end);
  return {text.data(), static_cast<std::size_t>(size)};
}

void Tree::miss(std::string what, std::string why, const Member& member) {
  auto same = std::find_if(not_seen.begin(), not_seen.end(), [&](const NotSeen& each) {
    return each.what == what && each.why == why;
  });
  if (same == not_seen.end()) {
    same = not_seen.insert(same, {std::move(what), std::move(why), {}});
  }
  same->processes.push_back(std::to_string(member.process.pid) + " " + member.process.name);
}

bool Tree::has(pid_t id) const {
  return std::any_of(members.begin(), members.end(), [id](const Member& member) {
    return member.process.pid == id ||
           std::any_of(member.threads.begin(), member.threads.end(),
                       [id](const Thread& thread) { return thread.tid == id; });
  });
}

bool Tree::has_grown() const {
  const std::vector<pid_t> now = probe::process_tree(first().process.pid, proc);
  return std::any_of(now.begin(), now.end(),
                     [this](pid_t pid) { return pid != ::getpid() && !has(pid); });
}

std::set<std::uint64_t> Tree::sockets_now() const {
  std::set<std::uint64_t> inodes;
  for (const Member& member : members) {
    const std::string folder = folder_of(member) + "/fd";
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      inodes.insert(socket_inode(target_of(entry->path().string())));
    }
  }
  return inodes;
}

bool Tree::is_outside(pid_t pid) const {
  if (has(pid)) return false;
  const std::vector<pid_t> now = probe::process_tree(first().process.pid, proc);
  // In this order: what runs after the list was made, and is not in it, is no child.
  return std::find(now.begin(), now.end(), pid) == now.end() && probe::read_process(pid, proc).ok();
}

bool Tree::has_own(Kind kind) const {
  const std::string& name = first().namespaces.of(kind);
  return !name.empty() && !own.of(kind).empty() && name != own.of(kind);
}

Result<Tree> read_tree(pid_t pid, const Limits& limits, const std::string& proc) {
  const std::string tried = "cannot check process " + std::to_string(pid);
  if (pid <= 0) {
    return Error{Code::invalid_argument, tried + ": a pid is a number above 0"};
  }
  const Result<probe::Process> first = probe::read_process(pid, proc);
  if (!first) {
    const bool gone = first.error().code == Code::not_found;
    return Error{first.error().code,
                 tried + ": " + first.error().message + (gone ? "; see ps" : ""),
                 first.error().errno_value};
  }
  if (Result<void> ok = check_can_be_dumped(tried, *first); !ok) return ok.error();
  Tree tree;
  tree.proc = proc;
  tree.own = namespaces_in(proc + "/self");
  Budget budget(limits);
  for (const pid_t member : probe::process_tree(pid, proc)) {
    if (member == ::getpid()) continue;
    if (!read_member(member, budget, tree)) tree.ended.push_back(member);
    if (budget.over()) {
      return Error{Code::resource_exhausted, tried + ": it has too much to look at"};
    }
  }
  // A later process may have its pid.
  if (tree.members.empty() || tree.first().process.pid != pid ||
      probe::life_of(pid, first->start_ticks, proc) == probe::Life::ended) {
    return Error{Code::not_found, tried + ": it ended while it was looked at"};
  }
  return tree;
}

}  // namespace kymo::preflight
