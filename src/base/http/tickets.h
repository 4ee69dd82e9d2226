#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace kymo::http {

// One-time tickets: each opens a page once, within a minute.
// Threads: any.
class Tickets {
 public:
  // A new ticket; empty if the system gives no random bytes.
  std::string issue();
  // Uses up a ticket. Returns false if there is no such ticket, it was used, or its minute is over.
  bool take(const std::string& ticket);

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  std::map<std::string, Clock::time_point> until_;  // guarded by mutex_
};

}  // namespace kymo::http
