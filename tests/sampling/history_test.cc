#include "sampling/history.h"

#include "metrics/metric_rules.h"
#include "temporary_folder.h"

namespace kymo {
namespace {

constexpr std::uint64_t kMillisecondNs = 1'000'000;

// Feeds a history by hand: a row each millisecond whose value is its tick.
class HistoryTest : public TemporaryFolderTest {
 protected:
  void SetUp() override {
    TemporaryFolderTest::SetUp();
    RecordingInfo info;
    info.columns = columns_of({"tick", "Tick", Kind::counter, Unit::count, {}});
    info.interval = std::chrono::milliseconds(1);
    info.start_unix_ns = 1'000'000'000;
    info.rows_per_slot = 100;
    ASSERT_TRUE(history_.open(info));
  }
  void feed(std::uint64_t first, std::uint64_t end) {
    std::vector<std::uint64_t> words;
    for (std::uint64_t tick = first; tick < end; ++tick) {
      words.insert(words.end(), {tick * kMillisecondNs + 20'000, tick});
    }
    ASSERT_TRUE(history_.write({words.data(), static_cast<std::size_t>(end - first), 2}));
  }
  nlohmann::json metadata(const std::string& name) {
    return nlohmann::json::parse(content(in_folder(name + ".meta.json")));
  }

  History history_{std::chrono::milliseconds(500)};
};

TEST_F(HistoryTest, CutsRowsFromBeforeAndAfterTheRequest) {
  feed(0, 1000);
  const auto cut =
      history_.begin(in_folder("dump.tsv"), 900 * kMillisecondNs - 5, {{"job", "a"}}).value();
  history_.mark(cut, "pre-dump", 950 * kMillisecondNs);
  feed(1000, 1050);
  history_.end(cut, 1100 * kMillisecondNs, {{"outcome", "ok"}});
  EXPECT_FALSE(history_.wait(cut, std::chrono::milliseconds(0)));
  EXPECT_EQ(metadata("dump")["state"], "running");
  feed(1050, 1200);
  ASSERT_TRUE(history_.wait(cut, std::chrono::milliseconds(0)));

  const std::vector<std::string> tsv = lines(in_folder("dump.tsv"));
  ASSERT_EQ(tsv.size(), 201U);
  EXPECT_EQ(tsv[1], "20000\t900");  // its clock begins with its first tick
  EXPECT_EQ(tsv[200], "199020000\t1099");
  const nlohmann::json meta = metadata("dump");
  EXPECT_EQ(meta["state"], "ended");
  EXPECT_EQ(meta["start_unix_ns"], 1'000'000'000 + 900 * kMillisecondNs);
  EXPECT_EQ(meta["about"], (nlohmann::json{{"job", "a"}, {"outcome", "ok"}}));
  EXPECT_EQ(meta["marks"][0]["at_ns"], 50 * kMillisecondNs);
  EXPECT_EQ(meta["stats"]["rows_written"], 200);
  EXPECT_EQ(meta["stats"]["ticks_due"], 200);
}

TEST_F(HistoryTest, CountsAndListsTheGapsInsideTheCut) {
  feed(0, 100);
  const auto cut = history_.begin(in_folder("dump.tsv"), 50 * kMillisecondNs, {}).value();
  history_.gap({100 * kMillisecondNs, 103 * kMillisecondNs, 3, MissCause::late});
  feed(103, 150);
  history_.gap({150 * kMillisecondNs, 300 * kMillisecondNs, 150, MissCause::ring_full});
  history_.end(cut, 200 * kMillisecondNs, {});
  feed(300, 310);
  ASSERT_TRUE(history_.wait(cut, std::chrono::milliseconds(0)));
  const nlohmann::json stats = metadata("dump")["stats"];
  EXPECT_EQ(stats["rows_written"], 97);
  EXPECT_EQ(stats["missed_late"], 3);
  EXPECT_EQ(stats["missed_ring_full"], 50);
  EXPECT_EQ(stats["ticks_due"], 150);
  const std::vector<std::string> gaps = lines(in_folder("dump.gaps.tsv"));
  ASSERT_EQ(gaps.size(), 3U);
  EXPECT_EQ(gaps[1], "50000000\t53000000\t3\tlate");
  EXPECT_EQ(gaps[2], "100000000\t150000000\t50\tring_full");
}

TEST_F(HistoryTest, KeepsNoMoreThanItPromised) {
  feed(0, 5000);
  const auto cut = history_.begin(in_folder("dump.tsv"), 0, {}).value();
  history_.end(cut, 5000 * kMillisecondNs, {});
  feed(5000, 5001);
  ASSERT_TRUE(history_.wait(cut, std::chrono::milliseconds(0)));
  const std::size_t rows = lines(in_folder("dump.tsv")).size() - 1;
  EXPECT_GE(rows, 500U);
  EXPECT_LE(rows, 601U);
}

TEST_F(HistoryTest, CutsSeveralAtOnceEachWithItsOwnRows) {
  feed(0, 100);
  const auto a = history_.begin(in_folder("a.tsv"), 90 * kMillisecondNs, {}).value();
  feed(100, 120);
  const auto b = history_.begin(in_folder("b.tsv"), 110 * kMillisecondNs, {}).value();
  history_.end(a, 125 * kMillisecondNs, {});
  history_.end(b, 130 * kMillisecondNs, {});
  feed(120, 200);
  ASSERT_TRUE(history_.wait(a, std::chrono::milliseconds(0)));
  ASSERT_TRUE(history_.wait(b, std::chrono::milliseconds(0)));
  EXPECT_EQ(lines(in_folder("a.tsv")).size(), 36U);
  EXPECT_EQ(lines(in_folder("b.tsv")).size(), 21U);
}

TEST_F(HistoryTest, KeepsWhatIsWrittenWhenTheEndIsSetInThePast) {
  feed(0, 100);
  const auto cut = history_.begin(in_folder("dump.tsv"), 90 * kMillisecondNs, {}).value();
  feed(100, 120);
  history_.end(cut, 95 * kMillisecondNs, {});
  feed(120, 121);
  ASSERT_TRUE(history_.wait(cut, std::chrono::milliseconds(0)));
  EXPECT_EQ(lines(in_folder("dump.tsv")).size(), 31U);
  EXPECT_EQ(metadata("dump")["stats"]["ticks_due"], 30);
}

TEST_F(HistoryTest, FinishesWhatIsOpenWhenTheStreamEnds) {
  feed(0, 100);
  const auto cut = history_.begin(in_folder("dump.tsv"), 10 * kMillisecondNs, {}).value();
  ProfilerStats stats;
  stats.duration_ns = 100 * kMillisecondNs;
  ASSERT_TRUE(history_.close(stats));
  ASSERT_TRUE(history_.wait(cut, std::chrono::milliseconds(0)));
  EXPECT_EQ(lines(in_folder("dump.tsv")).size(), 91U);
  EXPECT_EQ(metadata("dump")["state"], "ended");
  EXPECT_EQ(history_.begin(in_folder("late.tsv"), 0, {}).error().code, Code::failed_precondition);
}

TEST_F(HistoryTest, EndsACutThoughNoRowComes) {
  feed(0, 100);
  const auto cut = history_.begin(in_folder("dump.tsv"), 10 * kMillisecondNs, {}).value();
  history_.end(cut, 150 * kMillisecondNs, {});
  ProfilerStats stats;
  stats.duration_ns = 10'000 * kMillisecondNs;
  history_.progress(stats);
  EXPECT_TRUE(history_.wait(cut, std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace kymo
