#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "kymo/histogram.h"
#include "kymo/scope.h"

namespace kymo {

// A Scope whose duration, with its parts, is also recorded into a histogram. So each row of a
// recording has the distribution of the durations, also if the thread has entered no tree.
// Register the histogram with Unit::nanoseconds, and without buckets: the default ones suit it. One
// of microseconds gets whole microseconds, one with Unit::count nanoseconds, and one of bytes or
// pages nothing.
//
// Threads, errors: as Scope.
// Ownership:       as Scope and Histogram.
// Cost:            two reads of the clock and one Histogram::record(), beside that of Scope.
class TimedScope {
 public:
  TimedScope(ScopeName name, Histogram durations, const ScopeOptions& options = {}) noexcept
      : durations_(durations), begun_(Clock::now()), scope_(name, options) {}
  ~TimedScope() { end(); }
  TimedScope(const TimedScope&) = delete;
  TimedScope& operator=(const TimedScope&) = delete;

  void add_bytes(std::uint64_t bytes) noexcept { scope_.add_bytes(bytes); }
  // Does not compile, as in Scope.
  template <std::floating_point T>
  void add_bytes(T bytes) const noexcept {
    scope_.add_bytes(bytes);
  }
  void fail(std::string_view error) noexcept { scope_.fail(error); }
  // Ends it before its destruction. A second call does nothing.
  void end() noexcept {
    if (ended_) {
      return;
    }
    ended_ = true;
    scope_.end();
    const std::chrono::nanoseconds time = Clock::now() - begun_;
    // Only a restore on another machine lets this clock go back.
    durations_.record_ns(time.count() > 0 ? static_cast<std::uint64_t>(time.count()) : 0);
  }
  // For CountBytes.
  [[nodiscard]] Scope& scope() noexcept { return scope_; }

 private:
  using Clock = std::chrono::steady_clock;

  Histogram durations_;
  Clock::time_point begun_;
  Scope scope_;
  bool ended_ = false;
};

}  // namespace kymo
