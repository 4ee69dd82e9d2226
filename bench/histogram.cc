// Measures Histogram::record against prometheus-cpp's Histogram with the same bounds: with one
// thread, and with two threads that record into the same histogram. It is linked with the shared
// libkymo, like a user's program. The counts are checked after each run.
#include <benchmark/benchmark.h>
#include <prometheus/histogram.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "kymo/registry.h"

namespace {

constexpr kymo::HistogramBuckets kBuckets{1, 1U << 20U, 1};

// Values of all sizes. The sequence is the same for all rivals.
std::uint64_t next(std::uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return state >> (44 + (state >> 59U) % 20);
}

kymo::Registry& registry() {
  static kymo::Registry instance;
  return instance;
}

kymo::Histogram shared_histogram() {
  static kymo::Histogram histogram =
      registry()
          .histogram({"wait_us", "Waits", kymo::Kind::counter, kymo::Unit::microseconds, {}},
                     kBuckets)
          .value();
  return histogram;
}

std::uint64_t kymo_count() {
  std::vector<std::uint64_t> row(registry().columns().size());
  registry().sampler({}).value()->read(row.data());
  const std::uint64_t buckets = std::accumulate(row.begin(), row.end() - 2, std::uint64_t{0});
  return buckets == row.back() ? buckets : 0;
}

prometheus::Histogram& shared_prometheus() {
  static prometheus::Histogram histogram([] {
    std::vector<double> bounds;
    const kymo::detail::BucketIndex index(kBuckets);
    for (std::uint32_t i = 0; i < index.last(); ++i) {
      bounds.push_back(static_cast<double>(index.bound(i)));
    }
    return bounds;
  }());
  return histogram;
}

template <class Count>
void check(benchmark::State& state, std::uint64_t before, Count count) {
  if (state.thread_index() == 0) {
    const auto expected = static_cast<std::uint64_t>(state.iterations()) *
                          static_cast<std::uint64_t>(state.threads());
    if (count() - before != expected) {
      state.SkipWithError("the count is wrong");
    }
  }
}

void empty_loop(benchmark::State& state) {
  std::uint64_t random = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(next(random));
  }
}

void kymo_histogram(benchmark::State& state) {
  const kymo::Histogram histogram = shared_histogram();
  const std::uint64_t before = state.thread_index() == 0 ? kymo_count() : 0;
  std::uint64_t random = 1;
  for (auto _ : state) {
    histogram.record(next(random));
    benchmark::ClobberMemory();
  }
  check(state, before, kymo_count);
}

void prometheus_histogram(benchmark::State& state) {
  const auto count = [] { return shared_prometheus().Collect().histogram.sample_count; };
  const std::uint64_t before = state.thread_index() == 0 ? count() : 0;
  std::uint64_t random = 1;
  for (auto _ : state) {
    shared_prometheus().Observe(static_cast<double>(next(random)));
  }
  check(state, before, count);
}

BENCHMARK(empty_loop)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(kymo_histogram)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(prometheus_histogram)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
