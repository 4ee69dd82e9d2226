// Measures Counter::add, against fetch_add of std::atomic, prometheus-cpp's Counter and a plain
// store: with one thread, and with two threads that add to the same counter. It is linked with the
// shared libkymo, like a user's program.
//
// "net" is the time minus that of the empty loop in the same run. The sums are checked after each
// run.
#include <benchmark/benchmark.h>
#include <prometheus/counter.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "kymo/registry.h"

namespace {

kymo::Registry& registry() {
  static kymo::Registry instance;
  return instance;
}

kymo::Counter shared_counter() {
  static kymo::Counter counter =
      registry().counter({"adds", "Adds", kymo::Kind::counter, kymo::Unit::count, {}}).value();
  return counter;
}

std::uint64_t kymo_sum() {
  std::vector<std::uint64_t> values(registry().columns().size());
  registry().sampler({}).value()->read(values.data());
  return values.at(0);
}

std::atomic<std::uint64_t> g_atomic{0};
prometheus::Counter g_prometheus;

// Fails the benchmark unless the sum has grown by what the threads added.
template <class Sum>
void check(benchmark::State& state, std::uint64_t before, Sum sum) {
  if (state.thread_index() == 0) {
    const auto expected = static_cast<std::uint64_t>(state.iterations()) *
                          static_cast<std::uint64_t>(state.threads());
    if (sum() - before != expected) {
      state.SkipWithError("the sum is wrong");
    }
  }
}

void empty_loop(benchmark::State& state) {
  std::uint64_t n = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(++n);
  }
}

void plain_store(benchmark::State& state) {
  std::uint64_t value = 0;
  for (auto _ : state) {
    *const_cast<volatile std::uint64_t*>(&value) = value + 1;
  }
  benchmark::DoNotOptimize(value);
}

void kymo_counter(benchmark::State& state) {
  const kymo::Counter counter = shared_counter();
  const std::uint64_t before = state.thread_index() == 0 ? kymo_sum() : 0;
  for (auto _ : state) {
    counter.add();
    benchmark::ClobberMemory();
  }
  check(state, before, kymo_sum);
}

// In a loop that adds to only one counter, each add waits for the one before. This measures how
// long the CPU takes from a store to a load of the same address. With two counters in turns, the
// adds overlap.
// iteration, they overlap.
void kymo_two_counters(benchmark::State& state) {
  const kymo::Counter counter = shared_counter();
  static kymo::Counter other =
      registry().counter({"more", "More", kymo::Kind::counter, kymo::Unit::count, {}}).value();
  const std::uint64_t before = state.thread_index() == 0 ? kymo_sum() : 0;
  for (auto _ : state) {
    counter.add();
    other.add();
    benchmark::ClobberMemory();
  }
  check(state, before, kymo_sum);
}

void std_atomic(benchmark::State& state) {
  const std::uint64_t before = g_atomic.load();
  for (auto _ : state) {
    g_atomic.fetch_add(1, std::memory_order_relaxed);
  }
  check(state, before, [] { return g_atomic.load(); });
}

void prometheus_counter(benchmark::State& state) {
  const auto before = static_cast<std::uint64_t>(g_prometheus.Value());
  for (auto _ : state) {
    g_prometheus.Increment();
  }
  check(state, before, [] { return static_cast<std::uint64_t>(g_prometheus.Value()); });
}

BENCHMARK(empty_loop)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(plain_store)->Threads(1)->UseRealTime();
BENCHMARK(kymo_counter)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(kymo_two_counters)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(std_atomic)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(prometheus_counter)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
