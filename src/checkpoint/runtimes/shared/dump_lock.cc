#include "checkpoint/runtimes/shared/dump_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <string>
#include <thread>
#include <utility>

#include "base/proc/process.h"

namespace kymo::runtime {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTryEvery{10};

// `how`: LOCK_EX or LOCK_SH. `busy`: what it means if somebody else has locked the process.
Result<FileDescriptor> lock_memory(pid_t pid, int how, const std::string& busy) {
  const std::string path = "/proc/" + std::to_string(pid) + "/mem";
  FileDescriptor memory(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory.valid()) return system_error("open " + path, errno);
  if (::flock(memory.get(), how | LOCK_NB) == 0) return memory;
  if (errno != EWOULDBLOCK) return system_error("lock " + path, errno);
  return Error{Code::failed_precondition,
               busy + ", or a program has locked " + path + ": wait for that to end"};
}

pid_t parent_of(pid_t pid) {
  const Result<pid_t> parent = probe::parent_of(pid);
  return parent ? *parent : 0;
}

Result<DumpLock> try_to_lock(pid_t pid) {
  DumpLock held;
  Result<FileDescriptor> own =
      lock_memory(pid, LOCK_EX,
                  "it is being dumped by another kymod, or a process below it is, or kymod is "
                  "finding out what an earlier dump has left in it");
  if (!own) return own.error();
  held.push_back(*std::move(own));
  for (pid_t above = parent_of(pid); above > 0; above = parent_of(above)) {
    Result<FileDescriptor> shared = lock_memory(
        above, LOCK_SH,
        "process " + std::to_string(above) + ", which it descends from, is being dumped");
    if (shared) {
      held.push_back(*std::move(shared));
    } else if (shared.error().code == Code::failed_precondition ||
               shared.error().code == Code::resource_exhausted) {
      return shared.error();
    }
  }
  return held;
}

}  // namespace

Result<DumpLock> lock_for_dump(const ProcessId& process, std::chrono::milliseconds patience) {
  const auto until = steady_clock::now() + patience;
  for (;;) {
    Result<DumpLock> lock = try_to_lock(process.pid);
    const bool busy = !lock && lock.error().code == Code::failed_precondition;
    if (!busy || steady_clock::now() >= until) return lock;
    std::this_thread::sleep_for(kTryEvery);
  }
}

}  // namespace kymo::runtime
