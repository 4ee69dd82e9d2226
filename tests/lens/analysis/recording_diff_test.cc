#include "lens/analysis/recording_diff.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/sanitizers.h"
#include "diff_test.h"
#include "support/cpu_time.h"

namespace kymo::analysis {
namespace {

using DiffVerdict = MetricDiff::Verdict;
using Random = std::mt19937_64;
// Returns the next value of a gauge, or by how much a counter grows in the next row.
using Process = std::function<std::uint64_t(Random&)>;

struct Column {
  const char* name;
  bool counter;
  Process process;
};

constexpr double kLevel = 100'000;
// How many times a test draws random recordings to count wrong verdicts. With a sanitizer, which
// needs ten times as long, the test looks for memory errors, so fewer are enough.
constexpr int kDraws = KYMO_SANITIZER ? 40 : 200;

std::uint64_t whole(double value) {
  return static_cast<std::uint64_t>(std::max(0.0, value));
}

Process poisson(double mean) {
  return [mean](Random& random) {
    return static_cast<std::uint64_t>(std::poisson_distribution<int>(mean)(random));
  };
}

// On and off at random. Each state lasts 20 rows on average.
Process bursts(std::uint64_t when_on) {
  return [when_on, on = false](Random& random) mutable {
    if (random() % 20 == 0) on = !on;
    return on ? when_on + random() % 10 : 0;
  };
}

// A level that wanders around a mean. The nearer `keep` is to 1, the slower it comes back.
Process wandering(double keep, double around = kLevel) {
  return [keep, around, off = 0.0](Random& random) mutable {
    off = keep * off + std::normal_distribution<double>(0, 1000)(random);
    return whole(around + off);
  };
}

// A constant that is different in each run.
Process own_level() {
  return [level = std::uint64_t{0}](Random& random) mutable {
    if (level == 0) level = 100'000'000 + random() % 10'000;
    return level;
  };
}

// A ramp that has a different length in each run, like the memory of a dump.
Process ramp() {
  return [at = 0.0, step = 0.0](Random& random) mutable {
    if (step == 0) step = 400 + static_cast<double>(random() % 200);
    at = std::min(at + step, kLevel * 3);
    return whole(at);
  };
}

class RecordingDiffTest : public DiffTest {
 protected:
  std::string record(const std::string& name, const std::vector<Column>& columns, std::size_t rows,
                     Random& random, const std::string& marks = "") {
    std::string text = "Time (ns)";
    std::string described;
    for (const Column& column : columns) {
      text += std::string("\t") + column.name;
      described += std::string(described.empty() ? "" : ",") + R"({"name":")" + column.name +
                   R"(","metric":")" + column.name + R"(","kind":")" +
                   (column.counter ? "counter" : "gauge") + R"(","unit":"count"})";
    }
    text += '\n';
    std::vector<std::uint64_t> totals(columns.size());
    for (std::size_t row = 0; row < rows; ++row) {
      text += std::to_string(row * 1'000'000 + random() % 1000);
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::uint64_t value = columns[i].process(random);
        totals[i] = columns[i].counter ? totals[i] + value : value;
        text += '\t' + std::to_string(totals[i]);
      }
      text += '\n';
    }
    static_cast<void>(folder_.file(name + ".meta.json", R"({"format_version":1,"state":"ended",
        "interval_ns":1000000,"columns":[)" + described + "],\"marks\":[" +
                                                            marks + "]}"));
    return folder_.file(name + ".tsv", text);
  }
};

std::vector<Column> unchanging() {
  return {{"poisson", true, poisson(50)},          {"rare", true, poisson(0.05)},
          {"bursts", true, bursts(500)},           {"wanders", false, wandering(0.9)},
          {"wanders_far", false, wandering(0.99)}, {"walks", false, wandering(1)},
          {"own_level", false, own_level()},       {"ramp", false, ramp()}};
}

