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

// A counter with fields: one Counter for each combination of their values.
// Look a combination up once and keep the Counter; the lookup compares strings.
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

// The metrics of a program: what can be sampled, by name. Whoever samples takes the metrics that
// are registered when it starts; later ones are not in its rows.
//
// Threads:   every member from any thread; registering takes a mutex, sampling does not.
// Ownership: owns its columns. Counters made by it, profilers on it and what its callbacks refer to
//            must not be used after it is gone, or be gone before it, respectively.
// Errors:    a name that is malformed, taken, or without its unit's suffix; more columns than
//            kMaxCells: the message names the metric and what is allowed.
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
  // Registers a histogram, without fields. Its columns, selected together by the metric's name: one
  // for each bucket, `_sum` (in the metric's unit), `_count` (docs/histograms.md).
  Result<Histogram> histogram(Metric metric, const HistogramBuckets& buckets = {});
  // Registers a metric without fields whose value `read` returns at sample time, on the collector's
  // thread: it must be quick, must not block and must not throw. Metric::kind says gauge or
  // counter.
  Result<void> callback(Metric metric, Callback read);

  // Registers a metric with fields whose values `read` stores at sample time, one for each
  // combination of the fields' values, that of the last field changing fastest.
  Result<void> callback_family(Metric metric, FamilyCallback read);

  // Every column, in the order of registration.
  [[nodiscard]] std::vector<Column> columns() const;

  // A sampler of these metrics (names of metrics, not of columns; none given: all), in the order of
  // registration. Errors: not_found for an unknown name, listing the names that are near it.
  Result<std::unique_ptr<Sampler>> sampler(const std::vector<std::string>& metrics) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads a fixed set of columns at once.
//
// Threads: one at a time. Ownership: refers to its Registry, which must outlive it.
// Cost:    one load for each counter column and thread, one call for each callback (bench/sample).
class KYMO_API Sampler {
 public:
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  [[nodiscard]] const std::vector<Column>& columns() const;
  // Stores one value a column at `out`. No counter column is ever lower than in an earlier read.
  void read(std::uint64_t* out) const noexcept;

 private:
  friend class Registry;
  struct State;
  explicit Sampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo
