// Measures the whole recorder at a given rate and number of counters: how many of the due ticks it
// takes on time, how much CPU time it uses, and whether its file is correct. For comparison, two
// loops run in the same program: one that only reads the clock and notes its deadlines (the limit
// of the machine), and one that sleeps (clock_nanosleep).
//
//   bench_recorder --rate 1000000 --counters 16 --seconds 10 --output /var/tmp/run.tsv [--adder]
//                  [--precise] [--priority 50] [--cpu 0] [--changing 4] [--histograms] [--json]
//
// With --changing N, the first N counters grow in every row, and the others when the adding thread
// adds. With --histograms, there are two more metrics: the histograms of times and of sizes that
// docs/library.md registers. The adding thread records values of all sizes. An output with the ending .tsv.zst is compressed.
//
// "on time" is the share of the due ticks whose sample began at most half an interval after its
// deadline. The file is read again: it must have as many lines as rows were reported, no value may
// decrease, and the last row must have the sums that were added.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "kymo/profiler.h"
#include "lens/analysis/tsv_reader.h"
#include "recorder/sampling/collect/timing_histogram.h"

namespace {

using kymo::monotonic_ns;

struct Settings {
  double rate = 1'000'000;
  int counters = 16;
  int changing = 0;
  double seconds = 10;
  std::string output;
  bool adder = false;
  bool histograms = false;
  bool precise = false;
  int priority = 0;
  int cpu = -1;
  bool json = false;

  [[nodiscard]] std::uint64_t interval_ns() const { return static_cast<std::uint64_t>(1e9 / rate); }
};

// The CPU time of this process or thread, in seconds.
double cpu_seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(kymo::to_nanos(t)) * 1e-9;
}

// The steal time of the whole machine, in seconds: CPU time that the host took away.
double steal_seconds() {
  std::ifstream stat("/proc/stat");
  std::string word;
  stat >> word;
  std::uint64_t ticks = 0;
  for (int field = 0; field < 8; ++field) {
    stat >> ticks;
  }
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct Timing {
  double on_time = 0;  // as a share of the due ticks
  std::uint64_t p50 = 0;
  std::uint64_t p99 = 0;
  std::uint64_t p999 = 0;
  double cores = 0;
};

void take_place(const Settings& settings) {
  if (settings.priority > 0) {
    sched_param parameters{};
    parameters.sched_priority = settings.priority;
    ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &parameters);
  }
  if (settings.cpu >= 0) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<std::size_t>(settings.cpu), &cpus);
    ::pthread_setaffinity_np(::pthread_self(), sizeof cpus, &cpus);
  }
}

// Waits for each deadline with `wait`, and notes how late it was. Like the recorder, it skips ticks
// that are over before it handles them.
template <class Wait>
Timing run_loop(const Settings& settings, double seconds, Wait wait) {
  auto errors = std::make_unique<kymo::TimingHistogram>();
  Timing timing;
  std::thread([&] {
    take_place(settings);
    ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    const std::uint64_t interval = settings.interval_ns();
    const std::uint64_t ticks = static_cast<std::uint64_t>(seconds * 1e9) / interval;
    const std::uint64_t start = monotonic_ns() + interval;
    const double cpu = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    std::uint64_t on_time = 0;
    for (std::uint64_t tick = 0; tick < ticks;) {
      const std::uint64_t now = wait(start + tick * interval);
      tick = std::max(tick, (now - start) / interval);
      const std::uint64_t error = now - (start + tick * interval);
      errors->record(error);
      on_time += 2 * error <= interval ? 1 : 0;
      ++tick;
    }
    timing.cores = (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu) / seconds;
    timing.on_time = static_cast<double>(on_time) / static_cast<double>(ticks);
  }).join();
  timing.p50 = errors->percentile(0.5);
  timing.p99 = errors->percentile(0.99);
  timing.p999 = errors->percentile(0.999);
  return timing;
}

