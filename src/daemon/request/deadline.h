#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "base/cancellation.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The end of a time that begins now, as a time of monotonic_ns(). 0: no deadline.
std::uint64_t deadline_from_now(std::uint64_t allowed_ns);

// The time that a request may take. When it is over, the request is cancelled.
//
// Threads:   has one of its own, if there is a deadline. Constructor and destructor on one thread.
// Ownership: refers to the cancellation.
class Deadline {
 public:
  // `allowed_ns`: from now on. 0: no deadline.
  Deadline(Cancellation& cancel, std::uint64_t allowed_ns);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // The error of the request. If the deadline ended it, one that says so. `tried` is what was tried.
  [[nodiscard]] Error explain(const std::string& tried, Error error) const;

 private:
  const std::uint64_t allowed_ns_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;  // the request has ended
  bool passed_ = false;
  std::thread thread_;
};

}  // namespace kymo::daemon
