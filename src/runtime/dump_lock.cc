#include "runtime/dump_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <string>

namespace kymo::runtime {

Result<FileDescriptor> lock_for_dump(const ProcessId& process) {
  const std::string path = "/proc/" + std::to_string(process.pid) + "/mem";
  FileDescriptor memory(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory.valid()) return system_error("open " + path, errno);
  if (::flock(memory.get(), LOCK_EX | LOCK_NB) == 0) return memory;
  if (errno != EWOULDBLOCK) return system_error("lock " + path, errno);
  return Error{Code::failed_precondition,
               "it is being dumped by another kymod, or a program has locked " + path +
                   ": wait for that to end"};
}

}  // namespace kymo::runtime
