// What a scope costs: nobody listening, and recorded into a tree; opening alone, and opening with
// closing. Beside them a look at the clock, of which an open and a close each need one. Linked with
// the shared libkymo, as a user's program is.
//
// What was recorded is counted after each run.
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

// Scopes in a tree: as a request has them, and nearly as many as a tree takes.
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

// Batches of scopes in fresh trees, the memory for each 64 of them included; `work` returns the
// seconds that it timed.
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

// Each within the one before it, so that none need be closed meanwhile.
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
