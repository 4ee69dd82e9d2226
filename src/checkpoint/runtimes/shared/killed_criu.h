#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace kymo::runtime {

// Watches the CRIU of a container's restore. If CRIU is killed, for example because the machine has
// no memory left, its runtime may not notice that (criu::killed_under_its_runtime()), and would
// wait for ever. Then this class ends the half-restored processes, so that the runtime fails by
// itself.
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
