#include "kymo/profiler.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/event.h"
#include "base/foreign_call.h"
#include "base/human.h"
#include "base/json_text.h"
#include "base/quiet_thread.h"
#include "kymo/flight_recorder.h"
#include "kymo/recover.h"
#include "recorder/metrics/registry_access.h"
#include "recorder/sampling/collect/collector.h"
#include "recorder/sampling/collect/recorder_counts.h"
#include "recorder/sampling/collect/recorder_metrics.h"
#include "recorder/sampling/collect/thread_setup.h"
#include "recorder/sampling/collect/writer.h"
#include "recorder/sampling/files/metadata.h"
#include "recorder/sampling/files/sink_in_use.h"
#include "recorder/sampling/profiler/callback_errors.h"
#include "recorder/sampling/profiler/collector_thread.h"
#include "recorder/sampling/profiler/left_ring.h"
#include "recorder/sampling/profiler/losses.h"
#include "recorder/sampling/profiler/options.h"
#include "recorder/sampling/profiler/trouble_teller.h"
#include "recorder/sampling/ring/gap_queue.h"
#include "recorder/sampling/ring/ring.h"
#include "recorder/sampling/ring/ring_memory.h"
#include "recorder/sampling/ring/ring_reader.h"
#include "recorder/timing/scope_keeper.h"

namespace kymo {
namespace {

// How many metrics of the registry are in the columns, if these are of all metrics that it had: the
// ones that were registered since then come last.
std::uint64_t count_recorded(const Registry& registry, const std::vector<Column>& columns) {
  const std::vector<std::string> all = RegistryAccess::metrics_after(registry, 0);
  std::size_t count = all.size();
  const auto is_recorded = [&](const std::string& name) {
    return std::any_of(columns.begin(), columns.end(),
                       [&](const Column& column) { return column.metric->name == name; });
  };
  while (count != 0 && !is_recorded(all[count - 1])) --count;
  return count;
}

}  // namespace

struct Profiler::State {
  // What exists between start and stop, in the order in which it must be built.
  struct Run {
    Run(Collector::Options collector_options, std::shared_ptr<const Sampler> own_sampler,
        std::unique_ptr<Ring> own_ring, RecorderCounts& counts, Sink& sink, SinkError& sink_error,
        std::atomic<std::uint64_t>& start_ns, std::function<ProfilerStats()> stats)
        : sampler(std::move(own_sampler)),
          ring(std::move(own_ring)),
          gaps(collector_options.interval_ns),
          late_causes(collector_options.interval_ns, counts.collected, counts.written),
          collector(collector_options, *sampler, *ring, gaps, counts.collected, stop, wake_writer,
                    start_ns),
          writer(collector_options.interval_ns, collector_options.hand_over.nap_ns, *ring, gaps,
                 counts.written, late_causes, sink, sink_error, wake_writer, std::move(stats)) {}

    std::shared_ptr<const Sampler> sampler;
    std::unique_ptr<Ring> ring;
    GapQueue gaps;
    LateCauses late_causes;
    // Each on cache lines of its own: the collector waits at `stop` and writes `collector`, the
    // writer waits at `wake_writer` and writes `writer`.
    alignas(kCacheLine) Event stop;
    alignas(kCacheLine) Event wake_writer;
    alignas(kCacheLine) Collector collector;
    alignas(kCacheLine) Writer writer;
    alignas(kCacheLine) std::atomic<bool> first_row_taken{false};
    std::atomic<bool> collector_ended{false};
    std::thread collector_thread;
    std::thread writer_thread;
    std::unique_ptr<TroubleTeller> teller;
  };

  State(const Registry& own_registry, ProfilerOptions own_options)
      : registry(own_registry), options(std::move(own_options)) {}

