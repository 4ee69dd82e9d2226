#include "profiler/stacks/processes.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/file.h"

namespace kymo::stacks {
namespace {

constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::string proc(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

bool is_regular(const FileDescriptor& file, struct stat& status) {
  return file.valid() && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
}

// Opens a path as the process sees it. No part of the path leads out of the process's root
// directory.
FileDescriptor open_in_root(pid_t pid, const std::string& path, std::uint64_t flags) {
  const FileDescriptor root(::open(proc(pid, "root").c_str(), O_PATH | O_CLOEXEC));
  open_how how{};
  how.flags = flags;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return FileDescriptor(
      static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
}

// Opens the file that a process has mapped: from the mapping itself, which also works if the file
// was deleted, or else by its path, first as the process sees it. A path may lead to another file
// by now.
FileDescriptor open_mapped(const Mapped& mapped, const std::string& path) {
  std::array<char, 64> range{};
  std::snprintf(range.data(), range.size(), "map_files/%llx-%llx",
                static_cast<unsigned long long>(mapped.begin),
                static_cast<unsigned long long>(mapped.end));
  struct stat status {};
  FileDescriptor file(::open(proc(mapped.pid, range.data()).c_str(), kFlags));
  if (is_regular(file, status)) return file;
  file = open_in_root(mapped.pid, path, kFlags);
  if (!file.valid()) file = FileDescriptor(::open(path.c_str(), kFlags));
  return is_regular(file, status) && status.st_ino == mapped.inode ? std::move(file)
                                                                   : FileDescriptor();
}

// A line of /proc/PID/maps, such as "7f00-7f80 r-xp 00001000 fd:01 1234   /usr/lib/x.so".
bool parse_line(const std::string& line, Mapped& mapped) {
  std::array<char, 5> rights{};
  unsigned long long begin = 0;
  unsigned long long end = 0;
  unsigned long long offset = 0;
  unsigned major_number = 0;
  unsigned minor_number = 0;
  unsigned long long inode = 0;
  int path = 0;
  if (std::sscanf(line.c_str(), "%llx-%llx %4s %llx %x:%x %llu %n", &begin, &end, rights.data(),
                  &offset, &major_number, &minor_number, &inode, &path) < 7 ||
      rights[2] != 'x') {
    return false;
  }
  mapped.begin = begin;
  mapped.end = end;
  mapped.offset = offset;
  mapped.device = ::makedev(major_number, minor_number);
  mapped.inode = inode;
  mapped.path = line.substr(std::min(static_cast<std::size_t>(path), line.size()));
  return true;
}

// The pid of the process in its own pid namespace.
std::string own_pid(pid_t pid) {
  const Result<std::string> text = read_file(proc(pid, "status"));
  const std::size_t at = text ? text->find("NSpid:") : std::string::npos;
  if (at == std::string::npos) return std::to_string(pid);
  const std::string line = text->substr(at, text->find('\n', at) - at);
  return line.substr(line.find_last_of("\t ") + 1);
}

// Runtimes name the cgroup of a container by its id, which has 64 hexadecimal digits.
std::string container_in(const std::string& cgroups) {
  constexpr std::size_t kIdDigits = 64;
  constexpr std::size_t kShownDigits = 12;
  std::size_t digits = 0;
  for (std::size_t i = 0; i < cgroups.size(); ++i) {
    digits = std::isxdigit(static_cast<unsigned char>(cgroups[i])) != 0 ? digits + 1 : 0;
    if (digits == kIdDigits) return cgroups.substr(i + 1 - kIdDigits, kShownDigits);
  }
  return "";
}

// A process that has ended, but was not waited for yet, is there.
bool is_gone(pid_t pid) {
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

void read_cgroups(pid_t pid, Processes::Process& process) {
  Result<std::string> text = read_file(proc(pid, "cgroup"));
  process.cgroups = text ? *std::move(text) : std::string();
  process.container = container_in(process.cgroups);
}

}  // namespace

Processes::Processes() : reader_(std::make_shared<ElfReader>()), vdso_(std::make_shared<Module>()) {
  vdso_->kind = Module::Kind::vdso;
  vdso_->path = "[vdso]";
  vdso_->elf = ElfLayout::read(reader_, -1);
  kernel_.kind = Module::Kind::kernel;
  kernel_.path = "[kernel]";
  kernel_.file = FileDescriptor(::open("/proc/kallsyms", O_RDONLY | O_CLOEXEC));
}

void Processes::add_running(pid_t pid) {
  Process& process = processes_[pid];
  process = {};
  read_cgroups(pid, process);
  process.session = ::getsid(pid);
  process.read_ns = monotonic_ns();
  // Its end was reported before, so it will not be reported again.
  if (!read_maps(pid) && is_gone(pid)) exited({pid});
}

bool Processes::read_maps(pid_t pid) {
  const Result<std::string> text = read_file(proc(pid, "maps"));
  if (!text || text->empty()) return false;
  std::istringstream lines(*text);
  Mapped one;
  one.pid = pid;
  for (std::string line; std::getline(lines, line);) {
    if (parse_line(line, one)) mapped(one);
  }
  return true;
}

void Processes::mapped(const Mapped& mapped) {
  const auto found = processes_.find(mapped.pid);
  // Of a process that is not known, all is read when it is needed.
  if (found == processes_.end() || mapped.end <= mapped.begin) return;
  if (std::shared_ptr<Module> module = module_of(mapped)) {
    found->second.memory.add(mapped.begin, {mapped.end, mapped.offset, std::move(module)});
  }
}

std::shared_ptr<Module> Processes::module_of(const Mapped& mapped) {
  if (mapped.path == "[vdso]") return vdso_;
  if (mapped.path == "[vsyscall]") return nullptr;
  if (mapped.inode == 0) return jit_of(mapped.pid);
  std::shared_ptr<Module>& module = files_[{mapped.device, mapped.inode}];
  if (module != nullptr) return module;
  constexpr std::string_view kDeleted = " (deleted)";
  module = std::make_shared<Module>();
  module->path = mapped.path;
  if (module->path.ends_with(kDeleted)) {
    module->path.resize(module->path.size() - kDeleted.size());
  }
  module->file = open_mapped(mapped, module->path);
  if (module->file.valid()) module->elf = ElfLayout::read(reader_, module->file.get());
  return module;
}

std::shared_ptr<Module> Processes::jit_of(pid_t pid) {
  std::shared_ptr<Module>& module = jits_[pid];
  if (module == nullptr) {
    module = std::make_shared<Module>();
    module->kind = Module::Kind::jit;
    module->path = "[jit]";
  }
  return module;
}

// The map must belong to the process's user: anybody can write into /tmp.
void Processes::find_perf_map(pid_t pid) {
  const std::shared_ptr<Module> module = jit_of(pid);
  if (module->file.valid()) return;
  struct stat map {};
  struct stat process {};
  FileDescriptor file =
      open_in_root(pid, "/tmp/perf-" + own_pid(pid) + ".map", kFlags | O_NOFOLLOW);
  if (is_regular(file, map) && ::stat(proc(pid, "").c_str(), &process) == 0 &&
      (map.st_uid == process.st_uid || map.st_uid == 0)) {
    module->file = std::move(file);
  }
}

void Processes::forked(const Forked& forked) {
  forget_ended(forked.pid);
  const auto parent = processes_.find(forked.parent);
  if (parent == processes_.end()) return;  // it is read when it is needed
  Process copy = parent->second;
  copy.ended = false;
  processes_[forked.pid] = std::move(copy);
}

void Processes::executed(const Executed& executed) {
  if (!processes_.contains(executed.pid)) return;
  forget_ended(executed.pid);
  Process& process = processes_[executed.pid];
  read_cgroups(executed.pid, process);
  process.session = ::getsid(executed.pid);
}

// Samples of a process may still arrive after its end, so the newest of the ended processes are
// kept. A new process may have the same pid by then.
void Processes::exited(const Exited& exited) {
  const auto found = processes_.find(exited.pid);
  if (found == processes_.end() || found->second.ended) return;
  found->second.ended = true;
  ended_.emplace_back(exited.pid, found->second.memory.size());
  ended_mappings_ += ended_.back().second;
  while (ended_.size() > kEndedKept || (ended_mappings_ > kEndedMappings && ended_.size() > 1)) {
    const auto [pid, mappings] = ended_.front();
    ended_.pop_front();
    ended_mappings_ -= mappings;
    const auto oldest = processes_.find(pid);
    if (oldest != processes_.end() && oldest->second.ended) forget_ended(pid);
  }
}

void Processes::named(const Named& named) {
  names_[named.tid] = named.name;
}

std::string Processes::name_of(pid_t tid) {
  std::string& name = names_[tid];
  if (!name.empty()) return name;
  const Result<std::string> text = read_file(proc(tid, "comm"));
  if (text) name = text->substr(0, text->find('\n'));
  return name;
}

void Processes::forget_ended(pid_t pid) {
  processes_.erase(pid);
  names_.erase(pid);
  const auto jit = jits_.find(pid);
  if (jit == jits_.end()) return;
  old_jits_.push_back(std::move(jit->second));
  jits_.erase(jit);
}

std::vector<std::shared_ptr<const Module>> Processes::take_unused() {
  std::vector<pid_t> gone;
  for (const auto& [pid, process] : processes_) {
    if (!process.ended && is_gone(pid)) gone.push_back(pid);
  }
  for (const pid_t pid : gone) exited({pid});
  std::vector<std::shared_ptr<const Module>> unused(old_jits_.begin(), old_jits_.end());
  old_jits_.clear();
  std::erase_if(files_, [&](auto& file) {
    if (file.second.use_count() > 1) return false;
    unused.push_back(std::move(file.second));
    return true;
  });
  names_.clear();
  return unused;
}

bool Processes::read_again(pid_t pid) {
  constexpr std::uint64_t kSeldomNs = 20'000'000;
  Process& process = processes_[pid];
  const std::uint64_t now_ns = monotonic_ns();
  if (process.ended || now_ns - process.read_ns < std::max(kSeldomNs, process.rest_ns))
    return false;
  read_cgroups(pid, process);  // it may have been moved into another one
  const bool read = read_maps(pid);
  // If a process has very many mappings, reading them takes longer than kSeldomNs. So they are read
  // again only after at least this many times as long.
  constexpr std::uint64_t kMinRestFactor = 20;
  process.read_ns = monotonic_ns();
  process.rest_ns = std::max(kSeldomNs, kMinRestFactor * (process.read_ns - now_ns));
  return read;
}

Processes::Kept Processes::kept() const {
  Kept kept{processes_.size(), 0};
  std::set<const void*> counted;
  for (const auto& [pid, process] : processes_) {
    if (counted.insert(process.memory.id()).second) kept.mappings += process.memory.size();
  }
  return kept;
}

Processes::Process& Processes::at(pid_t pid) {
  const auto found = processes_.find(pid);
  if (found != processes_.end()) return found->second;
  add_running(pid);
  return processes_[pid];
}

}  // namespace kymo::stacks
