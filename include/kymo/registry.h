#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kymo/counter.h"
#include "kymo/export.h"
#include "kymo/histogram.h"
#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo {

class Sampler;
struct RegistryAccess;

// A counter with fields: one Counter for each combination of field values. Look a combination up
// once and keep the Counter, because the lookup compares strings.
class KYMO_API CounterFamily {
 public:
  // The counter for these field values, in the order of Metric::fields.
  // Errors: invalid_argument, naming the value and what is allowed.
  Result<Counter> with(std::initializer_list<std::string_view> values) const;

 private:
  friend class Registry;
  CounterFamily(std::string name, std::vector<Field> fields, std::uint32_t first_cell)
      : name_(std::move(name)), fields_(std::move(fields)), first_cell_(first_cell) {}

  std::string name_;
  std::vector<Field> fields_;
  std::uint32_t first_cell_;
};

namespace detail {

// Whether F can be called without arguments and returns an unsigned integer of at most 64 bits.
template <class F>
constexpr bool returns_unsigned() {
  if constexpr (std::is_invocable_v<F&>) {
    using Value = std::remove_cvref_t<std::invoke_result_t<F&>>;
    if constexpr (std::is_unsigned_v<Value>) {
      return sizeof(Value) <= sizeof(std::uint64_t);
    }
  }
  return false;
}

}  // namespace detail

// The metrics of a program, by name. A sampler takes the metrics that are registered when it is
// made. Metrics that are registered later are not in its rows.
// A Registry is a handle: copies are the same metrics. Profilers, samplers and Prometheus
// collectables have a copy, so the metrics exist until the last of them is destroyed.
//
// Threads:   every member from any thread. Registering takes a mutex, sampling does not.
//            Callbacks run on the thread that takes a sample: a profiler's collector (in each
//            sample, and at the start up to 200 times, at most for 2 ms and one more call), or the
//            thread that calls Collect() of a Prometheus collectable. They run one at a time: a
//            thread waits while another one runs the callbacks of the same registry.
// Ownership: the copies own the columns. Do not use counters after the last copy is destroyed. What
//            callbacks refer to must outlive all copies. A callback that holds a copy of its own
//            registry, or that owns a profiler of it, is never destroyed, and nor are the metrics.
// Errors:    a name that is malformed, taken (here or on /metrics), or does not have the ending of
//            its unit; more columns than kMaxCells. The message names the metric and what is allowed.
class KYMO_API Registry {
 public:
  using FamilyCallback = std::function<void(std::span<std::uint64_t> out)>;

  Registry();
  ~Registry();
  Registry(const Registry&);
  Registry& operator=(const Registry&);

  // Registers a counter without fields.
  Result<Counter> counter(Metric metric);
  // Registers a counter with fields.
  Result<CounterFamily> counter_family(Metric metric);
  // Registers a histogram, without fields. It has one column for each bucket, `_sum` (in the
  // metric's unit) and `_count` (docs/library.md). The name of the metric selects all of them, and has at
  // most 58 characters, so that NAME_count has at most 64.
  Result<Histogram> histogram(Metric metric, const HistogramBuckets& buckets);
  // The same with buckets for its unit: buckets_in_ns(), buckets_in_us() or buckets_in_bytes(). For
  // other units, 1 to 2^20 in 22 buckets.
  Result<Histogram> histogram(Metric metric);
  // Registers a metric without fields. Its value is what `read` returns when a sample is taken: an
  // unsigned integer, or a bool as 0 or 1. What returns anything else does not compile. The
  // compiler does not see a conversion inside `read`, nor one by std::function: check and scale
  // there.
  // `read` must be quick and must not block. Metric::kind says whether the metric is a gauge or a
  // counter.
  // If `read` throws, the exception is caught and counted, and the column keeps its last value.
  // callback_errors(), Profiler::warnings() and the metadata of the recording name the metric, and
  // Profiler::stop() fails.
  // A value of 2^63 or more is recorded, and named in the same places, except by stop(): it is
  // probably a negative number that was converted.
  template <class F>
  Result<void> callback(Metric metric, F read) {
    constexpr bool kFits = detail::returns_unsigned<F>();
    static_assert(kFits,
                  "kymo::Registry::callback: the function must return an unsigned integer, because "
                  "a column has no sign and no fraction. For a fraction, return thousandths, such "
                  "as std::uint64_t(std::llround(1000 * share)). For a number that may be below "
                  "zero, return its distance from a fixed lowest value, or check it first: "
                  "n < 0 ? 0 : std::uint64_t(n). A mere conversion, such as by -> std::uint64_t, "
                  "records a wrong value.");
    if constexpr (kFits) {
      return add_callback(std::move(metric), Callback(std::move(read)));
    } else {
      return {};
    }
  }

  // Registers a metric with fields. When a sample is taken, `read` stores one value for each
  // combination of field values; the value of the last field changes fastest. `out` has exactly as
  // many elements. The rest is as for callback().
  Result<void> callback_family(Metric metric, FamilyCallback read);

  // What callbacks have thrown since they were registered, in a sample or a scrape, and which have
  // returned values of 2^63 or more. A metric can be in the list twice. Empty if there is nothing.
  [[nodiscard]] std::vector<CallbackError> callback_errors() const;

  // Every column, in the order of registration.
  [[nodiscard]] std::vector<Column> columns() const;

  // Makes a sampler of these metrics, in the order of registration. `metrics` are names of metrics,
  // not of columns; empty: all.
  // Errors: not_found for an unknown name (the message lists similar names); failed_precondition if
  //         the registry has no metrics.
  Result<std::unique_ptr<Sampler>> sampler(const std::vector<std::string>& metrics) const;

 private:
  friend struct RegistryAccess;
  // Not public: it takes what returns a fraction or a negative number, and converts it silently.
  using Callback = std::function<std::uint64_t()>;
  Result<void> add_callback(Metric metric, Callback read);

  struct State;
  std::shared_ptr<State> state_;
};

// Reads a fixed set of columns at once.
//
// Threads:   one at a time.
// Ownership: has a copy of its Registry.
// Cost:      one load for each counter column and thread, one call for each callback, and one lock
//            if there are callbacks (bench/sample).
class KYMO_API Sampler {
 public:
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  [[nodiscard]] const std::vector<Column>& columns() const;
  // Whether a column has ever had a value: not if its callback has never returned one. Its value is 0
  // then, and means nothing.
  [[nodiscard]] bool has_value(std::size_t column) const;
  // Stores one value for each column at `out`. The value of a counter column is never lower than in
  // an earlier read. If a callback reads a sampler of its own registry, callbacks are not run:
  // their columns have their last values.
  // Returns when the counters had been read, on the monotonic clock in nanoseconds, if there are counters and
  // callbacks, which run after that; otherwise 0.
  std::uint64_t read(std::uint64_t* out) const noexcept;

 private:
  friend class Registry;
  struct State;
  explicit Sampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo
