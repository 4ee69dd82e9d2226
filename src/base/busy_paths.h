#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>

namespace kymo {

// Paths at which work goes on, perhaps on a thread that nobody waits for because its disk stalls.
//
// Threads:   any.
// Ownership: must outlive every Work. Make it a static object that is never destroyed, because work
//            may go on while the program ends.
class BusyPaths {
 public:
  // The path is busy from the constructor to the destructor.
  class Work {
   public:
    Work(BusyPaths& all, const std::string& path);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    BusyPaths& all_;
    std::multiset<std::string>::iterator place_;
  };

  // Waits until no work goes on at the path.
  void wait(const std::string& path) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable less_;
  std::multiset<std::string> paths_;  // guarded by mutex_
};

}  // namespace kymo
