#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include "kymo/counter.h"
#include "kymo/metric.h"
#include "kymo/registry.h"
#include "kymo/result.h"

namespace kymo {

// A state that the program sets, in place of a callback that reads it. It is a handle: copy it
// freely and keep it by value. A row has the value that was set last when its sample was taken.
//
// Threads:   set() from any. It is one store, also in a signal handler.
// Ownership: the handles and the registry share the value. So set() may also be called after the
//            registry is gone, and the registry may be sampled after the last handle is gone.
// Errors:    none.
// Cost:      16 bytes a handle; for each sample that of a callback.
class Gauge {
 public:
  // A whole number that is not below zero: a column has no sign. For a number that may be below
  // zero, set its distance from a fixed lowest value.
  void set(detail::Amount value) const noexcept {
    value_->store(value, std::memory_order_relaxed);  // a sample promises no order between metrics
  }
  // Does not compile: what is below one would be lost in silence.
  template <std::floating_point T>
  void set(T) const noexcept {
    static_assert(!std::floating_point<T>,
                  "kymo::Gauge::set: a gauge holds whole numbers. Set a smaller unit, such as "
                  "thousandths, and write set(static_cast<std::uint64_t>(...)).");
  }

 private:
  using Value = std::atomic<std::uint64_t>;
  explicit Gauge(std::shared_ptr<Value> value) : value_(std::move(value)) {}
  friend Result<Gauge> make_gauge(Registry& registry, Metric metric, detail::Amount first);

  std::shared_ptr<Value> value_;  // never null
};

// Registers a gauge without fields, whose value is `first` until it is set.
// Errors: those of Registry::callback().
inline Result<Gauge> make_gauge(Registry& registry, Metric metric, detail::Amount first) {
  auto value = std::make_shared<Gauge::Value>(first);
  metric.kind = Kind::gauge;
  if (Result<void> registered = registry.callback(
          std::move(metric), [value] { return value->load(std::memory_order_relaxed); });
      !registered) {
    return registered.error();
  }
  return Gauge(std::move(value));
}

}  // namespace kymo
