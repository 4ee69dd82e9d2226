#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace kymo::runtime {

// Watches the CRIU of a container's restore. If it was killed, for example because the machine has no memory left, and
// its runtime does not see that (criu::killed_under_its_runtime()), ends what it has half restored. The runtime then
// fails by itself; without this, it would wait for good.
//
// Threads:   has its own, which looks once a second.
// Ownership: the destructor ends the thread.
// Cost:      one look at each process of the machine a second.
class KilledCriuWatch {
 public:
  explicit KilledCriuWatch(std::string log_path);
  ~KilledCriuWatch();
  KilledCriuWatch(const KilledCriuWatch&) = delete;
  KilledCriuWatch& operator=(const KilledCriuWatch&) = delete;

 private:
  void watch();

  const std::string log_path_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace kymo::runtime
