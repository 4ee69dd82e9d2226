#include "checkpoint/criu/repair/borrowed.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/proc/process.h"

namespace kymo::criu {
namespace {

// The range at the beginning of a mapping in which a thread can stand after CRIU wrote `syscall; int3`
// there: these two instructions and the one behind them.
constexpr std::uint64_t kInjected = 16;

std::optional<std::uint64_t> hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Whether a file of /proc could not be read although its process exists.
template <class T>
bool exists_but_unreadable(const Result<T>& file) {
  return !file && file.error().errno_value != ENOENT && file.error().errno_value != ESRCH;
}

// `doing` is the content of /proc/PID/task/TID/syscall: "running", or
// "number arguments... stack-pointer instruction-pointer", with the number -1 outside of system
// calls. Of a running thread the place is unknown, so the answer is yes: CRIU may have sent it into
// foreign code, and CRIU lets a traced thread run elsewhere only between seizing and stopping it.
bool executes_foreign_code(std::string_view doing, const std::vector<Mapping>& mappings) {
  while (!doing.empty() && doing.back() == '\n') doing.remove_suffix(1);
  if (doing == "running") return true;
  const auto place = hex(doing.substr(doing.rfind(' ') + 1));
  if (!place) return false;  // the thread is gone
  const auto at = std::find_if(mappings.begin(), mappings.end(), [&](const Mapping& one) {
    return one.executable && one.has(*place);
  });
  if (at == mappings.end()) return false;
  if (!is_parasite(*at)) return *place - at->begin < kInjected;
  const std::string_view call = doing.substr(0, doing.find(' '));
  return call != std::to_string(SYS_recvfrom) && call != std::to_string(SYS_recvmsg);
}

bool borrowed(pid_t pid, const std::string& root) {
  const Result<std::vector<Mapping>> mappings = mappings_of(pid, root);
  if (!mappings) return exists_but_unreadable(mappings);
  const std::vector<pid_t> threads = probe::threads_of(pid, root);
  return std::any_of(threads.begin(), threads.end(), [&](pid_t thread) {
    const Result<std::string> doing = read_file(root + "/" + std::to_string(pid) + "/task/" +
                                                std::to_string(thread) + "/syscall");
    return doing ? executes_foreign_code(*doing, *mappings) : exists_but_unreadable(doing);
  });
}

// The time that a thread has waited for a processor so far, by schedstat; 0 if the kernel does not
// count it.
std::chrono::nanoseconds run_delay(const std::string& task) {
  const Result<std::string> text = read_file(task + "/schedstat");
  if (!text) return {};
  const std::size_t second = text->find(' ');
  if (second == std::string::npos) return {};
  std::int64_t ns = 0;
  std::from_chars(text->data() + second + 1, text->data() + text->size(), ns);
  return std::chrono::nanoseconds(ns);
}

}  // namespace

pid_t tracer_of(int proc, const char* name) {
  constexpr std::string_view kFile = "/status";
  constexpr std::string_view kField = "\nTracerPid:\t";
  std::array<char, 32> path{};
  const std::size_t length = std::strlen(name);
  if (length + kFile.size() >= path.size()) return 0;
  std::memcpy(path.data(), name, length);
  std::memcpy(path.data() + length, kFile.data(), kFile.size());
  const FileDescriptor file(::openat(proc, path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};  // the field is in the first 300 bytes
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got <= 0) return 0;
  const std::string_view status(text.data(), static_cast<std::size_t>(got));
  const std::size_t at = status.find(kField);
  pid_t tracer = 0;
  if (at != std::string_view::npos) {
    std::from_chars(status.data() + at + kField.size(), status.data() + status.size(), tracer);
  }
  return tracer;
}

std::vector<pid_t> traced_by(pid_t tracer, const std::string& root) {
  std::vector<pid_t> traced;
  for_each_traced_by(tracer, root.c_str(), [&](pid_t pid) { traced.push_back(pid); });
  return traced;
}

bool borrows_a_process(pid_t tracer, const std::string& root) {
  const std::vector<pid_t> traced = traced_by(tracer, root);
  return std::any_of(traced.begin(), traced.end(), [&](pid_t pid) { return borrowed(pid, root); });
}

BorrowingLimit::BorrowingLimit(std::vector<pid_t> tracers, std::string root,
                               std::chrono::milliseconds limit)
    : tracers_(std::move(tracers)),
      root_(std::move(root)),
      limit_(limit),
      at_begin_(waited_for_processors()) {}

std::chrono::nanoseconds BorrowingLimit::waited_for_processors() const {
  std::vector<pid_t> all = tracers_;
  for (const pid_t tracer : tracers_) {
    const std::vector<pid_t> traced = traced_by(tracer, root_);
    all.insert(all.end(), traced.begin(), traced.end());
  }
  std::chrono::nanoseconds sum{0};
  for (const pid_t pid : all) {
    const std::string tasks = root_ + "/" + std::to_string(pid) + "/task/";
    for (const pid_t thread : probe::threads_of(pid, root_)) {
      sum += run_delay(tasks + std::to_string(thread));
    }
  }
  return sum;
}

bool BorrowingLimit::over() const {
  const auto waited = std::chrono::steady_clock::now() - began_;
  if (waited < limit_) return false;
  return waited >= kMaxStarvedBorrowing || waited - (waited_for_processors() - at_begin_) >= limit_;
}

bool is_runnable(pid_t pid) {
  const Result<probe::Process> seen = probe::read_process(pid);
  return seen && seen->runnable();
}

}  // namespace kymo::criu
