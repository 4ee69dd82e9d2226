#include "kymo/registry.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/foreign_call.h"
#include "base/near_names.h"
#include "recorder/metrics/callback_metric.h"
#include "recorder/metrics/callback_turn.h"
#include "recorder/metrics/cells.h"
#include "recorder/metrics/counter_list.h"
#include "recorder/metrics/metric_rules.h"
#include "recorder/metrics/registry_access.h"

namespace kymo {
namespace {

struct Entry {
  std::vector<Column> columns;
  std::vector<std::string> shown;            // its names on /metrics
  std::uint32_t first_cell = 0;              // unused for a callback
  std::vector<std::uint64_t> base_sums;      // what the cells held when they were reserved
  std::shared_ptr<CallbackMetric> callback;  // null for counters

  [[nodiscard]] const std::string& name() const { return columns.front().metric->name; }
};

// How a histogram of this unit records a duration: Histogram::unit_ns_.
std::uint32_t ns_of(Unit unit) {
  switch (unit) {
    case Unit::count:
    case Unit::nanoseconds:
      return 1;
    case Unit::microseconds:
      return 1000;
    case Unit::pages:
    case Unit::bytes:
      return 0;
  }
  return 0;
}

}  // namespace

struct Registry::State {
  mutable std::mutex mutex;
  std::vector<Entry> entries;  // guarded by mutex
  CallbackTurn turn;
  // How often callbacks have made an error. Whoever asks for the errors looks here first: a mutex
  // that is held often is likely to be held at a fork, too, and is never free again in the child.
  const std::shared_ptr<std::atomic<std::uint64_t>> callback_errors =
      std::make_shared<std::atomic<std::uint64_t>>(0);

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    for (const Entry& entry : entries) {
      if (entry.callback == nullptr) {
        detail::withdraw_counter(entry.first_cell);
        detail::release_cells(entry.first_cell, entry.columns.size());
      }
    }
  }

  Result<void> check_new(const Metric& metric, bool histogram = false) const {
    if (Result<void> rules = check_metric(metric); !rules) {
      return rules;
    }
    if (Result<void> own = check_own(metric); !own) {
      return own;
    }
    if (Result<void> name = check_name(metric.name); !name) {
      return name;
    }
    return check_shown(metric, shown_names(metric, histogram));
  }

  // Checks that no other metric has one of these names on /metrics: Prometheus refuses the whole
  // scrape then.
  Result<void> check_shown(const Metric& metric, const std::vector<std::string>& names) const {
    for (const Entry& entry : entries) {
      for (const std::string& name : names) {
        if (std::find(entry.shown.begin(), entry.shown.end(), name) != entry.shown.end()) {
          return Error{Code::already_exists,
                       "metric '" + metric.name + "': on /metrics its name is '" + name +
                           "', which metric '" + entry.name() +
                           "' has there already; choose another name",
                       0};
        }
      }
    }
    return {};
  }

  // Checks that no metric, and no column of a histogram, has this name.
  Result<void> check_name(const std::string& name) const {
    for (const Entry& entry : entries) {
      const bool taken = entry.name() == name ||
                         std::any_of(entry.columns.begin(), entry.columns.end(),
                                     [&](const Column& column) { return column.name == name; });
      if (taken) {
        return Error{Code::already_exists,
                     "metric '" + name + "' is registered already; names are unique", 0};
      }
    }
    return {};
  }

  // `shown`: its names on /metrics, which no other metric may have; none: a metric of another program.
  // Precondition: the mutex is held.
  void add_callback(Metric metric, std::vector<std::string> shown, Registry::FamilyCallback read) {
    Entry entry;
    entry.shown = std::move(shown);
    entry.columns = columns_of(std::move(metric));
    std::vector<std::string> names;
    for (const Column& column : entry.columns) {
      names.push_back(column.name);
    }
    entry.callback = std::make_shared<CallbackMetric>(entry.name(), std::move(names),
                                                      std::move(read), callback_errors);
    entries.push_back(std::move(entry));
  }