TEST_F(RecordingDiffTest, TheSameProcessTwiceSeldomAlarms) {
  Random random(2026);
  int alarms = 0;
  std::map<std::string, int> by_name;
  std::map<std::string, int> tested;
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::string before = record("before", unchanging(), 1200, random);
    const std::string after = record("after", unchanging(), 1200, random);
    const RecordingDiff made = diff({before}, {after}, {.margin = 0.0});
    bool alarm = false;
    for (const MetricDiff& metric : made.metrics) {
      tested[metric.name] += metric.samples_before != 0 ? 1 : 0;
      by_name[metric.name] += metric.verdict == DiffVerdict::changed ? 1 : 0;
      alarm = alarm || metric.verdict == DiffVerdict::changed;
    }
    alarms += alarm ? 1 : 0;
  }
  std::string found;
  for (const auto& [name, count] : by_name) {
    found += name + " " + std::to_string(count) + "/" + std::to_string(tested[name]) + " ";
  }
  RecordProperty("alarms", alarms);
  // A set of tests may give a false alarm once in 20. The 9 are three standard deviations for 200
  // draws.
  EXPECT_LE(alarms, kDraws / 20 + 9) << found;
  EXPECT_GT(tested["poisson"], kDraws * 9 / 10) << found;
  EXPECT_GT(tested["bursts"], kDraws / 10) << found;
}

TEST_F(RecordingDiffTest, WithTheMarginItAlarmsStillLess) {
  Random random(7);
  int alarms = 0;
  for (int draw = 0; draw < kDraws / 2; ++draw) {
    const RecordingDiff made = diff({record("before", unchanging(), 1200, random)},
                                    {record("after", unchanging(), 1200, random)});
    for (const MetricDiff& metric : made.metrics) {
      alarms += metric.verdict == DiffVerdict::changed ? 1 : 0;
    }
  }
  EXPECT_LE(alarms, 4);
}