  const Registry registry;
  ProfilerOptions options;
  const std::shared_ptr<RecorderCounts> counts = std::make_shared<RecorderCounts>();
  std::mutex mutex;           // guards run; held by start() and stop(), which wait for the sink
  std::optional<Run> run;     // engaged while running
  bool ever_started = false;  // guarded by mutex
  mutable std::mutex shown_mutex;           // guards the next four; nobody waits while holding it
  std::shared_ptr<const RingMemory> shown;  // the ring while rows go through it, else null
  std::vector<std::string> warnings;
  std::shared_ptr<CallbackErrors> callback_errors;
  std::vector<std::string> unrecorded;  // after stop(): what unrecorded_metrics() returned then
  SinkError sink_error;
  const std::shared_ptr<ScopeKeeper> scopes = std::make_shared<ScopeKeeper>(kMaxScopes);
  std::atomic<bool> running{false};
  std::atomic<bool> stopping{false};          // stop() was called
  std::atomic<pid_t> owner{0};                // the process that has the threads
  std::atomic<std::uint64_t> start_ns{0};     // 0: not started
  std::atomic<std::uint64_t> duration_ns{0};  // 0: not stopped
  // How many metrics the registry had, if all of them are recorded; else UINT64_MAX.
  std::atomic<std::uint64_t> recorded_metrics{UINT64_MAX};
  std::atomic<std::size_t> ring_bytes{0};

  // Whether this is a forked child, which has the memory but not the threads.
  [[nodiscard]] bool is_forked_copy() const {
    const pid_t started = owner.load(std::memory_order_relaxed);
    return started != 0 && started != ::getpid();
  }

  [[nodiscard]] std::uint64_t elapsed_ns() const {
    const std::uint64_t start = start_ns.load(std::memory_order_acquire);
    return start == 0 ? 0 : monotonic_ns() - start;
  }

  [[nodiscard]] ProfilerStats stats() const {
    ProfilerStats s = counts->snapshot();
    const std::uint64_t stopped_after = duration_ns.load(std::memory_order_acquire);
    s.duration_ns = stopped_after != 0 ? stopped_after : elapsed_ns();
    return s;
  }

  // A callback that `what` would wait for must not wait for it.
  [[nodiscard]] Result<void> refuse_inside(const std::string& what) const {
    const char* who = ForeignCall::of(options.sink.get());
    if (options.sink == nullptr || who == nullptr) {
      who = ForeignCall::of(RegistryAccess::turn(registry));
    }
    if (who == nullptr) {
      return {};
    }
    return Error{Code::failed_precondition,
                 what + ": " + who +
                     " calls it, and it would wait for that call to return; let another thread "
                     "call it",
                 0};
  }

