#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "kymo/result.h"
#include "profiler/stacks/collector.h"

namespace kymo::daemon {

// The processes that profile dumps and restores (--profiling-stacks), one for each request. No
// request waits for what they write.
//
// Threads:   every member from any thread.
// Ownership: reaps the processes. None outlives kymod for longer than it takes to write its file.
class StackCollectors {
 private:
  struct Collector;

 public:
  // A collector that takes samples for one request.
  //
  // Threads:   one.
  // Ownership: ends the collector, which then writes nothing, unless end() was called.
  class Running {
   public:
    explicit Running(std::shared_ptr<Collector> collector) : collector_(std::move(collector)) {}
    ~Running();
    Running(Running&& other) noexcept = default;
    Running& operator=(Running&&) = delete;

    // Waits until it takes samples, but not for long. If it does not, it is ended.
    // Errors: why it does not, and what to do about that.
    Result<void> wait_until_ready();
    // The request is over, and these were its phases: the collector writes the profile.
    void end(const std::vector<stacks::PhaseTimes>& phases);

   private:
    std::shared_ptr<Collector> collector_;
  };

  StackCollectors() = default;
  // Waits for those that write, at most ten seconds.
  ~StackCollectors();
  StackCollectors(const StackCollectors&) = delete;
  StackCollectors& operator=(const StackCollectors&) = delete;

  // Starts a collector and does not wait until it is ready.
  // Errors: those of starting a program.
  Result<Running> start(const stacks::CollectorOrder& order);
  // Reaps those that have ended, and logs what they could not do. Ends those that take too long.
  void look();

  // Tries whether stacks can be taken. Errors: those of Running::wait_until_ready().
  Result<void> check(unsigned rate);

 private:
  bool reap(Collector& collector);

  std::mutex mutex_;
  std::list<std::shared_ptr<Collector>> collectors_;
};

}  // namespace kymo::daemon
