#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/criu/images/needs.h"

namespace kymo::runtime {

// A process that holds a lock which a restore wants to take.
struct LockHolder {
  pid_t pid = 0;     // 0: a process of another pid namespace
  std::string name;  // of the process; empty if it has ended and left the lock to another one
};

// The locks that other processes hold now.
//
// Threads: any.
// Cost:    one read of /proc/locks, and one look at the file for each lock that is asked for.
class HeldLocks {
 public:
  // `table`: the text of /proc/locks.
  explicit HeldLocks(std::string_view table);
  // Reads /proc/locks. If it cannot be read, no lock is known.
  static HeldLocks now();

  // The process that holds a lock that excludes this one. Nothing if there is none.
  [[nodiscard]] std::optional<LockHolder> holder_of(const criu::NeededLock& lock) const;

 private:
  struct Held {
    bool whole = false;
    bool exclusive = false;
    pid_t pid = 0;
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t start = 0;
    std::uint64_t last = 0;  // the last byte
  };
  static std::optional<Held> parse(std::string_view line);

  std::vector<Held> held_;
};

}  // namespace kymo::runtime