TEST_F(RecordingDiffTest, AFifthMoreIsFoundAndItsSizeToo) {
  Random random(11);
  constexpr int kPairs = 30;
  int counters = 0;
  int gauges = 0;
  for (int draw = 0; draw < kPairs; ++draw) {
    const std::string before = record(
        "before", {{"calls", true, poisson(50)}, {"level", false, wandering(0.5)}}, 1000, random);
    const std::string after = record(
        "after", {{"calls", true, poisson(60)}, {"level", false, wandering(0.5, 1.2 * kLevel)}},
        1000, random);
    const RecordingDiff made = diff({before}, {after});
    const MetricDiff& calls = metric(made, "calls");
    const MetricDiff& level = metric(made, "level");
    counters += calls.verdict == DiffVerdict::changed ? 1 : 0;
    gauges += level.verdict == DiffVerdict::changed ? 1 : 0;
    EXPECT_NEAR(*calls.share(), 0.2, 0.03);
    EXPECT_NEAR(*level.share(), 0.2, 0.01);
    EXPECT_NEAR(*calls.before, 50'000, 1500);  // calls per second: the rate, not the total
    EXPECT_LT(calls.shift.low, calls.shift.median);
    EXPECT_LT(calls.shift.median, calls.shift.high);
  }
  EXPECT_EQ(counters, kPairs);
  EXPECT_EQ(gauges, kPairs);
}

TEST_F(RecordingDiffTest, AMetricThatSeldomMovesChangesByHowOftenItDoes) {
  Random random(37);
  const RecordingDiff made = diff({record("a", {{"rare", true, poisson(0.1)}}, 2000, random)},
                                  {record("b", {{"rare", true, poisson(0.3)}}, 2000, random)});
  const MetricDiff& rare = metric(made, "rare");
  EXPECT_EQ(rare.verdict, DiffVerdict::changed);
  EXPECT_NEAR(*rare.share(), 2, 0.7);
}

TEST_F(RecordingDiffTest, WhatDependsOnItsPastTooLongIsNotTold) {
  Random random(13);
  const RecordingDiff made = diff(
      {record("a", {{"walks", false, wandering(1)}, {"own", false, own_level()}}, 500, random)},
      {record("b", {{"walks", false, wandering(1, 3e5)}, {"own", false, own_level()}}, 500,
              random)});
  EXPECT_EQ(metric(made, "walks").verdict, DiffVerdict::not_told);
  EXPECT_EQ(metric(made, "own").verdict, DiffVerdict::not_told);
  EXPECT_NE(metric(made, "own").reason.find("never moves"), std::string::npos);
  EXPECT_EQ(made.tested, 0U);
}

// The columns of runs that differ from each other by a tenth and more.
std::vector<Column> a_run(Random& random, double factor = 1) {
  const double own = std::normal_distribution<double>(1, 0.1)(random);
  return {{"calls", true, poisson(factor * 50 * std::max(own, 0.2))}};
}

TEST_F(RecordingDiffTest, SetsOfRunsAreHeldAgainstTheSpreadOfTheRuns) {
  Random random(17);
  constexpr int kSets = kDraws / 2;
  constexpr int kRuns = 6;
  int alarms = 0;
  int found = 0;
  for (int draw = 0; draw < kSets; ++draw) {
    std::vector<std::string> before;
    std::vector<std::string> same;
    std::vector<std::string> more;
    for (int i = 0; i < kRuns; ++i) {
      const std::string number = std::to_string(i);
      before.push_back(record("before" + number, a_run(random), 100, random));
      same.push_back(record("same" + number, a_run(random), 100, random));
      more.push_back(record("more" + number, a_run(random, 1.6), 100, random));
    }
    alarms += metric(diff(before, same), "calls").verdict == DiffVerdict::changed ? 1 : 0;
    found += metric(diff(before, more), "calls").verdict == DiffVerdict::changed ? 1 : 0;
  }
  EXPECT_LE(alarms, kSets / 20 + 7);
  EXPECT_GE(found, kSets * 9 / 10);
}

TEST_F(RecordingDiffTest, TooFewRunsTellNothing) {
  Random random(19);
  const auto run = [&](const char* name, double mean) {
    return record(name, {{"calls", true, poisson(mean)}, {"other", true, poisson(9)}}, 50, random);
  };
  const std::vector<std::string> before{run("a1", 50), run("a2", 50), run("a3", 50)};
  const std::vector<std::string> after{run("b1", 90), run("b2", 90), run("b3", 90)};
  EXPECT_NE(metric(diff(before, after), "calls").reason.find("3 and 3 of 4"), std::string::npos);
  // Four runs on each side are enough to test one metric, but not two at once.
  const std::vector<std::string> before4{before[0], before[1], before[2], run("a4", 50)};
  const std::vector<std::string> after4{after[0], after[1], after[2], run("b4", 90)};
  const RecordingDiff four = diff(before4, after4);
  EXPECT_EQ(metric(four, "calls").verdict, DiffVerdict::not_told);
  EXPECT_NE(metric(four, "calls").reason.find("5 of each"), std::string::npos)
      << metric(four, "calls").reason;
  EXPECT_EQ(metric(diff(before4, after4, {.metrics = {"calls"}}), "calls").verdict,
            DiffVerdict::changed);
}

TEST_F(RecordingDiffTest, AMuchSlowerCounterWithTooFewIndependentValuesIsNotHidden) {
  // Its rate wanders slowly, so it moves in every row and its values depend on each other.
  const auto slow = [](double around) {
    return [wander = wandering(0.999, around)](Random& random) mutable {
      return 1 + wander(random) / 1000;
    };
  };
  Random random(5);
  const RecordingDiff made = diff({record("a", {{"requests", true, slow(4e5)}}, 500, random)},
                                  {record("b", {{"requests", true, slow(3e5)}}, 500, random)});
  const MetricDiff& requests = metric(made, "requests");
  EXPECT_EQ(requests.verdict, DiffVerdict::not_told);
  EXPECT_EQ(requests.reason.find("too few independent values"), 0U) << requests.reason;
  EXPECT_NEAR(*requests.share(), -0.25, 0.1);
  EXPECT_TRUE(requests.dependent);
  EXPECT_FALSE(requests.tells_nothing);
}

TEST_F(RecordingDiffTest, ARecordingThatMissedManyTicksIsNoted) {
  Random random(3);
  const std::string a = record("a", {{"calls", true, poisson(50)}}, 50, random);
  const std::string b = record("b", {{"calls", true, poisson(50)}}, 50, random);
  static_cast<void>(folder_.file("b.meta.json", R"({"format_version":1,"state":"ended",
      "interval_ns":1000000,"stats":{"ticks_due":100,"rows_written":50,"missed_late":50}})"));
  const RecordingDiff made = diff({a}, {b});
  EXPECT_TRUE(std::any_of(made.notes.begin(), made.notes.end(), [&](const std::string& note) {
    return note.find(b + ": only 50") == 0 &&
           note.find("of its ticks left a row") != std::string::npos;
  }));
}

TEST_F(RecordingDiffTest, OneMisspeltMetricAmongOthersIsRefused) {
  Random random(7);
  const std::string a = record("a", {{"calls", true, poisson(50)}}, 50, random);
  const auto made = diff_recordings({a}, {a}, {.metrics = {"calls", "callls"}});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("\"callls\": no recording has it; did you mean calls?"),
            std::string::npos)
      << made.error().message;
}