  Result<void> start(const Profiler& self);
  Result<void> begin(std::shared_ptr<const Sampler> sampler);
  Result<void> stop();
  Result<std::unique_ptr<RingMemory>> make_ring(const RecordingInfo& info);
  [[nodiscard]] std::vector<std::string> unrecorded_metrics() const;
  [[nodiscard]] RunningCallback running_callback() const;
  void start_teller(const Profiler& self);
  void start_threads(CollectorThread& collector_thread, std::uint64_t clock_start_ns);
  void warn_of_short_interval(std::uint64_t sample_ns, double spin_limit);
  void warn(std::vector<std::string> more) {
    const std::lock_guard lock(shown_mutex);
    warnings.insert(warnings.end(), more.begin(), more.end());
  }
  void show(std::shared_ptr<const RingMemory> ring) {
    const std::lock_guard lock(shown_mutex);
    shown = std::move(ring);
  }
};

Result<std::unique_ptr<RingMemory>> Profiler::State::make_ring(const RecordingInfo& info) {
  const RingMemory::Shape shape{info.slots, info.rows_per_slot, info.columns.size() + 1};
  if (options.ring_file.empty()) {
    return RingMemory::create_private(shape);
  }
  return RingMemory::create_file(shape, options.ring_file,
                                 json_text(describe_ring(info, options.sink->output_place().path)));
}

Result<void> Profiler::State::start(const Profiler& self) {
  if (is_forked_copy()) {  // before the lock: the mutex may have been held when the process forked
    return Error{Code::failed_precondition,
                 "this profiler was started by the parent process, before fork(); make a new one "
                 "to record here",
                 0};
  }
  if (Result<void> outside = refuse_inside("start the recorder"); !outside) {
    return outside;
  }
  const std::lock_guard lock(mutex);
  if (ever_started) {
    return Error{Code::failed_precondition,
                 "this profiler was started already; make a new one to record again", 0};
  }
  if (Result<void> valid = check_options(options); !valid) {
    return valid;
  }
  Result<std::unique_ptr<Sampler>> sampler = registry.sampler(options.metrics);
  if (!sampler) {
    return sampler.error();
  }
  if (Result<void> fits = check_ring_bytes(options, (*sampler)->columns().size()); !fits) {
    return fits;
  }
  if (options.sink->in_use_.exchange(true, std::memory_order_acquire)) {
    return sink_in_use("cannot start the profiler");
  }
  bool begun = false;
  const std::shared_ptr<void> unless_begun(nullptr, [this, &begun](void*) {
    if (begun) {
      return;
    }
    if (callback_errors != nullptr) {
      callback_errors->finish();  // the sink may have stored what it was opened with
    }
    options.sink->in_use_.store(false, std::memory_order_release);
  });
  Result<void> outcome = begin(*std::move(sampler));
  begun = outcome.ok();
  if (begun) {
    start_teller(self);
  }
  return outcome;
}

Result<void> Profiler::State::begin(std::shared_ptr<const Sampler> sampler) {
  RecordingInfo info;
  info.columns = sampler->columns();
  info.interval = options.interval;
  info.slots = options.slots;
  info.rows_per_slot = options.rows;
  info.pace = options.pace;
  info.max_spin_share =
      Pacer::spin_limit(to_nanos(options.interval), options.pace, options.max_spin_share);
  info.prometheus_prefix = options.prometheus_prefix;
  info.ring_file = options.ring_file;
  const auto errors = std::make_shared<CallbackErrors>(registry, info.columns);
  info.callback_errors = [errors] { return errors->get(); };
  info.scopes = [kept = scopes](std::uint64_t after) { return kept->since(after); };
  {
    const std::lock_guard shown_lock(shown_mutex);
    callback_errors = errors;
  }
  if (options.metrics.empty()) {
    recorded_metrics.store(count_recorded(registry, info.columns), std::memory_order_relaxed);
  }
  CollectorThread collector_thread(sampler);
  const Result<std::uint64_t> sample_ns = collector_thread.sample_ns(registry);
  if (!sample_ns) {
    return sample_ns.error();
  }
  info.start_unix_ns = unix_ns();
  info.start_monotonic_ns = monotonic_ns();
  LeftRing left(options.ring_file);
  Result<std::unique_ptr<RingMemory>> memory = make_ring(info);
  if (!memory) {
    return memory.error();
  }
  bool opened = false;
  const std::shared_ptr<void> unless_opened(nullptr, [&memory, &opened](void*) {
    if (!opened) (*memory)->remove_file();
  });
  if (Result<void> outcome =
          call_foreign("the sink", options.sink.get(), [&] { return options.sink->open(info); });
      !outcome) {
    return outcome;
  }
  opened = true;
  if (const auto* recorder = dynamic_cast<const FlightRecorder*>(options.sink.get())) {
    warn(recorder->warnings());
  }
  if (const std::string aside = left.leave_aside(); !aside.empty()) {
    warn({"a program that was killed left the ring " + options.ring_file + ": moved to " + aside +
          "; recover its rows with kymo::recover_ring() or 'kymo recover " + aside + "'"});
  }
  ever_started = true;
  owner.store(::getpid(), std::memory_order_relaxed);
  ring_bytes.store((*memory)->bytes(), std::memory_order_relaxed);
  const std::shared_ptr<RingMemory> ring_memory = *std::move(memory);
  auto ring = std::make_unique<Ring>(ring_memory);
  ring->accept_output(position_of(options.sink->output_place()));
  run.emplace(
      Collector::Options{info.start_monotonic_ns, to_nanos(options.interval), flush_ns(options),
                         options.pace, options.max_spin_share, options.realtime_max_share,
                         options.nice,
                         hand_over_pace(options.slots, options.rows, to_nanos(options.interval))},
      std::move(sampler), std::move(ring), *counts, *options.sink, sink_error, start_ns,
      [this] { return stats(); });
  show(ring_memory);
  warn_of_short_interval(*sample_ns, info.max_spin_share);
  start_threads(collector_thread, info.start_monotonic_ns);
  running.store(true, std::memory_order_release);
  return {};
}

void Profiler::State::start_teller(const Profiler& self) {
  run->teller = std::make_unique<TroubleTeller>(self, options.on_trouble, options.sink.get());
  if (Result<void> begun = run->teller->start(); !begun) {
    warn({begun.error().message});
  }
}

void Profiler::State::warn_of_short_interval(std::uint64_t sample_ns, double spin_limit) {
  if (sample_ns > to_nanos(options.interval)) {
    warn({"an interval of " + human::duration(options.interval) + " is too short: a sample of " +
          std::to_string(run->sampler->columns().size()) + " columns takes " +
          human::duration(sample_ns) + " here; ticks that are missed will be counted and listed"});
  }
  if (options.pace == Pace::precise && spin_limit > options.max_spin_share) {
    warn({"an interval of " + human::duration(options.interval) +
          " is too short for the max spin share: the collector may spin up to " +
          std::to_string(std::llround(100 * spin_limit)) + " % of the time"});
  }
}

void Profiler::State::start_threads(CollectorThread& collector_thread,
                                    std::uint64_t clock_start_ns) {
  run->writer_thread = quiet_thread([this] {
    ::pthread_setname_np(::pthread_self(), "kymo-writer");
    run->writer.run();
  });
  const auto is_set_up = std::make_shared<std::promise<void>>();
  std::future<void> set_up = is_set_up->get_future();
  run->collector_thread = collector_thread.run([this, clock_start_ns, is_set_up] {
    start_ns.store(clock_start_ns, std::memory_order_release);
    std::vector<std::string> refused;
    set_up_this_thread({options.realtime_priority, options.nice, options.cpu}, &refused);
    warn(std::move(refused));
    run->late_causes.begin();
    run->collector.begin();
    is_set_up->set_value();
    run->collector.take_first_sample();
    run->first_row_taken.store(true, std::memory_order_release);
    run->collector.run();
    run->late_causes.end();
    run->writer.collector_done();
    run->collector_ended.store(true, std::memory_order_release);
  });
  keep_off_cpu(run->writer_thread.native_handle(), options.cpu);
  set_up.wait();  // warnings() now has all refusals, and every tick from now on is due
  // What the program counts when start() has returned must come after the first row. If a callback
  // does not return, TroubleWatch and stop() name it.
  static_cast<void>(wait_for_callbacks(run->first_row_taken, registry));
}

// The names of metrics that the registry got while all of its metrics were being recorded.
std::vector<std::string> Profiler::State::unrecorded_metrics() const {
  if (is_forked_copy()) {  // a mutex may have been held when the process forked
    return {};
  }
  if (!running.load(std::memory_order_acquire)) {
    const std::lock_guard lock(shown_mutex);
    return unrecorded;
  }
  const std::uint64_t recorded = recorded_metrics.load(std::memory_order_relaxed);
  return recorded == UINT64_MAX ? std::vector<std::string>()
                                : RegistryAccess::metrics_after(registry, recorded);
}

// The deadline of the tick that the collector works on follows from the ticks that it has counted:
// so it need not say when it began.
RunningCallback Profiler::State::running_callback() const {
  RunningCallback found;
  found.stopping = stopping.load(std::memory_order_relaxed);
  if (!running.load(std::memory_order_acquire) || is_forked_copy()) {
    return found;
  }
  const RecorderCounts::Collected& collected = counts->collected;
  const std::uint64_t tick = collected.first_tick.get() + collected.captured.get() +
                             collected.missed_late.get() + collected.missed_ring_full.get() +
                             collected.missed_frozen.get();
  const std::uint64_t deadline_ns = tick * to_nanos(options.interval);
  const std::uint64_t now = elapsed_ns();
  std::string metric = RegistryAccess::running_callback(registry);
  if (!metric.empty() && now >= deadline_ns) {
    found.metric = std::move(metric);
    found.waited = std::chrono::nanoseconds(now - deadline_ns);
  }
  return found;
}

Result<void> Profiler::State::stop() {
  if (is_forked_copy()) {  // before the lock: the mutex may have been held when the process forked
    return running.load(std::memory_order_relaxed)
               ? Result<void>(Error{Code::failed_precondition,
                                    "nothing to stop: the recorder was started before fork() or "
                                    "daemon(), and only the parent process records; make a new "
                                    "profiler in the child",
                                    0})
               : Result<void>();
  }
  if (Result<void> outside = refuse_inside("stop the recorder"); !outside) {
    return outside;
  }
  const std::lock_guard lock(mutex);
  if (!run) {
    return {};
  }
  stopping.store(true, std::memory_order_relaxed);
  run->stop.signal();
  if (const auto late = wait_for_callbacks(run->collector_ended, registry)) {
    return Error{Code::deadline_exceeded,
                 "stop the recorder: " + *late +
                     "; its thread and memory stay in use: stop again once it has returned",
                 0};
  }
  run->collector_thread.join();
  std::vector<std::string> never_recorded = unrecorded_metrics();
  {
    const std::lock_guard shown_lock(shown_mutex);
    unrecorded = std::move(never_recorded);
  }
  duration_ns.store(elapsed_ns(), std::memory_order_release);
  run->writer_thread.join();
  run->teller->stop();  // it looks once more: all rows and errors are counted now
  running.store(false, std::memory_order_release);
  show(nullptr);
  const std::unique_ptr<Ring> ring = std::move(run->ring);
  const std::optional<Error> thrown = run->writer.error();
  run.reset();
  const ProfilerStats final = stats();
  Result<void> closed = call_foreign("the sink", options.sink.get(),
                                     [this, &final] { return options.sink->close(final); });
  closed = end_ring(ring->memory(), std::move(closed), *options.sink);
  if (closed && thrown) {
    closed = *thrown;
  }
  options.sink->in_use_.store(false, std::memory_order_release);
  callback_errors->finish();
  return with_losses(std::move(closed), final, sink_error.refusal(), callback_errors->get());
}

Profiler::Profiler(const Registry& registry, ProfilerOptions options)
    : state_(std::make_unique<State>(registry, std::move(options))) {}

Profiler::~Profiler() {
  const Result<void> stopped = state_->stop();
  if (!stopped && !state_->is_forked_copy()) {
    TroubleTeller(*this, state_->options.on_trouble, state_->options.sink.get())
        .tell({.text = stopped.error().message, .what = Trouble::What::stop_failed});
    if (state_->run) {
      state_->run->teller->stop();  // it refers to this object
    }
  }
  // Keep the state of a forked copy: its threads do not exist and cannot be joined, and the parent
  // finishes the files. Also keep the state if the collector's thread is still in a callback: it
  // uses the memory when the callback returns.
  if (state_->is_forked_copy() || state_->run) {
    static_cast<void>(state_.release());
  }
}

Result<void> Profiler::start() {
  return state_->start(*this);
}
Result<void> Profiler::stop() {
  return state_->stop();
}

bool Profiler::running() const {
  return state_->running.load(std::memory_order_acquire) && !state_->is_forked_copy();
}
bool Profiler::runs_in_parent() const {
  return state_->running.load(std::memory_order_acquire) && state_->is_forked_copy();
}
ProfilerStats Profiler::stats() const {
  return state_->stats();
}
std::uint64_t Profiler::now_ns() const {
  return state_->elapsed_ns();
}

std::vector<std::string> Profiler::warnings() const {
  std::vector<std::string> warnings;
  {
    const std::lock_guard lock(state_->shown_mutex);
    warnings = state_->warnings;
  }
  const std::uint64_t thousandths = state_->counts->collected.realtime_given_up.get();
  if (thousandths != 0) {
    const auto percent = [](double share) { return std::to_string(std::lround(100 * share)); };
    warnings.push_back("the collector gave its real-time priority up: it used " +
                       percent(static_cast<double>(thousandths) / 1000) +
                       " % of a CPU over a second, and " +
                       percent(state_->options.realtime_max_share) +
                       " % are allowed (ask for fewer metrics or a longer interval)");
  }
  for (const CallbackError& error : callback_errors()) {
    warnings.push_back(text_of(error));
  }
  if (const std::vector<std::string> names = unrecorded_metrics(); !names.empty()) {
    warnings.push_back(text_of_unrecorded(names));
  }
  if (std::string lost = lost_rows().text; !lost.empty()) {
    warnings.push_back(std::move(lost));
  }
  const std::uint64_t left_out = state_->is_forked_copy() ? 0 : state_->scopes->left_out();
  if (left_out != 0) {
    warnings.push_back(human::with_commas(left_out) + (left_out == 1 ? " scope" : " scopes") +
                       " had no room in the trees of add_scopes(): give kymo::ScopeTree a higher "
                       "limit");
  }
  return warnings;
}

std::vector<CallbackError> Profiler::callback_errors() const {
  if (state_->is_forked_copy()) {  // the mutex may have been held when the process forked
    return {};
  }
  std::shared_ptr<const CallbackErrors> errors;
  {
    const std::lock_guard lock(state_->shown_mutex);
    errors = state_->callback_errors;
  }
  return errors == nullptr ? std::vector<CallbackError>() : errors->get();
}

RunningCallback Profiler::running_callback() const {
  return state_->running_callback();
}

std::vector<std::string> Profiler::unrecorded_metrics() const {
  return state_->unrecorded_metrics();
}

std::string Profiler::last_sink_error() const {
  return running() ? state_->sink_error.latest() : std::string();
}

LostRows Profiler::lost_rows() const {
  return state_->is_forked_copy() ? LostRows() : state_->sink_error.lost();
}

std::vector<std::uint64_t> Profiler::newest_rows(std::size_t most) const {
  if (state_->is_forked_copy()) {  // the mutex may have been held when the process forked
    return {};
  }
  std::shared_ptr<const RingMemory> ring;
  {
    const std::lock_guard lock(state_->shown_mutex);
    ring = state_->shown;
  }
  return ring == nullptr ? std::vector<std::uint64_t>() : peek_rows(*ring, most);
}

void Profiler::add_scopes(const ScopeTree& tree) {
  if (!state_->is_forked_copy()) {  // the mutex may have been held when the process forked
    state_->scopes->add(tree);
  }
}

std::size_t Profiler::ring_bytes() const {
  if (const std::size_t taken = state_->ring_bytes.load(std::memory_order_relaxed); taken != 0) {
    return taken;
  }
  const Result<std::unique_ptr<Sampler>> sampler =
      state_->registry.sampler(state_->options.metrics);
  return !sampler ? 0
                  : RingMemory::bytes_of({state_->options.slots, state_->options.rows,
                                          (*sampler)->columns().size() + 1});
}

const RecorderCounts& Profiler::counts() const {
  return *state_->counts;
}

Result<void> register_profiler_metrics(Registry& registry, const Profiler& profiler) {
  for (const RecorderMetric& own : recorder_metrics()) {
    Result<void> registered = registry.callback(
        own.metric, [counts = profiler.state_->counts, read = own.read] { return read(*counts); });
    if (!registered) {
      return registered;
    }
  }
  return {};
}

}  // namespace kymo
