#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kymo/prometheus.h"
#include "recorder/metrics/exposition_name.h"

namespace kymo {
namespace {

// The help of a metric as the text format wants it. prometheus-cpp prints it as it is, and a raw
// newline breaks the whole scrape.
std::string escaped(const std::string& help) {
  std::string text;
  for (const char c : help) {
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\\') {
      text += "\\\\";
    } else {
      text += c;
    }
  }
  return text;
}

::prometheus::ClientMetric to_client_metric(const Column& column, std::uint64_t value) {
  ::prometheus::ClientMetric metric;
  for (std::size_t i = 0; i < column.field_values.size(); ++i) {
    metric.label.push_back({column.metric->fields[i].name, column.field_values[i]});
  }
  const double scaled = in_base_unit(value, column.metric->unit);
  if (column.metric->kind == Kind::counter) {
    metric.counter.value = scaled;
  } else {
    metric.gauge.value = scaled;
  }
  return metric;
}

// Makes one metric of the columns of a histogram, from its first bucket to its count. Prometheus's
// buckets are cumulative, so they are added up here. The number of values is the sum of the buckets
// and not the column with the count, so that it always agrees with the buckets.
::prometheus::ClientMetric to_histogram(const Column* columns, const std::uint64_t* values) {
  const std::vector<std::uint64_t>& bounds = columns[0].metric->bounds;
  const std::size_t sum = bounds.size() + 1;
  const Unit unit = columns[sum].metric->unit;
  ::prometheus::ClientMetric metric;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < sum; ++i) {
    count += values[i];
    const double bound =
        i < bounds.size() ? in_base_unit(bounds[i], unit) : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({count, bound});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = in_base_unit(values[sum], unit);
  return metric;
}

// The names that collectables of this process show, each with the oldest collectable that has it.
// An Exposer does not tell a collectable what it is registered with, so a name must be unique among
// all that exist.
//
// Threads: any.
class ShownNames {
 public:
  static ShownNames& all() {
    static auto& names = *new ShownNames;  // a collectable may be destroyed after static objects
    return names;
  }
  // Takes those of the names that nobody has. Returns the others.
  std::set<std::string> take(const void* owner, const std::set<std::string>& names) {
    const std::lock_guard lock(mutex_);
    std::set<std::string> taken;
    for (const std::string& name : names) {
      if (owners_.try_emplace(name, owner).first->second != owner) taken.insert(name);
    }
    return taken;
  }
  void give_back(const void* owner) {
    const std::lock_guard lock(mutex_);
    std::erase_if(owners_, [owner](const auto& one) { return one.second == owner; });
  }

 private:
  std::mutex mutex_;
  std::map<std::string, const void*> owners_;  // guarded by mutex_
};

std::string text_of_taken(const std::string& name) {
  return "show metrics to Prometheus: another collectable of this process has '" + name +
         "', too, and Prometheus refuses a scrape with both; give one of them another prefix, or "
         "register one collectable with several Exposers";
}

class RegistryCollectable final : public ::prometheus::Collectable {
 public:
  RegistryCollectable(const Registry& registry, std::string prefix)
      : registry_(registry), prefix_(std::move(prefix)) {}
  ~RegistryCollectable() override { ShownNames::all().give_back(this); }
  RegistryCollectable(const RegistryCollectable&) = delete;
  RegistryCollectable& operator=(const RegistryCollectable&) = delete;

  // Takes the names of all metrics that are registered now. Returns those that another collectable
  // has.
  [[nodiscard]] std::set<std::string> take_names() const {
    std::set<std::string> names;
    for (const Column& column : registry_.columns()) {
      names.insert(prometheus_name(*column.metric, prefix_));
    }
    return ShownNames::all().take(this, names);
  }

  [[nodiscard]] std::vector<::prometheus::MetricFamily> Collect() const override {
    std::vector<::prometheus::MetricFamily> families;
    const Result<std::unique_ptr<Sampler>> sampler = registry_.sampler({});
    if (!sampler) {
      return families;  // a registry without metrics
    }
    const std::vector<Column>& columns = (*sampler)->columns();
    std::vector<std::uint64_t> values(columns.size());
    (*sampler)->read(values.data());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Metric& metric = *columns[i].metric;
      std::string name = prometheus_name(metric, prefix_);
      if (!metric.bounds.empty()) {
        families.push_back({std::move(name),
                            escaped(metric.help),
                            ::prometheus::MetricType::Histogram,
                            {to_histogram(&columns[i], &values[i])}});
        i += metric.bounds.size() + 2;  // skip the other buckets, the sum and the count
        continue;
      }
      if (families.empty() || families.back().name != name) {
        families.push_back({std::move(name),
                            escaped(metric.help),
                            metric.kind == Kind::counter ? ::prometheus::MetricType::Counter
                                                         : ::prometheus::MetricType::Gauge,
                            {}});
      }
      // What a callback has never returned has no value, also not 0.
      if ((*sampler)->has_value(i)) {
        families.back().metric.push_back(to_client_metric(columns[i], values[i]));
      }
    }
    std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
    // Those that were registered since.
    for (const std::string& name : take_names()) {
      std::erase_if(families, [&](const auto& family) { return family.name == name; });
    }
    add_callback_errors(&families);
    return families;
  }

 private:
  // How often callbacks have failed, for each metric with errors, unless the program has a metric of this name.
  void add_callback_errors(std::vector<::prometheus::MetricFamily>* families) const {
    const Metric errors{"callback_errors",
                        "Errors of the callback of a metric: it has thrown, or "
                        "returned what is probably a negative number",
                        Kind::counter,
                        Unit::count,
                        {}};
    ::prometheus::MetricFamily family{prometheus_name(errors, prefix_),
                                      escaped(errors.help),
                                      ::prometheus::MetricType::Counter,
                                      {}};
    for (const CallbackError& error : registry_.callback_errors()) {
      // One that has thrown and returned negative numbers is listed twice, one after the other.
      if (family.metric.empty() || family.metric.back().label[0].value != error.metric) {
        family.metric.emplace_back().label.push_back({"metric", error.metric});
      }
      family.metric.back().counter.value += static_cast<double>(error.count);
    }
    const bool taken = std::any_of(families->begin(), families->end(),
                                   [&](const auto& other) { return other.name == family.name; });
    if (!family.metric.empty() && !taken) {
      families->push_back(std::move(family));
    }
  }

  const Registry registry_;
  const std::string prefix_;
};

}  // namespace

std::string prometheus_name(const Metric& metric, std::string_view prefix) {
  return exposition_name(metric, prefix);
}

std::shared_ptr<::prometheus::Collectable> make_prometheus_collectable(const Registry& registry,
                                                                       std::string prefix) {
  if (!is_exposition_prefix(prefix)) {
    throw std::invalid_argument("make_prometheus_collectable: prefix = '" + prefix +
                                "': " + kExpositionPrefixRule);
  }
  auto made = std::make_shared<RegistryCollectable>(registry, std::move(prefix));
  if (const std::set<std::string> taken = made->take_names(); !taken.empty()) {
    throw std::invalid_argument(text_of_taken(*taken.begin()));
  }
  return made;
}

}  // namespace kymo