// A counter that grows once in a run, by about `growth`.
Process once(std::uint64_t growth) {
  return [growth, row = 0](Random& random) mutable {
    return ++row == 40 ? growth + random() % (growth / 10) : 0;
  };
}

TEST_F(RecordingDiffTest, WhatHappensOnceIsComparedByItsSizeNotByARate) {
  Random random(41);
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i);
    // Every second recording of `before` is twice as long. So its rate is half as high, although
    // the counter grew as much.
    const auto rows = static_cast<std::size_t>(50 + 50 * (i % 2));
    before.push_back(record("a" + number, {{"same", true, once(1000)}, {"more", true, once(1000)}},
                            rows, random));
    after.push_back(record("b" + number, {{"same", true, once(1000)}, {"more", true, once(1300)}},
                           150, random));
  }
  const RecordingDiff made = diff(before, after);
  EXPECT_TRUE(metric(made, "same").events);
  EXPECT_EQ(metric(made, "same").verdict, DiffVerdict::none);
  EXPECT_EQ(metric(made, "more").verdict, DiffVerdict::changed);
  EXPECT_NEAR(*metric(made, "more").share(), 0.3, 0.1);
}

std::string mark(const char* name, int ms) {
  return std::string(R"({"name":")") + name + R"(","at_ns":)" + std::to_string(ms) + "000000}";
}

TEST_F(RecordingDiffTest, APhaseCanBeAskedForAlone) {
  Random random(8);
  std::vector<std::string> runs;
  for (int i = 0; i < 8; ++i) {
    const int ends = (i < 4 ? 10 : 30) + i % 4;
    runs.push_back(record("r" + std::to_string(i), {{"calls", true, poisson(50)}}, 50, random,
                          mark("write", 5) + "," + mark("done", ends)));
  }
  const RecordingDiff made =
      diff({runs[0], runs[1], runs[2], runs[3]}, {runs[4], runs[5], runs[6], runs[7]},
           {.metrics = {"phase: write"}});
  ASSERT_EQ(made.metrics.size(), 1U);
  EXPECT_TRUE(made.metrics[0].phase);
  EXPECT_EQ(made.metrics[0].verdict, DiffVerdict::changed);
}

// Rates alone said that nothing changed.
TEST_F(RecordingDiffTest, HalfAsMuchWorkAgainAtTheSameRateIsAChange) {
  Random random(43);
  std::vector<std::string> before;
  std::vector<std::string> after;
  std::vector<std::string> same;
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i);
    const auto run = [&](const std::string& name, std::size_t rows) {
      return record(name + number, {{"calls", true, poisson(50)}, {"level", false, wandering(0.5)}},
                    rows + random() % 20, random);
    };
    before.push_back(run("a", 200));
    after.push_back(run("b", 300));
    same.push_back(run("c", 200));
  }
  const RecordingDiff longer = diff(before, after);
  EXPECT_EQ(metric(longer, "calls").verdict, DiffVerdict::none);
  ASSERT_GE(longer.metrics.size(), 2U);
  EXPECT_TRUE(longer.metrics[0].length);
  EXPECT_EQ(longer.metrics[0].verdict, DiffVerdict::changed);
  EXPECT_NEAR(*longer.metrics[0].share(), 0.5, 0.1);
  EXPECT_EQ(longer.metrics[1].name, "calls total");
  EXPECT_EQ(longer.metrics[1].verdict, DiffVerdict::changed);
  EXPECT_NEAR(*longer.metrics[1].share(), 0.5, 0.1);
  EXPECT_NEAR(*longer.metrics[1].before, 210 * 50, 700);
  // The same if only the counter is asked for: a passing test of its rate would hide that it grew.
  EXPECT_EQ(metric(diff(before, after, {.metrics = {"calls"}}), "calls total").verdict,
            DiffVerdict::changed);
  const RecordingDiff named = diff(before, after, {.metrics = {"calls total", "length"}});
  ASSERT_EQ(named.metrics.size(), 2U);
  EXPECT_EQ(named.metrics[0].verdict, DiffVerdict::changed);
  EXPECT_EQ(named.metrics[1].verdict, DiffVerdict::changed);

  const RecordingDiff alike = diff(before, same);
  EXPECT_EQ(metric(alike, "length").verdict, DiffVerdict::none);
  EXPECT_EQ(metric(alike, "calls total").verdict, DiffVerdict::none);
  // The user chose the lengths.
  const RecordingDiff chosen = diff(before, after, {.to_s = 0.15});
  EXPECT_EQ(chosen.metrics.size(), 2U);
}

