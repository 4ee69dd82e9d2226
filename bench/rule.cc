// Measures what a rule of the flight recorder costs for each row: a rate, which needs a window, and
// the growth from row to row, which needs only one value. At 1 kHz, every row is a mark of the
// window. At 1 MHz, only every hundredth row is one. The benchmark checks how often the rules
// fired.
#include "recorder/sampling/history/rule.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "recorder/metrics/metric_rules.h"

namespace {

void rule(benchmark::State& state, const std::string& text) {
  const auto interval_ns = static_cast<std::uint64_t>(state.range(0));
  kymo::Rule rule = kymo::Rule::parse(text).value();
  const std::vector<kymo::Column> columns =
      kymo::columns_of({"steps", "", kymo::Kind::counter, kymo::Unit::count, {}});
  if (!rule.bind(columns, std::chrono::nanoseconds(interval_ns))) {
    state.SkipWithError("the column is not found");
  }
  std::vector<std::uint64_t> row(2);
  std::uint64_t fired = 0;
  for (auto _ : state) {
    row[0] += interval_ns;
    row[1] += 3;
    fired += rule.fires_at(row) ? 1U : 0U;
  }
  if (fired != 0) {
    state.SkipWithError("the rule fired");
  }
}

void rate_rule(benchmark::State& state) {
  rule(state, "rate(steps) > 1000000000000");
}
void growth_rule(benchmark::State& state) {
  rule(state, "steps > +4");
}

BENCHMARK(growth_rule)->Arg(1'000'000)->Arg(1'000);
BENCHMARK(rate_rule)->Arg(1'000'000)->Arg(1'000);

}  // namespace

BENCHMARK_MAIN();
