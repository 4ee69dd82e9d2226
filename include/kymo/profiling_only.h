#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kymo/registry.h"

// Metrics that exist only in builds for profiling. If KYMO_PROFILING is 1, they are ordinary
// counters. If it is 0 (the default), they cost nothing: the type is empty, and optimised code
// contains neither an instruction for them nor their names.
//
//   KYMO_PROFILING_COUNTER(steps);  // at namespace scope
//   if (auto made = steps.register_in(registry, "steps", "Steps of the inner loop"); !made) ...
//   steps.add();
//
// Files that are compiled with different settings have different types under this name. Do not mix
// them.
#ifndef KYMO_PROFILING
#define KYMO_PROFILING 0
#endif

namespace kymo {

#if KYMO_PROFILING

inline namespace profiling_on {

// Threads: register_in() before any add(), then as Counter. Without register_in(), add() does
//          nothing.
class ProfilingCounter {
 public:
  Result<void> register_in(Registry& registry, std::string_view name, std::string_view help,
                           Unit unit = Unit::count) {
    Result<Counter> made =
        registry.counter({std::string(name), std::string(help), Kind::counter, unit, {}});
    if (!made) {
      return made.error();
    }
    counter_ = *made;
    return {};
  }
  void add(detail::Amount n = 1U) const noexcept {
    if (counter_) {
      counter_->add(n);
    }
  }
  // Does not compile, as Counter::add.
  template <std::floating_point T>
  void add(T n) const noexcept {
    counter_->add(n);
  }

 private:
  std::optional<Counter> counter_;
};

}  // namespace profiling_on

#define KYMO_PROFILING_COUNTER(name) inline ::kymo::ProfilingCounter name

#else

inline namespace profiling_off {

class ProfilingCounter {
 public:
  // Stands for the Result of the other variant. It is always ok, so the compiler removes the error
  // path of the caller.
  struct Registered {
    [[nodiscard]] static constexpr bool ok() noexcept { return true; }
    constexpr explicit operator bool() const noexcept { return true; }
    [[noreturn]] static Error error() noexcept { __builtin_unreachable(); }
  };
  [[gnu::always_inline]] static constexpr Registered register_in(
      const Registry& /*registry*/, std::string_view /*name*/, std::string_view /*help*/,
      Unit /*unit*/ = Unit::count) noexcept {
    return {};
  }
  [[gnu::always_inline]] static constexpr void add(detail::Amount /*n*/ = 1U) noexcept {}
  // Does not compile, so that both builds accept the same.
  template <std::floating_point T>
  static constexpr void add(T) noexcept {
    static_assert(!std::floating_point<T>,
                  "kymo::ProfilingCounter::add: a counter counts whole numbers.");
  }
};

}  // namespace profiling_off

// constexpr, so that the compiler emits nothing for an unused counter.
#define KYMO_PROFILING_COUNTER(name) \
  [[maybe_unused]] constexpr ::kymo::ProfilingCounter name {}

#endif

}  // namespace kymo
