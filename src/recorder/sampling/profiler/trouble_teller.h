#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <tuple>

#include "base/event.h"
#include "kymo/result.h"
#include "kymo/trouble.h"

namespace kymo {

// Tells ProfilerOptions::on_trouble what a TroubleWatch sees, each kind at most once a minute: a
// disk that is full, then not, then full again must not fill a log.
//
// Threads:   start(), stop() and tell() one at a time; tell() not between start() and stop().
// Ownership: refers to the profiler, the function and the sink.
// Errors:    what the function throws is dropped.
class TroubleTeller {
 public:
  static constexpr std::uint64_t kLookEveryNs = 1'000'000'000;
  static constexpr std::uint64_t kSameAgainNs = 60'000'000'000;

  // `sink`: while the function runs, its thread counts as called by the sink, so that
  // Profiler::stop() refuses to wait for it.
  TroubleTeller(const Profiler& profiler, const std::function<void(const Trouble&)>& tell,
                const void* sink)
      : watch_(profiler), tell_(tell), sink_(sink) {}
  ~TroubleTeller() { stop(); }
  TroubleTeller(const TroubleTeller&) = delete;
  TroubleTeller& operator=(const TroubleTeller&) = delete;

  // Looks on a thread of its own from now on, unless there is no function.
  // Errors: resource_exhausted if no thread can be made.
  Result<void> start();
  // Looks once more, and ends the thread.
  void stop();
  void tell(const Trouble& trouble);

 private:
  void look();

  TroubleWatch watch_;
  const std::function<void(const Trouble&)>& tell_;
  const void* const sink_;
  using KindOfTrouble = std::tuple<Trouble::What, MissCause, bool, std::string>;
  std::map<KindOfTrouble, std::uint64_t> told_ns_;
  Event end_;
  std::thread thread_;
};

}  // namespace kymo
