#include "lens/report/envelope.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace kymo::report {
namespace {

// Rows with a time, a counter and a gauge.
Rows rows_of(const std::vector<std::uint64_t>& words) {
  return {words.data(), words.size() / 3, 3};
}

TEST(EnvelopeTest, ASpanHasItsLastValueAndWhatLiesBetween) {
  Envelope envelope({{1, true}, {2, false}}, 100, 0);
  envelope.add(rows_of({0, 0, 7, 50, 100, 9000, 90, 100, 3, 110, 105, 4, 250, 106, 5}));
  const nlohmann::json spans = envelope.take(false);
  EXPECT_EQ(spans["time"], nlohmann::json({90, 110}));
  EXPECT_EQ(spans["columns"][1]["last"], nlohmann::json({3, 4}));
  EXPECT_EQ(spans["columns"][1]["low"], nlohmann::json({3.0, 4.0}));
  EXPECT_EQ(spans["columns"][1]["high"], nlohmann::json({9000.0, 4.0}));
  EXPECT_EQ(spans["columns"][0]["last"], nlohmann::json({100, 105}));
  EXPECT_EQ(envelope.take(true)["time"], nlohmann::json({250}));
  EXPECT_EQ(envelope.take(true)["time"], nlohmann::json::array());
}

TEST(EnvelopeTest, ARateIsOverTheTimeOfASpanAndNotOverTheTimeThatALateRowIsFromTheNext) {
  constexpr std::uint64_t kMs = 1'000'000;
  std::vector<std::uint64_t> words;
  for (std::uint64_t row = 0; row < 60; ++row) {
    words.insert(words.end(), {row * kMs + (row == 25 ? 999'000 : 0), row, 0});
  }
  for (const auto& [span, most] :
       {std::pair{10 * kMs, 1100.0}, std::pair{std::uint64_t{0}, 2000.0}}) {
    Envelope envelope({{1, true}}, span, kMs);
    envelope.add(rows_of(words));
    const nlohmann::json column = envelope.take(true)["columns"][0];
    double highest = 0;
    for (const nlohmann::json& high : column["high"]) {
      if (high.get<double>() > highest) highest = high.get<double>();
    }
    EXPECT_GE(highest, 1000) << span;
    EXPECT_LE(highest, most) << span;
  }
}

TEST(EnvelopeTest, TheVeryFirstRowOfACounterHasNoRate) {
  Envelope envelope({{1, true}}, 0, 0);
  const std::vector<std::uint64_t> words{5, 9, 0, 6, 9, 0};
  envelope.add(rows_of(words));
  EXPECT_EQ(envelope.take(true).dump(),
            R"({"columns":[{"high":[null,0.0],"last":[9,9],"low":[null,0.0]}],"time":[5,6]})");
}

TEST(EnvelopeTest, EveryRowIsOneWithoutASpan) {
  Envelope envelope({{2, false}}, 0, 0);
  std::vector<std::uint64_t> words;
  for (std::uint64_t i = 0; i < 1000; ++i) words.insert(words.end(), {i, i, i * i});
  envelope.add(rows_of(words));
  EXPECT_EQ(envelope.spans(), 999U);
  EXPECT_EQ(envelope.take(true)["columns"][0]["last"][999], 999 * 999);
}

TEST(EnvelopeTest, ACounterThatFallsHasANegativeRate) {
  Envelope envelope({{1, true}}, 0, 0);
  const std::vector<std::uint64_t> words{0, 50, 0, 10, 20, 0, 2000, 0, 0};
  envelope.add(rows_of(words));
  EXPECT_EQ(envelope.take(false)["columns"][0]["low"][1], -3e9);
}

}  // namespace
}  // namespace kymo::report
