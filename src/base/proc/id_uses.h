#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "base/proc/process.h"

namespace kymo::probe {

// What keeps a number from becoming the pid of a new process. The kernel gives it to none, also after the process that had
// it has ended, as long as a process is in the session or process group of that number.
struct IdUse {
  pid_t id = 0;
  Process process;  // that uses it; of a thread, the thread
  std::string
      as;  // "session" or "process group"; empty: it is the id of the process or thread itself
};

// Who uses these ids, zombies included. In the order of the ids, those that are a process or thread first.
// Errors: those of read_process(), if it is not known whether a process has one of the ids.
// Cost:   reads three files for each id that is in use, and asks the kernel for the session and group of each process.
Result<std::vector<IdUse>> uses_of(const std::set<pid_t>& ids);

// "its pid 12 is in use by 'web'", "its pid 12 is in use as the session of process 34 (sleep)".
std::string text_of(const IdUse& use);

}  // namespace kymo::probe