  Result<std::uint32_t> add_counter(Metric metric) {
    const std::lock_guard lock(mutex);
    if (metric.kind != Kind::counter) {
      return Error{Code::invalid_argument,
                   "metric '" + metric.name + "' is a gauge; register it with callback()", 0};
    }
    if (Result<void> fresh = check_new(metric); !fresh) {
      return fresh.error();
    }
    if (const std::size_t columns = column_count(metric); columns > kMaxCells) {
      return Error{Code::resource_exhausted,
                   "metric '" + metric.name + "' has " + std::to_string(columns) +
                       " columns: a process has " + std::to_string(kMaxCells) +
                       " of them (kymo::kMaxCells)",
                   0};
    }
    std::vector<std::string> shown = shown_names(metric, false);
    return add_cells(columns_of(std::move(metric)), std::move(shown));
  }

  Result<std::uint32_t> add_histogram(Metric metric, const HistogramBuckets& buckets) {
    const std::lock_guard lock(mutex);
    if (Result<void> name = check_histogram_name(metric); !name) {
      return name.error();
    }
    if (Result<void> fresh = check_new(metric, true); !fresh) {
      return fresh.error();
    }
    if (Result<void> valid = check_buckets(metric, buckets); !valid) {
      return valid.error();
    }
    std::vector<std::string> shown = shown_names(metric, true);
    std::vector<Column> columns = histogram_columns(std::move(metric), buckets);
    for (const Column& column : columns) {
      if (Result<void> fresh = check_name(column.name); !fresh) {
        return fresh.error();
      }
    }
    return add_cells(std::move(columns), std::move(shown));
  }

  // Lists the metric for the readers of the counter file. For them, the sum and the count of a
  // histogram are counters of their own.
  static void list(const Entry& entry) {
    const Metric& metric = *entry.columns.front().metric;
    const auto cells = static_cast<std::ptrdiff_t>(
        metric.bounds.empty() ? entry.columns.size() : metric.bounds.size() + 1);
    const auto end = entry.base_sums.begin() + cells;
    detail::list_counter(metric, entry.first_cell, {entry.base_sums.begin(), end});
    for (auto i = static_cast<std::size_t>(cells); i < entry.columns.size(); ++i) {
      const Column& column = entry.columns[i];
      detail::list_counter({column.name, metric.help, Kind::counter, column.metric->unit},
                           entry.first_cell + static_cast<std::uint32_t>(i), {entry.base_sums[i]});
    }
  }

  // Precondition: the mutex is held.
  Result<std::uint32_t> add_cells(std::vector<Column> columns, std::vector<std::string> shown) {
    Entry entry;
    entry.columns = std::move(columns);
    entry.shown = std::move(shown);
    const std::string& name = entry.name();
    Result<std::uint32_t> first = detail::reserve_cells(entry.columns.size());
    if (!first) {
      return Error{first.error().code, "metric '" + name + "': " + first.error().message, 0};
    }
    entry.first_cell = *first;
    entry.base_sums.resize(entry.columns.size());
    detail::add_cell_sums(entry.first_cell, entry.base_sums.size(), entry.base_sums.data());
    list(entry);
    entries.push_back(std::move(entry));
    return *first;
  }
};

Registry::Registry() : state_(std::make_shared<State>()) {}
Registry::~Registry() = default;
Registry::Registry(const Registry&) = default;
Registry& Registry::operator=(const Registry&) = default;

Result<Counter> Registry::counter(Metric metric) {
  if (!metric.fields.empty()) {
    return Error{Code::invalid_argument,
                 "metric '" + metric.name + "' has fields; register it with counter_family()", 0};
  }
  Result<std::uint32_t> cell = state_->add_counter(std::move(metric));
  if (!cell) {
    return cell.error();
  }
  return Counter(*cell);
}

Result<CounterFamily> Registry::counter_family(Metric metric) {
  std::string name = metric.name;
  std::vector<Field> fields = metric.fields;
  Result<std::uint32_t> first = state_->add_counter(std::move(metric));
  if (!first) {
    return first.error();
  }
  return CounterFamily(std::move(name), std::move(fields), *first);
}

Result<Histogram> Registry::histogram(Metric metric, const HistogramBuckets& buckets) {
  const std::uint32_t unit_ns = ns_of(metric.unit);
  Result<std::uint32_t> first = state_->add_histogram(std::move(metric), buckets);
  if (!first) {
    return first.error();
  }
  return Histogram(*first, detail::BucketIndex(buckets), unit_ns);
}

Result<Histogram> Registry::histogram(Metric metric) {
  const HistogramBuckets buckets = metric.unit == Unit::nanoseconds    ? buckets_in_ns()
                                   : metric.unit == Unit::microseconds ? buckets_in_us()
                                   : metric.unit == Unit::bytes        ? buckets_in_bytes()
                                                                       : HistogramBuckets();
  return histogram(std::move(metric), buckets);
}

Result<void> Registry::add_callback(Metric metric, Callback read) {
  const std::lock_guard lock(state_->mutex);
  if (!metric.fields.empty()) {
    return Error{Code::invalid_argument,
                 "metric '" + metric.name + "' has fields; register it with callback_family()", 0};
  }
  if (!read) {
    return Error{Code::invalid_argument, "metric '" + metric.name + "': the callback is empty", 0};
  }
  if (Result<void> fresh = state_->check_new(metric); !fresh) {
    return fresh;
  }
  std::vector<std::string> shown = shown_names(metric, false);
  state_->add_callback(std::move(metric), std::move(shown),
                       [read = std::move(read)](std::span<std::uint64_t> out) { out[0] = read(); });
  return {};
}

Result<void> Registry::callback_family(Metric metric, FamilyCallback read) {
  const std::lock_guard lock(state_->mutex);
  if (!read) {
    return Error{Code::invalid_argument, "metric '" + metric.name + "': the callback is empty", 0};
  }
  if (Result<void> fresh = state_->check_new(metric); !fresh) {
    return fresh;
  }
  std::vector<std::string> shown = shown_names(metric, false);
  state_->add_callback(std::move(metric), std::move(shown), std::move(read));
  return {};
}

Result<void> RegistryAccess::add_foreign(Registry& registry, Metric metric,
                                         Registry::FamilyCallback read) {
  const std::lock_guard lock(registry.state_->mutex);
  if (Result<void> rules = check_metric(metric); !rules) {
    return rules;
  }
  if (Result<void> fresh = registry.state_->check_name(metric.name); !fresh) {
    return fresh;
  }
  registry.state_->add_callback(std::move(metric), {}, std::move(read));
  return {};
}

std::shared_ptr<const std::atomic<std::uint64_t>> RegistryAccess::errors_of_callbacks(
    const Registry& registry) {
  return registry.state_->callback_errors;
}

const void* RegistryAccess::turn(const Registry& registry) {
  return &registry.state_->turn;
}

std::string RegistryAccess::running_callback(const Registry& registry) {
  const Registry::State& state = *registry.state_;
  const CallbackMetric* const running = state.turn.running();
  if (running == nullptr) {
    return {};
  }
  const std::lock_guard lock(state.mutex);
  const auto found =
      std::find_if(state.entries.begin(), state.entries.end(),
                   [running](const Entry& entry) { return entry.callback.get() == running; });
  return found == state.entries.end() ? std::string() : found->name();
}

std::vector<std::string> RegistryAccess::metrics_after(const Registry& registry,
                                                       std::size_t count) {
  const std::lock_guard lock(registry.state_->mutex);
  const std::vector<Entry>& entries = registry.state_->entries;
  std::vector<std::string> names;
  for (std::size_t i = count; i < entries.size(); ++i) {
    names.push_back(entries[i].name());
  }
  return names;
}

std::vector<CallbackError> Registry::callback_errors() const {
  if (state_->callback_errors->load(std::memory_order_relaxed) == 0) {
    return {};
  }
  const std::lock_guard lock(state_->mutex);
  std::vector<CallbackError> errors;
  for (const Entry& entry : state_->entries) {
    if (entry.callback != nullptr) {
      entry.callback->add_errors(&errors);
    }
  }
  return errors;
}

std::vector<Column> Registry::columns() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<Column> all;
  for (const Entry& entry : state_->entries) {
    all.insert(all.end(), entry.columns.begin(), entry.columns.end());
  }
  return all;
}

Result<Counter> CounterFamily::with(std::initializer_list<std::string_view> values) const {
  if (values.size() != fields_.size()) {
    std::string names;
    for (const Field& field : fields_) {
      names += (names.empty() ? "" : ", ") + field.name;
    }
    return Error{Code::invalid_argument,
                 "metric '" + name_ + "': give one value for each of its fields (" + names +
                     "), not " + std::to_string(values.size()),
                 0};
  }
  std::uint32_t index = 0;
  const std::string_view* value = values.begin();
  for (const Field& field : fields_) {
    const auto found = std::find(field.values.begin(), field.values.end(), *value);
    if (found == field.values.end()) {
      std::string allowed;
      for (const std::string& known : field.values) {
        allowed += (allowed.empty() ? "" : ", ") + known;
      }
      return Error{Code::invalid_argument,
                   "metric '" + name_ + "': its field '" + field.name + "' has no value '" +
                       std::string(*value) + "'; it has: " + allowed,
                   0};
    }
    index = index * static_cast<std::uint32_t>(field.values.size()) +
            static_cast<std::uint32_t>(found - field.values.begin());
    ++value;
  }
  return Counter(first_cell_ + index);
}

struct Sampler::State {
  // Counter columns that are adjacent in a row and in the cells.
  struct Run {
    std::uint32_t first_cell;
    std::uint32_t count;
    std::size_t column;
  };
  struct CallbackColumn {
    std::size_t column;
    std::shared_ptr<CallbackMetric> metric;
  };
  State(const Registry& of, CallbackTurn& its_turn) : registry(of), turn(its_turn) {}

  const Registry registry;  // keeps the cells and the turn
  CallbackTurn& turn;
  std::vector<Column> columns;
  std::vector<Run> runs;
  std::vector<std::uint64_t> start;  // the row before the sums are added: minus what the cells held
  std::vector<CallbackColumn> callbacks;

  void append(const Entry& entry) {
    if (entry.callback != nullptr) {
      callbacks.push_back({columns.size(), entry.callback});
      start.insert(start.end(), entry.columns.size(), 0);
    } else {
      const auto count = static_cast<std::uint32_t>(entry.columns.size());
      const bool adjacent = !runs.empty() &&
                            runs.back().first_cell + runs.back().count == entry.first_cell &&
                            runs.back().column + runs.back().count == columns.size();
      if (adjacent) {
        runs.back().count += count;
      } else {
        runs.push_back({entry.first_cell, count, columns.size()});
      }
      for (const std::uint64_t base : entry.base_sums) {
        start.push_back(0 - base);
      }
    }
    columns.insert(columns.end(), entry.columns.begin(), entry.columns.end());
  }
};

Result<std::unique_ptr<Sampler>> Registry::sampler(const std::vector<std::string>& metrics) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> known;
  for (const Entry& entry : state_->entries) {
    known.push_back(entry.name());
  }
  for (const std::string& name : metrics) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Error{Code::not_found, "no metric is named '" + name + "'" + did_you_mean(name, known),
                   0};
    }
  }
  auto state = std::make_unique<Sampler::State>(*this, state_->turn);
  for (const Entry& entry : state_->entries) {
    if (metrics.empty() ||
        std::find(metrics.begin(), metrics.end(), entry.name()) != metrics.end()) {
      state->append(entry);
    }
  }
  if (state->columns.empty()) {
    return Error{Code::failed_precondition, "the registry has no metrics to sample", 0};
  }
  return std::unique_ptr<Sampler>(new Sampler(std::move(state)));
}

Sampler::Sampler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sampler::~Sampler() = default;

const std::vector<Column>& Sampler::columns() const {
  return state_->columns;
}

bool Sampler::has_value(std::size_t column) const {
  for (const State::CallbackColumn& callback : state_->callbacks) {
    if (column >= callback.column && column - callback.column < callback.metric->columns()) {
      return callback.metric->has_value();
    }
  }
  return true;
}

std::uint64_t Sampler::read(std::uint64_t* out) const noexcept {
  const State& s = *state_;
  std::copy(s.start.begin(), s.start.end(), out);
  for (const State::Run& run : s.runs) {
    detail::add_cell_sums(run.first_cell, run.count, out + run.column);
  }
  if (s.callbacks.empty()) {
    return 0;
  }
  const std::uint64_t counters_read_ns = s.runs.empty() ? 0 : monotonic_ns();
  const CallbackTurn::Taken turn(s.turn);
  if (!turn.taken()) {
    for (const State::CallbackColumn& callback : s.callbacks) {
      callback.metric->keep(out + callback.column);
    }
    return counters_read_ns;
  }
  const ForeignCall mark(&s.turn, "the callback of a metric");
  for (const State::CallbackColumn& callback : s.callbacks) {
    s.turn.note_running(callback.metric.get());
    callback.metric->read(out + callback.column);
  }
  s.turn.note_running(nullptr);
  return counters_read_ns;
}

}  // namespace kymo