TEST_F(RecordingDiffTest, OneRecordingOfEachSideSaysThatItIsLongerButNotWhetherThatIsNoise) {
  Random random(47);
  const auto run = [&](const char* name, std::size_t rows) {
    return record(name, {{"calls", true, poisson(50)}}, rows, random);
  };
  const RecordingDiff longer = diff({run("a", 400)}, {run("b", 600)});
  EXPECT_EQ(metric(longer, "length").verdict, DiffVerdict::not_told);
  EXPECT_NEAR(*metric(longer, "length").share(), 0.5, 0.01);
  EXPECT_NEAR(*metric(longer, "calls total").share(), 0.5, 0.1);
  EXPECT_EQ(metric(longer, "calls").verdict, DiffVerdict::none);
  const RecordingDiff alike = diff({run("a", 400)}, {run("b", 404)});
  EXPECT_EQ(alike.metrics.size(), 1U) << "the margin between two recordings";
}

TEST_F(RecordingDiffTest, ItIsAlignedAtThePhasesThatAllHave) {
  Random random(23);
  const std::vector<Column> columns{{"calls", true, poisson(50)}};
  const std::string before = record("a", columns, 500, random,
                                    mark("own", 10) + "," + mark("dump", 100) + "," +
                                        mark("write", 200) + "," + mark("done", 300));
  const std::string after = record("b", columns, 500, random,
                                   mark("dump", 150) + "," + mark("write", 210) + "," +
                                       mark("done", 400) + "," + mark("other", 450));
  const RecordingDiff made = diff({before}, {after});
  EXPECT_EQ(made.aligned_at, "dump");
  EXPECT_EQ(made.until, "done");
  EXPECT_EQ(made.before[0].window.begin_ns, 100'000'000U);
  EXPECT_EQ(made.before[0].window.end_ns, 300'000'000U);
  EXPECT_EQ(made.after[0].window.begin_ns, 150'000'000U);
  EXPECT_EQ(made.after[0].window.end_ns, 400'000'000U);
  const MetricDiff& write = metric(made, "write");
  EXPECT_TRUE(write.phase);
  EXPECT_EQ(*write.before, 100'000'000);
  EXPECT_EQ(*write.after, 190'000'000);
  EXPECT_EQ(metric(made, "own").verdict, DiffVerdict::one_sided);

  // A phase is compared to its end, or over the range that --from and --to give.
  const RecordingDiff phase = diff({before}, {after}, {.align = "write"});
  EXPECT_EQ(phase.after[0].window.begin_ns, 210'000'000U);
  EXPECT_EQ(phase.after[0].window.end_ns, 400'000'000U);
  const RecordingDiff range =
      diff({before}, {after}, {.align = "write", .from_s = -0.05, .to_s = 0.02});
  EXPECT_EQ(range.before[0].window.begin_ns, 150'000'000U);
  EXPECT_EQ(range.after[0].window.end_ns, 230'000'000U);
}

TEST_F(RecordingDiffTest, WhatCannotBeComparedIsSaidByName) {
  Random random(29);
  const std::vector<Column> columns{{"calls", true, poisson(50)}};
  const std::string whole = record("a", columns, 50, random, mark("dump", 10));
  const std::string bare = record("b", columns, 50, random);
  const std::string empty = record("c", columns, 0, random);
  const auto refused = [&](const std::string& after, const DiffOptions& options) {
    const auto made = diff_recordings({whole}, {after}, options);
    return made ? std::string("not refused") : made.error().message;
  };
  EXPECT_NE(refused(bare, {.align = "dump"})
                .find("b.tsv at \"dump\": it has no such mark; its marks are none"),
            std::string::npos)
      << refused(bare, {.align = "dump"});
  EXPECT_NE(refused(empty, {}).find("c.tsv: it holds 0 rows"), std::string::npos);
  EXPECT_NE(refused(bare, {.from_s = 5}).find("no rows in the compared range"), std::string::npos);
  EXPECT_NE(refused(bare, {.from_s = 0.03, .to_s = 0.01}).find("no rows in the compared range"),
            std::string::npos);
  EXPECT_NE(refused(bare, {.metrics = {"nothing"}}).find("no recording has it"), std::string::npos);
  EXPECT_EQ(diff({whole}, {bare}).aligned_at, "");
}

