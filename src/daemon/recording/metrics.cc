#include "daemon/recording/metrics.h"

#include <algorithm>
#include <string>
#include <utility>

#include "recorder/metrics/metric_rules.h"

namespace kymo::daemon {
namespace {

constexpr std::array<std::string_view, 2> kCallResults{"ok", "error"};

struct TotalRow {
  std::string_view name;
  Unit unit;
  std::string_view help;
};

// In the order of Metrics::Total.
constexpr std::array<TotalRow, 11> kTotals{{
    {"image_written_bytes", Unit::bytes, "Bytes of images, counted while they are being written"},
    {"otlp_spans_sent", Unit::count, "Spans of requests that the OpenTelemetry collector took"},
    {"otlp_spans_dropped", Unit::count, "Spans of requests that did not reach the collector"},
    {"profile_samples", Unit::count, "Samples of the stack profiles that are kept (--profiles)"},
    {"profile_samples_lost", Unit::count,
     "Samples that are missing from the stack profiles that are kept"},
    {"profile_failures", Unit::count, "Failures to take or keep stack profiles (--profiles)"},
    {"profiles_removed", Unit::count,
     "Minutes of stack profiles that were removed because of --profiles-keep-days or -bytes"},
    {"profile_pulls", Unit::count,
     "Attempts to pull the profiles of a Go program (--profiles-pull)"},
    {"profile_pulls_failed", Unit::count,
     "Attempts to pull that did not get all profiles of the program"},
    {"profile_pulls_timed_out", Unit::count,
     "Attempts to pull that failed because the program did not answer in time"},
    {"profile_pulled_bytes", Unit::bytes,
     "Bytes of the profiles that were pulled from Go programs"},
}};

template <std::size_t N>
std::vector<std::string> strings(const std::array<std::string_view, N>& values) {
  return {values.begin(), values.end()};
}

Metric counter_of(std::string name, std::string help, std::vector<Field> fields,
                  Unit unit = Unit::count) {
  return Metric{std::move(name), std::move(help), Kind::counter, unit, std::move(fields)};
}

// The indexes of the gauges in a request's own columns. They come before all counters.
constexpr std::size_t kOwnPhase = 0;
constexpr std::size_t kOwnDone = 1;
constexpr std::size_t kOwnRemaining = 2;
constexpr std::size_t kOwnPages = 3;

// The gauges of one request, in this order.
std::vector<Column> own_gauges() {
  std::vector<Column> columns;
  const auto add = [&](const char* name, Unit unit, const char* help) {
    columns.push_back(columns_of({name, help, Kind::gauge, unit, {}}).front());
  };
  add("phase", Unit::count, "Last notification of CRIU, by its number in docs/metrics.md");
  add("request_done_bytes", Unit::bytes, "Bytes of images that the request has processed");
  add("request_remaining_bytes", Unit::bytes,
      "Bytes of images that the request still has to process, if known");
  add("request_done_pages", Unit::pages, "Pages of memory that the request has processed");
  return columns;
}

std::size_t notification_index(std::string_view name) {
  const auto* found = std::find(kNotifications.begin(), kNotifications.end(), name);
  if (found == kNotifications.end()) return kNotifications.size() - 1;  // "other"
  return static_cast<std::size_t>(found - kNotifications.begin());
}

}  // namespace

std::uint64_t phase_of(std::string_view notification) {
  return kPhaseRequest + 1 + notification_index(notification);
}

RequestResult result_of(const Result<void>& outcome, bool begun) {
  if (outcome) return RequestResult::ok;
  switch (outcome.error().code) {
    case Code::cancelled:
      return RequestResult::cancelled;
    case Code::invalid_argument:
    case Code::not_found:
    case Code::already_exists:
    case Code::permission_denied:
    case Code::failed_precondition:
    case Code::out_of_range:
    case Code::unimplemented:
    case Code::data_loss:           // the images are damaged
    case Code::resource_exhausted:  // there is no room for the images
    case Code::unavailable:         // what must be known first cannot be found out now
      return begun ? RequestResult::error : RequestResult::refused;
    default:
      return RequestResult::error;
  }
}

Result<std::unique_ptr<Metrics>> Metrics::make() {
  std::unique_ptr<Metrics> metrics(new Metrics);
  metrics->own_columns_ = own_gauges();
  if (Result<void> ok = metrics->register_gauges(); !ok) return ok.error();
  if (Result<void> ok = metrics->register_totals(); !ok) return ok.error();
  if (Result<void> ok = metrics->register_families(); !ok) return ok.error();
  return metrics;
}

Result<void> Metrics::register_gauges() {
  std::string phases = "Phase of the running request: 0 idle, 1 before CRIU's first notification";
  for (const std::string_view name : kNotifications) {
    phases += ", " + std::to_string(phase_of(name)) + " " + std::string(name);
  }
  Result<void> ok = registry_.callback({"phase", phases, Kind::gauge, Unit::count, {}},
                                       [this] { return phase_.load(std::memory_order_relaxed); });
  if (!ok) return ok;
  ok = register_progress();
  if (!ok) return ok;
  const auto gauge = [this](const char* name, const char* help,
                            const std::atomic<std::uint64_t>& value) {
    return registry_.callback({name, help, Kind::gauge, Unit::count, {}},
                              [&value] { return value.load(std::memory_order_relaxed); });
  };
  ok = gauge("processes_managed", "Running jobs that the daemon looks after", processes_);
  if (!ok) return ok;
  ok = gauge("processes_held",
             "Processes that stand still because their CRIU was killed but cannot end", held_);
  if (!ok) return ok;
  ok = gauge("dumps_unconfirmed", "Dumps of which it is not known yet what they have left",
             unconfirmed_);
  if (!ok) return ok;
  return gauge("profiles_not_kept",
               "1 while stack profiles are not kept, although --profiles is given",
               profiles_not_kept_);
}

Result<void> Metrics::register_progress() {
  const auto gauge = [this](const char* name, Unit unit, const char* help,
                            const std::atomic<std::uint64_t>& value) {
    return registry_.callback({name, help, Kind::gauge, unit, {}},
                              [&value] { return value.load(std::memory_order_relaxed); });
  };
  Result<void> ok =
      gauge("request_done_bytes", Unit::bytes,
            "Bytes of images that the running requests have processed", progress_.bytes_done);
  if (!ok) return ok;
  ok = gauge("request_remaining_bytes", Unit::bytes,
             "Bytes of images that the running requests still have to process, if known",
             progress_.bytes_remaining);
  if (!ok) return ok;
  return gauge("request_done_pages", Unit::pages,
               "Pages of memory that the running requests have processed", progress_.pages_done);
}

Result<void> Metrics::register_totals() {
  const auto add_counter = [this](Family& family, const auto& row, bool of_requests) {
    const Metric metric = counter_of(std::string(row.name), std::string(row.help), {}, row.unit);
    Result<Counter> counter = registry_.counter(metric);
    if (!counter) return Result<void>(counter.error());
    family.counters.push_back(*counter);
    if (of_requests) own_columns_.push_back(columns_of(metric).front());
    return Result<void>();
  };
  criu_figures_.own = own_columns_.size();
  for (const criu::SummedFigure& figure : criu::summed_figures()) {
    if (Result<void> ok = add_counter(criu_figures_, figure, true); !ok) return ok;
    criu_figure_names_.push_back(figure.name);
  }
  totals_.own = own_columns_.size();
  for (const TotalRow& row : kTotals) {
    const bool of_requests =
        totals_.counters.size() < static_cast<std::size_t>(Total::otlp_spans_sent);
    if (Result<void> ok = add_counter(totals_, row, of_requests); !ok) return ok;
  }
  return {};
}

// Makes the counters of a family with one or two fields: one for each combination of values, the
// last field changing fastest.
Result<void> Metrics::make_family(Metric metric, bool of_requests, Family* family) {
  if (of_requests) {
    family->own = own_columns_.size();
    for (Column& column : columns_of(metric)) own_columns_.push_back(std::move(column));
  }
  const std::vector<Field> fields = metric.fields;
  const std::vector<std::string> none{""};
  const std::vector<std::string>& inner = fields.size() > 1 ? fields[1].values : none;
  Result<CounterFamily> made = registry_.counter_family(std::move(metric));
  if (!made) return made.error();
  for (const std::string& first : fields.front().values) {
    for (const std::string& second : inner) {
      Result<Counter> counter =
          fields.size() > 1 ? made->with({first, second}) : made->with({first});
      if (!counter) return counter.error();
      family->counters.push_back(*counter);
    }
  }
  return {};
}

Result<void> Metrics::register_families() {
  const Field call{"call", strings(criu::kCallNames)};
  const Field call_result{"result", strings(kCallResults)};
  const Field result{"result", strings(kRequestResults)};
  Result<void> ok =
      make_family(counter_of("criu_calls", "Calls of CRIU by kind and result", {call, call_result}),
                  true, &criu_calls_);
  if (!ok) return ok;
  ok = make_family(counter_of("criu_call_time_us", "Life of the CRIU processes, by kind", {call},
                              Unit::microseconds),
                   true, &criu_time_us_);
  if (!ok) return ok;
  ok = make_family(counter_of("dumps",
                              "Dump requests by result: ok, error, refused (nothing was begun), "
                              "cancelled",
                              {result}),
                   true, &dumps_);
  if (!ok) return ok;
  ok = make_family(counter_of("restores",
                              "Restore requests by result: ok, error, refused (nothing was begun), "
                              "cancelled",
                              {result}),
                   true, &restores_);
  if (!ok) return ok;
  return make_family(counter_of("criu_notifications", "Notifications from CRIU by name",
                                {Field{"name", strings(kNotifications)}}),
                     false, &notifications_);
}

void Metrics::criu_called(const criu::Call& call, OwnColumns* own) {
  const auto kind = static_cast<std::size_t>(call.kind);
  criu_calls_.add(kind * kCallResults.size() + (call.ok ? 0 : 1), 1, own);
  criu_time_us_.add(kind, call.duration_ns / 1000, own);
}

void Metrics::move_phase(std::uint64_t phase, OwnColumns* own) {
  phase_.store(phase, std::memory_order_relaxed);
  if (own != nullptr) own->set(kOwnPhase, phase);
}

void Metrics::notified(std::string_view notification, OwnColumns* own) {
  move_phase(phase_of(notification), own);
  notifications_.add(notification_index(notification), 1, own);
}

void Metrics::image_bytes_written(std::uint64_t bytes, OwnColumns* own) {
  add(Total::image_written, bytes, own);
}

void Metrics::profiles_kept(std::uint64_t samples, std::uint64_t lost) {
  add(Total::profile_samples, samples, nullptr);
  add(Total::profile_samples_lost, lost, nullptr);
}

void Metrics::profiles_failed(std::uint64_t lost) {
  add(Total::profile_samples_lost, lost, nullptr);
  add(Total::profile_failures, 1, nullptr);
}

void Metrics::profiles_removed(std::uint64_t minutes) {
  add(Total::profiles_removed, minutes, nullptr);
}

void Metrics::profiles_pulled(const profiles::PullCounts& counts) {
  add(Total::profile_pulls, counts.asked, nullptr);
  add(Total::profile_pulls_failed, counts.failed, nullptr);
  add(Total::profile_pulls_timed_out, counts.timed_out, nullptr);
  add(Total::profile_pulled_bytes, counts.bytes, nullptr);
}

void Metrics::spans_exported(std::uint64_t sent, std::uint64_t dropped) {
  add(Total::otlp_spans_sent, sent, nullptr);
  add(Total::otlp_spans_dropped, dropped, nullptr);
}

void Metrics::dump_ended(RequestResult result, OwnColumns* own) {
  dumps_.add(static_cast<std::size_t>(result), 1, own);
}

void Metrics::restore_ended(RequestResult result, OwnColumns* own) {
  restores_.add(static_cast<std::size_t>(result), 1, own);
}

void Metrics::add(const std::vector<criu::StatsFigure>& figures, OwnColumns* own) {
  for (const criu::StatsFigure& figure : figures) {
    const auto name = std::find(criu_figure_names_.begin(), criu_figure_names_.end(), figure.name);
    if (name == criu_figure_names_.end()) continue;  // it is not summed
    criu_figures_.add(static_cast<std::size_t>(name - criu_figure_names_.begin()), figure.value,
                      own);
  }
}

void Metrics::add(const criu::DumpStats& stats, OwnColumns* own) {
  add(figures(stats), own);
}

void Metrics::add(const criu::RestoreStats& stats, OwnColumns* own) {
  add(figures(stats), own);
}

void Metrics::set_processes_managed(std::uint64_t count) {
  processes_.store(count, std::memory_order_relaxed);
}

void Metrics::set_profiles_not_kept(bool not_kept) {
  profiles_not_kept_.store(not_kept ? 1 : 0, std::memory_order_relaxed);
}

void Metrics::set_unconfirmed(std::uint64_t dumps, std::uint64_t held_processes) {
  unconfirmed_.store(dumps, std::memory_order_relaxed);
  held_.store(held_processes, std::memory_order_relaxed);
}

void Metrics::request_began(OwnColumns* own) {
  requests_.fetch_add(1, std::memory_order_relaxed);
  move_phase(kPhaseRequest, own);
}

void Metrics::request_ended(OwnColumns* own) {
  if (own != nullptr) own->set(kOwnPhase, kPhaseIdle);
  if (requests_.fetch_sub(1, std::memory_order_relaxed) == 1) {
    phase_.store(kPhaseIdle, std::memory_order_relaxed);
  }
}

void Metrics::progressed(std::uint64_t done_bytes, std::uint64_t remaining_bytes,
                         std::uint64_t done_pages, OwnColumns& own) {
  own.set(kOwnDone, done_bytes);
  own.set(kOwnRemaining, remaining_bytes);
  own.set(kOwnPages, done_pages);
}

}  // namespace kymo::daemon
