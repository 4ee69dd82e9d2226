#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/counter.h"
#include "kymo/export.h"
#include "kymo/histogram.h"
#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo {

class Sampler;

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

// The metrics of a program, by name. A sampler takes the metrics that are registered when it is
// made. Metrics that are registered later are not in its rows.
//
// Threads:   every member from any thread. Registering takes a mutex, sampling does not.
// Ownership: owns its columns. Do not use its counters or profilers after it is destroyed. What its
//            callbacks refer to must outlive it.
// Errors:    a name that is malformed, taken, or without the suffix of its unit; more columns than
//            kMaxCells. The message names the metric and what is allowed.
class KYMO_API Registry {
 public:
  using Callback = std::function<std::uint64_t()>;
  using FamilyCallback = std::function<void(std::uint64_t* out)>;

  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Registers a counter without fields.
  Result<Counter> counter(Metric metric);
  // Registers a counter with fields.
  Result<CounterFamily> counter_family(Metric metric);
  // Registers a histogram, without fields. It has one column for each bucket, `_sum` (in the
  // metric's unit) and `_count` (docs/histograms.md). The name of the metric selects all of them.
  Result<Histogram> histogram(Metric metric, const HistogramBuckets& buckets = {});
  // Registers a metric without fields. Its value is what `read` returns at sample time, on the
  // collector's thread. `read` must be quick, must not block and must not throw. Metric::kind says
  // whether the metric is a gauge or a counter.
  Result<void> callback(Metric metric, Callback read);

  // Registers a metric with fields. At sample time, `read` stores one value for each combination of
  // field values; the value of the last field changes fastest.
  Result<void> callback_family(Metric metric, FamilyCallback read);

  // Every column, in the order of registration.
  [[nodiscard]] std::vector<Column> columns() const;

  // Makes a sampler of these metrics, in the order of registration. `metrics` are names of metrics,
  // not of columns; empty: all.
  // Errors: not_found for an unknown name (the message lists similar names); failed_precondition if
  //         the registry has no metrics.
  Result<std::unique_ptr<Sampler>> sampler(const std::vector<std::string>& metrics) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads a fixed set of columns at once.
//
// Threads:   one at a time.
// Ownership: refers to its Registry, which must outlive it.
// Cost:      one load for each counter column and thread, one call for each callback
//            (bench/sample).
class KYMO_API Sampler {
 public:
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  [[nodiscard]] const std::vector<Column>& columns() const;
  // Stores one value for each column at `out`. The value of a counter column is never lower than in
  // an earlier read.
  void read(std::uint64_t* out) const noexcept;

 private:
  friend class Registry;
  struct State;
  explicit Sampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo
