// Measures a sample of 64 counters in a program with many threads. Each thread that has added has
// cells of its own, and a sample sums the cells of all threads. The cells stay as long as the
// process, so each number of threads is measured in a process of its own (--benchmark_filter). The
// rows are checked.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "kymo/registry.h"

namespace {

constexpr int kCounters = 64;

void sample_of_threads(benchmark::State& state) {
  const std::int64_t count = state.range(0);
  kymo::Registry registry;
  std::vector<kymo::Counter> counters;
  for (int i = 0; i < kCounters; ++i) {
    counters.push_back(
        registry
            .counter({"c" + std::to_string(i), "Adds", kymo::Kind::counter, kymo::Unit::count, {}})
            .value());
  }
  std::latch added(count);
  std::latch done(1);
  std::vector<std::thread> threads;
  for (std::int64_t i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      for (const kymo::Counter& counter : counters) counter.add();
      added.count_down();
      done.wait();
    });
  }
  added.wait();
  const auto sampler = registry.sampler({}).value();
  std::vector<std::uint64_t> row(counters.size());
  for (auto _ : state) {
    sampler->read(row.data());
    benchmark::DoNotOptimize(row.data());
  }
  if (row.front() != static_cast<std::uint64_t>(count) || row.back() != row.front()) {
    state.SkipWithError("a value is wrong");
  }
  done.count_down();
  for (std::thread& thread : threads) thread.join();
}

BENCHMARK(sample_of_threads)->Arg(1)->Arg(16)->Arg(64)->Arg(256);

}  // namespace

BENCHMARK_MAIN();
