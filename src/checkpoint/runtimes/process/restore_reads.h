#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace kymo::runtime {

// Measures from outside how much of the images a restore has read. It sums what the processes that
// CRIU makes have read with read(2) and similar calls. It begins when the root process exists.
//
// Threads:   has its own thread, which calls `report`. Constructor and destructor on one thread.
// Ownership: the destructor ends the thread.
// Errors:    none. If the root process never exists, nothing is reported.
// Cost:      three system calls for each process and one for each thread every two milliseconds, or less
//            often: at most 1 % of a CPU (LookPace).
class RestoreReads {
 public:
  using Report = std::function<void(std::uint64_t bytes)>;

  RestoreReads(pid_t root, Report report);
  ~RestoreReads();
  RestoreReads(const RestoreReads&) = delete;
  RestoreReads& operator=(const RestoreReads&) = delete;

 private:
  void follow();
  bool pause(std::uint64_t until_ns);  // waits until then; false: stop

  const pid_t root_;
  const Report report_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace kymo::runtime
