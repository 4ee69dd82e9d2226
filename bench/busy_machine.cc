// Measures the recorder on a busy machine: how many ticks it misses, how late its samples are, and
// how much CPU time it uses. A bare loop that only waits for the same deadlines, with the same
// scheduling policy, is measured in the same run. The two take turns, a slice of time each, so that
// other load affects both.
//
//   bench_busy_machine --busy 4                                four busy loops beside them
//   bench_busy_machine --load 'make -C DIR clean all -j4'      a command, again and again
//   bench_busy_machine --busy 4 --priority 1                   SCHED_FIFO for both
//   bench_busy_machine --precise                               the precise pace; the loop spins
//                      [--rate 1000] [--counters 16] [--seconds 2] [--rounds 10]
//                      [--max-spin-share 0.15] [--json]
//
// A sleeping loop also asks for the short scheduling slice for which the recorder asks. Each
// recording is read again: it must have as many rows as were reported, and increasing times.
// Lateness is the median over the slices. Missed ticks and CPU time are sums.
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "kymo/profiler.h"
#include "recorder/sampling/collect/pacer.h"
#include "recorder/sampling/collect/thread_setup.h"
#include "recorder/sampling/collect/timing_histogram.h"

namespace {

using kymo::monotonic_ns;

struct Settings {
  double rate = 1000;
  int counters = 16;
  double seconds = 2;
  int rounds = 10;
  int busy = 0;
  std::string load;
  int priority = 0;
  bool precise = false;
  double max_spin_share = 0.15;
  bool json = false;

  [[nodiscard]] std::uint64_t interval_ns() const { return static_cast<std::uint64_t>(1e9 / rate); }
};

// The results of one of the two, over all of its slices.
struct Score {
  std::uint64_t due = 0;
  std::uint64_t missed = 0;
  std::uint64_t cpu_ns = 0;
  // The lateness of the samples of each slice: the 50th, 99th and 99.9th percentile.
  std::array<std::vector<std::uint64_t>, 3> lateness_ns;

  void add_lateness(const std::array<std::uint64_t, 3>& of_slice) {
    for (std::size_t i = 0; i < of_slice.size(); ++i) lateness_ns.at(i).push_back(of_slice.at(i));
  }
  // The median over the slices.
  [[nodiscard]] std::uint64_t lateness(std::size_t which) const {
    std::vector<std::uint64_t> slices = lateness_ns.at(which);
    const auto middle = slices.begin() + static_cast<std::ptrdiff_t>(slices.size() / 2);
    std::nth_element(slices.begin(), middle, slices.end());
    return *middle;
  }

  [[nodiscard]] double missed_share() const {
    return static_cast<double>(missed) / static_cast<double>(std::max<std::uint64_t>(1, due));
  }
};

std::uint64_t process_cpu_ns() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return kymo::to_nanos(used);
}