std::uint64_t spin(std::uint64_t deadline) {
  std::uint64_t now = monotonic_ns();
  while (now < deadline) {
    now = monotonic_ns();
  }
  return now;
}

std::uint64_t sleep(std::uint64_t deadline) {
  const timespec until{static_cast<time_t>(deadline / kymo::kNanosPerSecond),
                       static_cast<long>(deadline % kymo::kNanosPerSecond)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  return monotonic_ns();
}

struct Recorded {
  Timing timing;
  kymo::ProfilerStats stats;
  std::vector<std::string> warnings;
  std::size_t columns = 0;
  std::uint64_t last_value = 0;  // of the last counter, at the stop of the recorder
};

// The histograms of docs/library.md; none unless they are asked for.
std::vector<kymo::Histogram> make_histograms(const Settings& settings, kymo::Registry& registry) {
  if (!settings.histograms) return {};
  using std::chrono::milliseconds;
  return {registry
              .histogram({.name = "reply_us", .help = "Times", .unit = kymo::Unit::microseconds},
                         kymo::buckets_in_us(milliseconds(1), milliseconds(500)))
              .value(),
          registry.histogram({.name = "reply_bytes", .help = "Sizes", .unit = kymo::Unit::bytes})
              .value()};
}

// Records a value of another size each time.
void record_next(const std::vector<kymo::Histogram>& histograms, std::uint64_t& value) {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 20U;
  value = value > kLargest ? 50 : value + value / 3;
  for (const kymo::Histogram& histogram : histograms) {
    histogram.record(value);
  }
}

Recorded record(const Settings& settings) {
  kymo::Registry registry;
  std::vector<kymo::Counter> counters;
  std::uint64_t value = 100'000;
  std::vector<std::uint64_t> growing(static_cast<std::size_t>(settings.changing), 123'456'789);
  for (std::size_t i = 0; i < growing.size(); ++i) {
    const kymo::Result<void> added = registry.callback(
        {"g" + std::to_string(i), "Grows", kymo::Kind::counter, kymo::Unit::count, {}},
        [at = &growing[i], step = i + 1] { return *at += step; });
    if (!added) {
      std::fprintf(stderr, "bench_recorder: %s\n", added.error().message.c_str());
      std::exit(1);
    }
  }
  const std::vector<kymo::Histogram> histograms = make_histograms(settings, registry);
  for (int i = settings.changing; i < settings.counters; ++i) {
    counters.push_back(
        registry
            .counter({"c" + std::to_string(i), "Adds", kymo::Kind::counter, kymo::Unit::count, {}})
            .value());
    counters.back().add(value);  // makes values of six to twelve digits
    value = value >= 10'000'000'000 ? 100'000 : value * 10;
  }
  kymo::ProfilerOptions options;
  options.sink = kymo::make_tsv_sink(settings.output);
  options.interval = std::chrono::nanoseconds(settings.interval_ns());
  options.pace = settings.precise ? kymo::Pace::precise : kymo::Pace::thrifty;
  options.realtime_priority = settings.priority;
  options.cpu = settings.cpu;
  kymo::Profiler profiler(registry, options);
  std::atomic<bool> done{false};
  const double cpu = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
  double adder_cpu = 0;
  if (const kymo::Result<void> started = profiler.start(); !started) {
    std::fprintf(stderr, "bench_recorder: %s\n", started.error().message.c_str());
    std::exit(1);
  }
  std::thread adder([&] {
    std::uint64_t size = 50;
    while (!done.load(std::memory_order_relaxed)) {
      for (const kymo::Counter& counter : counters) {
        counter.add();
      }
      record_next(histograms, size);
      if (!settings.adder) {  // stands for a program that counts only now and then
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    adder_cpu = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  });
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
  done.store(true);
  adder.join();
  std::uint64_t last_value = 0;
  registry.sampler({"c" + std::to_string(settings.counters - 1)}).value()->read(&last_value);
  // Ticks that were missed because the ring was full are a result here, and not a failure.
  if (const kymo::Result<void> stopped = profiler.stop();
      !stopped && stopped.error().code != kymo::Code::data_loss) {
    std::fprintf(stderr, "bench_recorder: %s\n", stopped.error().message.c_str());
    std::exit(1);
  }
  Recorded recorded;
  recorded.stats = profiler.stats();
  recorded.warnings = profiler.warnings();
  recorded.columns = registry.columns().size();
  recorded.last_value = last_value;
  recorded.timing.cores =
      (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu - adder_cpu) / settings.seconds;
  recorded.timing.on_time = static_cast<double>(recorded.stats.rows_on_time) /
                            static_cast<double>(recorded.stats.ticks_due);
  recorded.timing.p50 = recorded.stats.timing_error_p50_ns;
  recorded.timing.p99 = recorded.stats.timing_error_p99_ns;
  recorded.timing.p999 = recorded.stats.timing_error_p999_ns;
  return recorded;
}

// Describes what is wrong with the rows of a block, which follow the row `last`. Empty if nothing
// is.
std::string check_block(const kymo::analysis::RowBlock& block, std::vector<std::uint64_t>& last) {
  for (std::size_t column = 0; column < last.size(); ++column) {
    std::uint64_t before = last[column];
    for (const std::uint64_t value : block.column(column)) {
      if (column == 0 && value <= before && before != 0) return "time stands still";
      if (value < before) return "a counter fell";
      before = value;
    }
    last[column] = before;
  }
  return {};
}

// Reads the file again. Returns what is wrong, or empty if it is correct.
std::string check_file(const Settings& settings, const Recorded& recorded) {
  const std::uint64_t written = recorded.stats.rows_written;
  if (written + recorded.stats.missed() != recorded.stats.ticks_due) {
    return "rows + missed is not what was due";
  }
  auto reader = kymo::analysis::TsvReader::open(settings.output);
  if (!reader) return reader.error().message;
  kymo::analysis::RowBlock block = reader->make_block();
  std::vector<std::uint64_t> last(recorded.columns + 1);
  if (reader->columns().size() + 1 != last.size()) return "it has not the columns it should";
  std::uint64_t rows = 0;
  while (true) {
    const kymo::Result<bool> more = reader->next(block);
    if (!more) return more.error().message;
    if (!*more) break;
    if (std::string fault = check_block(block, last); !fault.empty()) {
      return fault + " behind row " + std::to_string(rows);
    }
    rows += block.rows();
  }
  if (!reader->left_out().empty()) return reader->left_out().sentences().front();
  if (rows != written) {
    return std::to_string(rows) + " rows in the file, " + std::to_string(written) + " reported";
  }
  return last.back() == recorded.last_value ? "" : "the last row is not what was added";
}

void print_row(const char* name, const Timing& t) {
  std::printf("%-14s %9.5f %9lu %9lu %9lu %8.3f\n", name, t.on_time, t.p50, t.p99, t.p999, t.cores);
}

nlohmann::json json_of(const Timing& t) {
  return {{"on_time", t.on_time},
          {"p50_ns", t.p50},
          {"p99_ns", t.p99},
          {"p999_ns", t.p999},
          {"cores", t.cores}};
}

int run(const Settings& settings) {
  // Seconds for each rival, before and after the recorder.
  const double beside = std::max(1.0, settings.seconds / 5);
  const double steal = steal_seconds();
  const Timing bare_before = run_loop(settings, beside, spin);
  const Recorded recorded = record(settings);
  const Timing bare_after = run_loop(settings, beside, spin);
  const Timing sleeping = run_loop(settings, beside, sleep);
  const double stolen = steal_seconds() - steal;
  const std::string fault = check_file(settings, recorded);
  const double limit = (bare_before.on_time + bare_after.on_time) / 2;
  const kymo::ProfilerStats& s = recorded.stats;
  if (settings.json) {
    const nlohmann::json all = {{"rate", settings.rate},
                                {"counters", settings.counters},
                                {"changing", settings.changing},
                                {"columns", recorded.columns},
                                {"seconds", settings.seconds},
                                {"adder", settings.adder},
                                {"kymo", json_of(recorded.timing)},
                                {"bare_before", json_of(bare_before)},
                                {"bare_after", json_of(bare_after)},
                                {"sleeping", json_of(sleeping)},
                                {"of_limit", recorded.timing.on_time / limit},
                                {"ticks_due", s.ticks_due},
                                {"rows_written", s.rows_written},
                                {"missed_late", s.missed_late},
                                {"missed_ring_full", s.missed_ring_full},
                                {"missed_sink_error", s.missed_sink_error},
                                {"bytes", s.bytes_written},
                                {"steal_s", stolen},
                                {"fault", fault}};
    std::printf("%s\n", all.dump().c_str());
  } else {
    for (const std::string& warning : recorded.warnings) {
      std::printf("warning: %s\n", warning.c_str());
    }
    std::printf("%.0f/s, %d counters, %.0f s%s; steal %.2f s\n", settings.rate, settings.counters,
                settings.seconds, settings.adder ? ", beside a thread that adds" : "", stolen);
    std::printf("%-14s %9s %9s %9s %9s %8s\n", "", "on time", "p50 ns", "p99 ns", "p99.9 ns",
                "cores");
    print_row("bare loop", bare_before);
    print_row("kymo", recorded.timing);
    print_row("bare loop", bare_after);
    print_row("sleeping loop", sleeping);
    std::printf(
        "%.4f of the limit; %lu due, %lu written (%.1f MB/s), %lu late, %lu ring full, "
        "%lu sink error; %s\n",
        recorded.timing.on_time / limit, s.ticks_due, s.rows_written,
        static_cast<double>(s.bytes_written) / settings.seconds / 1e6, s.missed_late,
        s.missed_ring_full, s.missed_sink_error,
        fault.empty() ? "file checked" : ("FILE WRONG: " + fault).c_str());
  }
  return fault.empty() ? 0 : 1;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what cannot be parsed or removed ends the benchmark
int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Compare the recorder with the limit of the machine");
  app.add_option("--rate", settings.rate, "samples per second")->check(CLI::Range(0.1, 1e7));
  app.add_option("--counters", settings.counters)->check(CLI::Range(1, 1000));
  app.add_option("--changing", settings.changing, "number of counters that grow in every row")
      ->check(CLI::Range(0, 999));
  app.add_option("--seconds", settings.seconds)->check(CLI::Range(0.1, 3600.0));
  app.add_option("--output", settings.output, "path of a temporary recording");
  app.add_flag("--adder", settings.adder, "let a thread add to all counters");
  app.add_flag("--histograms", settings.histograms, "record two histograms, too");
  app.add_flag("--precise", settings.precise);
  app.add_option("--priority", settings.priority,
                 "SCHED_FIFO priority of the collector and of the loops");
  app.add_option("--cpu", settings.cpu, "CPU to which the collector and the loops are pinned");
  app.add_flag("--json", settings.json);
  CLI11_PARSE(app, argc, argv);
  if (settings.changing >= settings.counters) {
    std::fprintf(stderr, "bench_recorder: --changing %d: it must be smaller than --counters %d\n",
                 settings.changing, settings.counters);
    return 2;
  }
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("kymo-bench-" + std::to_string(::getpid())))
          .string();
  const bool own_folder = settings.output.empty();
  if (own_folder) {
    std::filesystem::create_directory(folder);
    settings.output = folder + "/run.tsv";
  }
  const int status = run(settings);
  const std::string name = settings.output.substr(0, settings.output.rfind(".tsv"));
  for (const char* ending : {".tsv", ".tsv.zst", ".gaps.tsv", ".gaps.tsv.zst", ".meta.json"}) {
    std::filesystem::remove(name + ending);
  }
  if (own_folder) {
    std::filesystem::remove(folder);
  }
  return status;
}