TEST_F(RecordingDiffTest, ARecordingAgainstItselfDoesNotChange) {
  Random random(31);
  const std::string path = record("a", unchanging(), 800, random);
  const RecordingDiff same = diff({path}, {path});
  for (const MetricDiff& metric : same.metrics) {
    EXPECT_NE(metric.verdict, DiffVerdict::changed) << metric.name;
    EXPECT_EQ(metric.share().value_or(0), 0) << metric.name;
  }
}

TEST_F(RecordingDiffTest, ManyMarksTookQuadraticTime) {
  Random random(1);
  const std::vector<Column> columns{{"level", false, wandering(0.5)}};
  const auto time_of = [&](int count) {
    std::string marks;
    for (int i = 0; i < count; ++i) {
      marks += std::string(i == 0 ? "" : ",") + R"({"name":"m)" + std::to_string(i) +
               R"(","at_ns":)" + std::to_string(i * 1000) + "}";
    }
    const std::string before = record("a" + std::to_string(count), columns, 300, random, marks);
    const std::string after = record("b" + std::to_string(count), columns, 300, random, marks);
    return test::cpu_time_of([&] { EXPECT_EQ(diff({before}, {after}).aligned_at, "m0"); });
  };
  EXPECT_LT(time_of(80'000), 24 * time_of(10'000));
}

// A folder and a glob of the same recordings made four runs of two, and a change certain.
TEST_F(RecordingDiffTest, ARecordingThatIsNamedTwiceIsNotTwoRuns) {
  Random random(50);
  const std::string a = record("a", {{"n", true, poisson(50)}}, 300, random);
  const std::string b = record("b", {{"n", true, poisson(50)}}, 300, random);
  const std::string again = folder_ / "./a.tsv";
  EXPECT_TRUE(diff_recordings({a}, {a}, {}).ok());
  for (const std::string& twice : {a, again}) {
    // Before, one that was on both sides was compared.
    for (const auto& made :
         {diff_recordings({b}, {a, twice}, {}), diff_recordings({a}, {twice, b}, {})}) {
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.error().message, "compare " + twice + ": it is named twice" +
                                          (twice == a ? "" : ", also as " + a) +
                                          ": name each recording once");
    }
  }
}

// With --to neither lengths nor totals are compared, so a run that had ended before passed.
TEST_F(RecordingDiffTest, ARecordingThatEndsBeforeTheComparedRangeIsRefused) {
  Random random(51);
  const std::string a = record("a", {{"n", true, poisson(50)}}, 500, random);
  const std::string b = record("b", {{"n", true, poisson(50)}}, 250, random);
  DiffOptions options;
  options.to_s = 0.4;
  const auto made = diff_recordings({a}, {b}, options);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("b.tsv up to --to 400 ms: it ends after 249 ms"),
            std::string::npos)
      << made.error().message;
  options.to_s = 0.2;
  EXPECT_TRUE(diff_recordings({a}, {b}, options).ok());
}

// Rows are missed while the machine is busy, and just then a queue is long: a gauge that rose by 65 % was -14 %.
TEST_F(RecordingDiffTest, AGaugeIsComparedByTheTimeForWhichItHadItsValues) {
  const auto queue = [&](const std::string& name, int level, int step_ms) {
    std::string text = "Time (ns)\tdepth\n";
    for (int ms = 0; ms < 4000; ms += ms % 200 < 100 ? 1 : step_ms) {
      text += std::to_string(ms * 1'000'000) + "\t" +
              (ms % 200 < 100 ? "1" : std::to_string(level)) + "\n";
    }
    static_cast<void>(folder_.file(name + ".meta.json", R"({"format_version":1,"state":"ended",
        "interval_ns":1000000,"columns":[{"name":"depth","metric":"depth","kind":"gauge","unit":"count"}]})"));
    return folder_.file(name + ".tsv", text);
  };
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (int run = 0; run < 4; ++run) {
    before.push_back(queue("a" + std::to_string(run), 100 + run, 1));
    after.push_back(queue("b" + std::to_string(run), 166 + run, 4));
  }
  DiffOptions options;
  options.metrics = {"depth"};
  const RecordingDiff made = diff(before, after, options);
  ASSERT_EQ(made.metrics.size(), 1U);
  EXPECT_EQ(made.metrics[0].verdict, DiffVerdict::changed);
  EXPECT_NEAR(*made.metrics[0].share(), 0.65, 0.05);
}

}  // namespace
}  // namespace kymo::analysis
