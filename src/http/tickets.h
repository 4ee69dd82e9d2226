#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace kymo::http {

// What opens a page once, within a minute. Threads: any.
class Tickets {
 public:
  // Empty: none can be made.
  std::string issue();
  // False: there is none such, or not any more.
  bool take(const std::string& ticket);

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  std::map<std::string, Clock::time_point> until_;  // guarded by mutex_
};

}  // namespace kymo::http
