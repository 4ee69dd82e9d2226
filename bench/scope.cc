// Measures a scope: without a listener, and recorded into a tree; only opening it, and opening and
// closing it. For comparison: a read of the clock, of which opening and closing each need one. It
// is linked with the shared libkymo, like a user's program.
//
// The number of recorded scopes is checked after each run.
#include "kymo/scope.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

namespace {

// The number of scopes in a tree: as in a request, and nearly the most that a tree can hold.
constexpr std::int64_t kFew = 60;
constexpr std::int64_t kMax = 4000;

void empty_loop(benchmark::State& state) {
  std::uint64_t n = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(++n);
  }
}

void clock_read(benchmark::State& state) {
  timespec now{};
  for (auto _ : state) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    benchmark::DoNotOptimize(now);
  }
}

void nobody_listens(benchmark::State& state) {
  for (auto _ : state) {
    const kymo::Scope scope("step", {.category = "work"});
    benchmark::DoNotOptimize(&scope);
  }
}

// Runs batches of scopes in new trees. The time includes the memory for each 64 of them. `work`
// returns the seconds that it measured.
template <class Work>
void in_batches(benchmark::State& state, Work work) {
  for (auto _ : state) {
    auto tree = std::make_unique<kymo::ScopeTree>(kymo::ScopeName("request"));
    const kymo::EnterScope here(*tree);
    state.SetIterationTime(work(static_cast<std::size_t>(state.range())));
    if (tree->records().size() != static_cast<std::size_t>(state.range()) + 1 ||
        tree->dropped() != 0) {
      state.SkipWithError("scopes were not recorded");
      return;
    }
  }
  const auto scopes = static_cast<double>(state.iterations()) * static_cast<double>(state.range());
  state.counters["per_scope"] =
      benchmark::Counter(scopes, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

template <class Work>
double seconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void open_and_close(benchmark::State& state) {
  in_batches(state, [](std::size_t count) {
    return seconds([count] {
      for (std::size_t i = 0; i < count; ++i) {
        const kymo::Scope scope("step", {.category = "work"});
      }
    });
  });
}

// Each scope is inside the one before it, so none has to be closed meanwhile.
void open_alone(benchmark::State& state) {
  in_batches(state, [](std::size_t count) {
    std::vector<std::optional<kymo::Scope>> scopes(count);
    const double took = seconds([&scopes] {
      for (auto& scope : scopes) {
        scope.emplace(kymo::ScopeName("step"), kymo::ScopeOptions{.category = "work"});
      }
    });
    while (!scopes.empty()) {
      scopes.pop_back();
    }
    return took;
  });
}

BENCHMARK(empty_loop);
BENCHMARK(clock_read);
BENCHMARK(nobody_listens);
BENCHMARK(open_alone)->Arg(kFew)->Arg(kMax)->UseManualTime();
BENCHMARK(open_and_close)->Arg(kFew)->Arg(kMax)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
