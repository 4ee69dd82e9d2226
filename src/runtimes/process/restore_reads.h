#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace kymo::runtime {

// Follows from without how much of its images a restore has read: what the processes that CRIU
// makes have read by read(2) and its like, from the root's first appearance on.
//
// Threads:   a thread of its own, on which `report` is called; constructor and destructor on one.
// Ownership: the destructor ends the thread.
// Errors:    none: where the root never shows, nothing is reported.
// Cost:      three system calls a process every two milliseconds.
class RestoreReads {
 public:
  using Report = std::function<void(std::uint64_t bytes)>;

  RestoreReads(pid_t root, Report report);
  ~RestoreReads();
  RestoreReads(const RestoreReads&) = delete;
  RestoreReads& operator=(const RestoreReads&) = delete;

 private:
  void follow();
  bool pause();  // false: it is over

  const pid_t root_;
  const Report report_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace kymo::runtime
