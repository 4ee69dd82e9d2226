// Measures one sample: reading 4, 16 and 64 counters into a row, alone and while another thread
// keeps adding to all of them; and calling as many callbacks. For comparison: loads of as many
// std::atomic, which is the least that reading shared values can cost, and prometheus-cpp's Collect
// of as many counters. The rows are checked: no value may decrease, and the last one must be the sum
// that was added.
#include <benchmark/benchmark.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "kymo/registry.h"

namespace {

std::vector<kymo::Counter> register_counters(kymo::Registry& registry, std::int64_t count) {
  std::vector<kymo::Counter> counters;
  for (std::int64_t i = 0; i < count; ++i) {
    counters.push_back(
        registry
            .counter({"c" + std::to_string(i), "Adds", kymo::Kind::counter, kymo::Unit::count, {}})
            .value());
  }
  return counters;
}

void sample_into(benchmark::State& state, const kymo::Sampler& sampler) {
  std::vector<std::uint64_t> row(sampler.columns().size());
  std::uint64_t last = 0;
  for (auto _ : state) {
    sampler.read(row.data());
    if (row.back() < last) {
      state.SkipWithError("a counter fell");
    }
    last = row.back();
  }
}

void sample(benchmark::State& state) {
  kymo::Registry registry;
  const std::vector<kymo::Counter> counters = register_counters(registry, state.range(0));
  for (const kymo::Counter& counter : counters) {
    counter.add(7);
  }
  const auto sampler = registry.sampler({}).value();
  sample_into(state, *sampler);
  std::vector<std::uint64_t> row(counters.size());
  sampler->read(row.data());
  if (row.front() != 7 || row.back() != 7) {
    state.SkipWithError("a value is wrong");
  }
}

void sample_beside_a_writer(benchmark::State& state) {
  kymo::Registry registry;
  const std::vector<kymo::Counter> counters = register_counters(registry, state.range(0));
  std::atomic<bool> done{false};
  std::uint64_t rounds = 0;
  std::thread writer([&] {
    while (!done.load(std::memory_order_relaxed)) {
      for (const kymo::Counter& counter : counters) {
        counter.add();
      }
      ++rounds;
    }
  });
  const auto sampler = registry.sampler({}).value();
  sample_into(state, *sampler);
  done.store(true);
  writer.join();
  std::vector<std::uint64_t> row(counters.size());
  sampler->read(row.data());
  if (row.front() != rounds || row.back() != rounds) {
    state.SkipWithError("adds were lost");
  }
}

// Gauges that callbacks read, as of a queue whose length the program keeps anyway.
void sample_of_callbacks(benchmark::State& state) {
  kymo::Registry registry;
  std::vector<std::atomic<std::uint64_t>> values(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i].store(7);
    static_cast<void>(registry.callback(
        {"g" + std::to_string(i), "Reads", kymo::Kind::gauge, kymo::Unit::count, {}},
        [&value = values[i]] { return value.load(std::memory_order_relaxed); }));
  }
  sample_into(state, *registry.sampler({}).value());
}

void atomic_loads(benchmark::State& state) {
  std::vector<std::atomic<std::uint64_t>> counters(static_cast<std::size_t>(state.range(0)));
  for (auto& counter : counters) {
    counter.store(7);
  }
  std::vector<std::uint64_t> row(counters.size());
  for (auto _ : state) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = counters[i].load(std::memory_order_relaxed);
    }
    benchmark::DoNotOptimize(row.data());
    benchmark::ClobberMemory();
  }
  if (row.front() != 7 || row.back() != 7) {
    state.SkipWithError("a value is wrong");
  }
}

void prometheus_collect(benchmark::State& state) {
  prometheus::Registry registry;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    prometheus::BuildCounter()
        .Name("c" + std::to_string(i))
        .Register(registry)
        .Add({})
        .Increment(7);
  }
  std::size_t families = 0;
  double last = 0;
  for (auto _ : state) {
    const std::vector<prometheus::MetricFamily> collected = registry.Collect();
    families = collected.size();
    last = collected.back().metric.back().counter.value;
  }
  if (families != static_cast<std::size_t>(state.range(0)) || last != 7) {
    state.SkipWithError("a value is wrong");
  }
}

BENCHMARK(atomic_loads)->Arg(4)->Arg(16)->Arg(64);
BENCHMARK(prometheus_collect)->Arg(4)->Arg(16)->Arg(64);
BENCHMARK(sample)->Arg(4)->Arg(16)->Arg(64);
BENCHMARK(sample_of_callbacks)->Arg(4)->Arg(16)->Arg(64);
BENCHMARK(sample_beside_a_writer)->Arg(4)->Arg(16)->Arg(64);

}  // namespace

BENCHMARK_MAIN();
