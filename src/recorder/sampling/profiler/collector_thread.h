#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "kymo/registry.h"
#include "kymo/result.h"

namespace kymo {

// Waits until `done`, which becomes true when the callbacks of a sample have returned. Gives up after
// about six seconds, and returns the callback that has not returned, in words. It counts checks, a
// millisecond apart, because a clock may jump meanwhile, and the program may be stopped.
std::optional<std::string> wait_for_callbacks(const std::atomic<bool>& done,
                                              const Registry& registry);

// The collector's thread. First it measures how long a sample takes, and then it waits for what it
// is to do. So the callbacks run on no other thread of the recorder, and a slow first call is over
// before the recording's clock starts.
//
// Threads: one at a time. If a callback does not return, the destructor leaves the thread, which
//          owns what it uses, and ends when the callback has returned.
class CollectorThread {
 public:
  explicit CollectorThread(std::shared_ptr<const Sampler> sampler);
  ~CollectorThread();
  CollectorThread(const CollectorThread&) = delete;
  CollectorThread& operator=(const CollectorThread&) = delete;

  // Waits until it is measured.
  // Errors: deadline_exceeded: a callback has not returned for five seconds.
  [[nodiscard]] Result<std::uint64_t> sample_ns(const Registry& registry) const;
  // Runs `work` on the thread, which is the caller's from now on.
  // Precondition: sample_ns() has returned a time.
  std::thread run(std::function<void()> work);

 private:
  struct Measured {
    std::atomic<bool> done{false};
    std::uint64_t sample_ns = 0;  // before `done`
  };
  const std::shared_ptr<Measured> measured_ = std::make_shared<Measured>();
  std::promise<std::function<void()>> next_;
  std::thread thread_;
};

}  // namespace kymo