// Child processes that keep the machine busy as long as this object exists.
class Company {
 public:
  explicit Company(const Settings& settings) {
    for (int i = 0; i < settings.busy; ++i) {
      begin([] {
        for (std::atomic<std::uint64_t> turns{0};;) {
          turns.fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
    if (!settings.load.empty()) {
      begin([&settings] {
        if (::freopen("/dev/null", "w", stdout) == nullptr) return;
        while (::system(settings.load.c_str()) == 0) {
        }
        std::fprintf(stderr, "bench_busy_machine: the load failed: %s\n", settings.load.c_str());
      });
    }
  }
  ~Company() {
    for (const pid_t child : children_) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;

 private:
  template <class Work>
  void begin(Work work) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      work();
      ::_exit(1);
    }
    ::setpgid(child, child);
    children_.push_back(child);
  }
  std::vector<pid_t> children_;
};

std::uint64_t wait_bare(const Settings& settings, std::uint64_t deadline_ns) {
  if (!settings.precise) {
    const timespec until{static_cast<time_t>(deadline_ns / kymo::kNanosPerSecond),
                         static_cast<long>(deadline_ns % kymo::kNanosPerSecond)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    return monotonic_ns();
  }
  std::uint64_t now_ns = monotonic_ns();
  while (now_ns < deadline_ns) {
    now_ns = monotonic_ns();
  }
  return now_ns;
}

// Runs a slice of the bare loop. Ticks that are over before the loop handles them are missed.
void run_loop(const Settings& settings, Score& score) {
  const std::uint64_t cpu_ns = process_cpu_ns();
  const auto lateness = std::make_unique<kymo::TimingHistogram>();
  std::thread([&] {
    std::vector<std::string> refused;
    kymo::set_up_this_thread({settings.priority, 0, -1}, &refused);
    kymo::Pacer::reduce_wakeup_latency();
    const std::uint64_t interval_ns = settings.interval_ns();
    const auto ticks = static_cast<std::uint64_t>(settings.seconds * settings.rate);
    const std::uint64_t start_ns = monotonic_ns() + interval_ns;
    for (std::uint64_t tick = 0; tick < ticks;) {
      const std::uint64_t now_ns = wait_bare(settings, start_ns + tick * interval_ns);
      const std::uint64_t newest = (now_ns - start_ns) / interval_ns;
      score.missed += std::min(newest, ticks) - tick;
      lateness->record(now_ns - (start_ns + newest * interval_ns));
      tick = newest + 1;
    }
    score.due += ticks;
  }).join();
  score.cpu_ns += process_cpu_ns() - cpu_ns;
  score.add_lateness(
      {lateness->percentile(0.5), lateness->percentile(0.99), lateness->percentile(0.999)});
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "bench_busy_machine: %s\n", why.c_str());
  std::exit(1);
}

// Checks that the file has as many rows as were reported, and increasing times.
void check_file(const std::string& path, std::uint64_t written) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // the names of the columns
  std::uint64_t rows = 0;
  std::uint64_t last = 0;
  while (std::getline(file, line)) {
    const std::uint64_t time_ns = std::strtoull(line.c_str(), nullptr, 10);
    if (rows++ != 0 && time_ns <= last) give_up("time stands still in " + path);
    last = time_ns;
  }
  if (rows != written) {
    give_up(path + " has " + std::to_string(rows) + " rows, " + std::to_string(written) +
            " were reported");
  }
}

// Runs a slice of the recorder.
kymo::ProfilerStats run_recorder(const Settings& settings, const std::string& path, Score& score) {
  kymo::Registry registry;
  std::vector<kymo::Counter> counters;
  for (int i = 0; i < settings.counters; ++i) {
    counters.push_back(
        registry
            .counter({"c" + std::to_string(i), "Adds", kymo::Kind::counter, kymo::Unit::count, {}})
            .value());
  }
  kymo::ProfilerOptions options;
  options.sink = kymo::make_tsv_sink(path);
  options.interval = std::chrono::nanoseconds(settings.interval_ns());
  options.pace = settings.precise ? kymo::Pace::precise : kymo::Pace::thrifty;
  options.max_spin_share = settings.max_spin_share;
  options.realtime_priority = settings.priority;
  const std::uint64_t cpu_ns = process_cpu_ns();
  kymo::Profiler profiler(registry, options);
  if (const auto started = profiler.start(); !started) give_up(started.error().message);
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
  // Ticks that were missed because the ring was full are counted below.
  if (const auto stopped = profiler.stop();
      !stopped && stopped.error().code != kymo::Code::data_loss) {
    give_up(stopped.error().message);
  }
  score.cpu_ns += process_cpu_ns() - cpu_ns;
  const kymo::ProfilerStats stats = profiler.stats();
  score.due += stats.ticks_due;
  score.missed += stats.missed();
  score.add_lateness(
      {stats.timing_error_p50_ns, stats.timing_error_p99_ns, stats.timing_error_p999_ns});
  check_file(path, stats.rows_written);
  return stats;
}

nlohmann::json json_of(const Score& score, double seconds) {
  return {{"due", score.due},
          {"missed", score.missed},
          {"p50_ns", score.lateness(0)},
          {"p99_ns", score.lateness(1)},
          {"p999_ns", score.lateness(2)},
          {"cores", static_cast<double>(score.cpu_ns) * 1e-9 / seconds}};
}

// Null if the divisor is 0.
nlohmann::json ratio(double ours, double theirs) {
  return theirs > 0 ? nlohmann::json(ours / theirs) : nlohmann::json();
}

void print_row(const char* name, const Score& score, double seconds) {
  std::printf("%-14s %9lu %8lu %9.5f %9lu %9lu %9lu %8.4f\n", name, score.due, score.missed,
              score.missed_share(), score.lateness(0), score.lateness(1), score.lateness(2),
              static_cast<double>(score.cpu_ns) * 1e-9 / seconds);
}

std::string shown(const nlohmann::json& number) {
  if (number.is_null()) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", number.get<double>());
  return text.data();
}

struct Scores {
  Score loop;
  Score recorder;
  std::uint64_t spin_ns = 0;
  std::uint64_t wakeup_latency_ns = 0;  // the longest over the slices
};

void print(const Settings& settings, const Scores& scores) {
  const double seconds = settings.seconds * settings.rounds;
  const char* rival = settings.precise ? "spinning loop" : "sleeping loop";
  nlohmann::json all = {{"rate", settings.rate},
                        {"counters", settings.counters},
                        {"seconds", seconds},
                        {"priority", settings.priority},
                        {"precise", settings.precise},
                        {"busy", settings.busy},
                        {"load", settings.load},
                        {rival, json_of(scores.loop, seconds)},
                        {"kymo", json_of(scores.recorder, seconds)}};
  all["ratio"] = {{"missed", ratio(scores.recorder.missed_share(), scores.loop.missed_share())},
                  {"p50", ratio(static_cast<double>(scores.recorder.lateness(0)),
                                static_cast<double>(scores.loop.lateness(0)))},
                  {"p99", ratio(static_cast<double>(scores.recorder.lateness(1)),
                                static_cast<double>(scores.loop.lateness(1)))},
                  {"cpu", ratio(static_cast<double>(scores.recorder.cpu_ns),
                                static_cast<double>(scores.loop.cpu_ns))}};
  if (settings.precise) {
    all["spin_share"] = static_cast<double>(scores.spin_ns) * 1e-9 / seconds;
    all["needed_spin_share"] =
        static_cast<double>(scores.wakeup_latency_ns) / static_cast<double>(settings.interval_ns());
  }
  if (settings.json) {
    std::printf("%s\n", all.dump().c_str());
    return;
  }
  std::printf("%.0f/s, %d counters, %d rounds of %.1f s each, %s, beside %d busy loops%s%s\n",
              settings.rate, settings.counters, settings.rounds, settings.seconds,
              settings.priority > 0 ? "SCHED_FIFO" : "fair scheduler", settings.busy,
              settings.load.empty() ? "" : " and ", settings.load.c_str());
  std::printf("%-14s %9s %8s %9s %9s %9s %9s %8s\n", "", "due", "missed", "share", "p50 ns",
              "p99 ns", "p99.9 ns", "cores");
  print_row(rival, scores.loop, seconds);
  print_row("kymo", scores.recorder, seconds);
  std::printf("ratios: missed %s, p50 %s, p99 %s, CPU %s\n", shown(all["ratio"]["missed"]).c_str(),
              shown(all["ratio"]["p50"]).c_str(), shown(all["ratio"]["p99"]).c_str(),
              shown(all["ratio"]["cpu"]).c_str());
  if (settings.precise) {
    std::printf("spun %s of the time, allowed %.2f; %s would be needed\n",
                shown(all["spin_share"]).c_str(), settings.max_spin_share,
                shown(all["needed_spin_share"]).c_str());
  }
}

void run(const Settings& settings, const std::string& folder) {
  const Company company(settings);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // lets the load begin
  const auto scores = std::make_unique<Scores>();
  for (int round = 0; round < settings.rounds; ++round) {
    const auto recorder = [&] {
      const kymo::ProfilerStats stats =
          run_recorder(settings, folder + "/" + std::to_string(round) + ".tsv", scores->recorder);
      scores->spin_ns += stats.spin_ns;
      scores->wakeup_latency_ns = std::max(scores->wakeup_latency_ns, stats.wakeup_latency_ns);
    };
    if (round % 2 == 0) recorder();
    run_loop(settings, scores->loop);
    if (round % 2 == 1) recorder();
  }
  print(settings, *scores);
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what cannot be parsed or removed ends the benchmark
int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Compare the recorder with a bare loop on a busy machine, in turns");
  app.add_option("--rate", settings.rate, "samples per second")->check(CLI::Range(1.0, 1e6));
  app.add_option("--counters", settings.counters)->check(CLI::Range(1, 1000));
  app.add_option("--seconds", settings.seconds, "length of a slice")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--rounds", settings.rounds)->check(CLI::Range(1, 100'000));
  app.add_option("--busy", settings.busy, "number of busy loops")->check(CLI::Range(0, 1000));
  app.add_option("--load", settings.load, "command to run again and again as load");
  app.add_option("--priority", settings.priority,
                 "SCHED_FIFO priority of the recorder and of the loop");
  app.add_flag("--precise", settings.precise, "use the precise pace, and a loop that spins");
  app.add_option("--max-spin-share", settings.max_spin_share)->check(CLI::Range(0.0, 1.0));
  app.add_flag("--json", settings.json);
  CLI11_PARSE(app, argc, argv);
  std::string folder = (std::filesystem::temp_directory_path() / "kymo-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) give_up("cannot make a temporary folder");
  run(settings, folder);
  std::filesystem::remove_all(folder);
  return 0;
}
