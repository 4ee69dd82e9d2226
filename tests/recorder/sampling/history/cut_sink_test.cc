#include "recorder/sampling/history/cut_sink.h"

#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "recorder/metrics/metric_rules.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

constexpr std::uint64_t kMillisecondNs = 1'000'000;
constexpr auto kLong = std::chrono::seconds(30);

// Feeds a CutSink by hand: a row each millisecond whose value is its tick.
class CutSinkTest : public TemporaryFolderTest {
 protected:
  void SetUp() override {
    TemporaryFolderTest::SetUp();
    RecordingInfo info;
    info.columns = columns_of({"tick", "Tick", Kind::counter, Unit::count, {}});
    info.interval = std::chrono::milliseconds(1);
    info.start_unix_ns = 1'000'000'000;
    info.rows_per_slot = 100;
    ASSERT_TRUE(cuts_.open(info));
  }
  void feed(std::uint64_t first, std::uint64_t end) {
    std::vector<std::uint64_t> words;
    for (std::uint64_t tick = first; tick < end; ++tick) {
      words.insert(words.end(), {tick * kMillisecondNs + 20'000, tick});
    }
    ASSERT_TRUE(cuts_.write({words.data(), static_cast<std::size_t>(end - first), 2}));
  }
  nlohmann::json metadata(const std::string& name) {
    return nlohmann::json::parse(content(in_folder(name + ".meta.json")));
  }

  CutSink cuts_{std::chrono::milliseconds(500)};
};

TEST_F(CutSinkTest, CutsRowsFromBeforeAndAfterTheRequest) {
  feed(0, 1000);
  const auto cut =
      cuts_.begin(in_folder("dump.tsv"), 900 * kMillisecondNs - 5, {{"job", "a"}}).value();
  cuts_.mark(cut, "pre-dump", 950 * kMillisecondNs);
  feed(1000, 1050);
  cuts_.end(cut, 1100 * kMillisecondNs, {{"outcome", "ok"}});
  EXPECT_FALSE(cuts_.wait(cut, std::chrono::milliseconds(0)));
  ASSERT_TRUE(cuts_.wait_created(cut, kLong));
  EXPECT_EQ(metadata("dump")["state"], "running");
  feed(1050, 1200);
  ASSERT_TRUE(cuts_.wait(cut, kLong));

  const std::vector<std::string> tsv = lines(in_folder("dump.tsv"));
  ASSERT_EQ(tsv.size(), 201U);
  EXPECT_EQ(tsv[1], "20000\t900");  // times count from the first tick of the recording
  EXPECT_EQ(tsv[200], "199020000\t1099");
  const nlohmann::json meta = metadata("dump");
  EXPECT_EQ(meta["state"], "ended");
  EXPECT_EQ(meta["start_unix_ns"], 1'000'000'000 + 900 * kMillisecondNs);
  EXPECT_EQ(meta["about"], (nlohmann::json{{"job", "a"}, {"outcome", "ok"}}));
  EXPECT_EQ(meta["marks"][0]["at_ns"], 50 * kMillisecondNs);
  EXPECT_EQ(meta["stats"]["rows_written"], 200);
  EXPECT_EQ(meta["stats"]["ticks_due"], 200);
}

TEST_F(CutSinkTest, HasNoTimingThatIsNotItsOwn) {
  feed(0, 100);
  ProfilerStats stats;
  stats.timing_error_ns = 90'000;
  stats.timing_error_max_ns = 988'000;
  stats.sample_window_max_ns = 70'000;
  cuts_.progress(stats);
  const auto cut = cuts_.begin(in_folder("dump.tsv"), 50 * kMillisecondNs, {}).value();
  cuts_.end(cut, 100 * kMillisecondNs, {});
  feed(100, 110);
  ASSERT_TRUE(cuts_.wait(cut, kLong));
  const nlohmann::json written = metadata("dump")["stats"];
  EXPECT_FALSE(written.contains("timing_error_ns")) << written;
  EXPECT_FALSE(written.contains("timing_error_max_ns"));
  EXPECT_FALSE(written.contains("sample_window_max_ns"));
  EXPECT_EQ(written["rows_written"], 50);
}

// The stream hands its rows over late: those of the last second may come after the request.
TEST_F(CutSinkTest, RowsFromBeforeTheCutThatAreHandedOverLaterAreNotInIt) {
  feed(0, 100);
  const auto cut = cuts_.begin(in_folder("dump.tsv"), 150 * kMillisecondNs, {}).value();
  feed(100, 120);
  feed(120, 200);
  cuts_.end(cut, 250 * kMillisecondNs, {});
  feed(200, 300);
  ASSERT_TRUE(cuts_.wait(cut, kLong));
  const std::vector<std::string> tsv = lines(in_folder("dump.tsv"));
  ASSERT_EQ(tsv.size(), 101U);
  EXPECT_EQ(tsv[1], "20000\t150");
  EXPECT_EQ(tsv[100], "99020000\t249");
  const nlohmann::json stats = metadata("dump")["stats"];
  EXPECT_EQ(stats["rows_written"], 100);
  EXPECT_EQ(stats["ticks_due"], 100);
}

TEST_F(CutSinkTest, CountsAndListsTheGapsInsideTheCut) {
  feed(0, 100);
  const auto cut = cuts_.begin(in_folder("dump.tsv"), 50 * kMillisecondNs, {}).value();
  cuts_.gap({100 * kMillisecondNs, 103 * kMillisecondNs, 3, MissCause::late});
  feed(103, 150);
  cuts_.gap({150 * kMillisecondNs, 300 * kMillisecondNs, 150, MissCause::ring_full});
  cuts_.end(cut, 200 * kMillisecondNs, {});
  feed(300, 310);
  ASSERT_TRUE(cuts_.wait(cut, kLong));
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

TEST_F(CutSinkTest, KeepsNoMoreThanItPromised) {
  feed(0, 5000);
  const auto cut = cuts_.begin(in_folder("dump.tsv"), 0, {}).value();
  cuts_.end(cut, 5000 * kMillisecondNs, {});
  feed(5000, 5001);
  ASSERT_TRUE(cuts_.wait(cut, kLong));
  const std::size_t rows = lines(in_folder("dump.tsv")).size() - 1;
  EXPECT_GE(rows, 500U);
  EXPECT_LE(rows, 601U);
}

TEST_F(CutSinkTest, CutsSeveralAtOnceEachWithItsOwnRows) {
  feed(0, 100);
  const auto a = cuts_.begin(in_folder("a.tsv"), 90 * kMillisecondNs, {}).value();
  feed(100, 120);
  const auto b = cuts_.begin(in_folder("b.tsv"), 110 * kMillisecondNs, {}).value();
  cuts_.end(a, 125 * kMillisecondNs, {});
  cuts_.end(b, 130 * kMillisecondNs, {});
  feed(120, 200);
  ASSERT_TRUE(cuts_.wait(a, kLong));
  ASSERT_TRUE(cuts_.wait(b, kLong));
  EXPECT_EQ(lines(in_folder("a.tsv")).size(), 36U);
  EXPECT_EQ(lines(in_folder("b.tsv")).size(), 21U);
}

TEST_F(CutSinkTest, KeepsWhatIsWrittenWhenTheEndIsSetInThePast) {
  feed(0, 100);
  const auto cut = cuts_.begin(in_folder("dump.tsv"), 90 * kMillisecondNs, {}).value();
  feed(100, 120);
  while (!std::filesystem::exists(in_folder("dump.tsv")) ||
         lines(in_folder("dump.tsv")).size() < 31) {
    std::this_thread::yield();
  }
  cuts_.end(cut, 95 * kMillisecondNs, {});
  feed(120, 121);
  ASSERT_TRUE(cuts_.wait(cut, kLong));
  EXPECT_EQ(lines(in_folder("dump.tsv")).size(), 31U);
  EXPECT_EQ(metadata("dump")["stats"]["ticks_due"], 30);
}

TEST_F(CutSinkTest, FinishesWhatIsOpenWhenTheStreamEnds) {
  feed(0, 100);
  const auto cut = cuts_.begin(in_folder("dump.tsv"), 10 * kMillisecondNs, {}).value();
  ProfilerStats stats;
  stats.duration_ns = 100 * kMillisecondNs;
  ASSERT_TRUE(cuts_.close(stats));
  ASSERT_TRUE(cuts_.wait(cut, kLong));
  EXPECT_EQ(lines(in_folder("dump.tsv")).size(), 91U);
  EXPECT_EQ(metadata("dump")["state"], "ended");
  EXPECT_EQ(cuts_.begin(in_folder("late.tsv"), 0, {}).error().code, Code::failed_precondition);
}

TEST_F(CutSinkTest, EndsACutThoughNoRowComes) {
  feed(0, 100);
  const auto cut = cuts_.begin(in_folder("dump.tsv"), 10 * kMillisecondNs, {}).value();
  cuts_.end(cut, 150 * kMillisecondNs, {});
  ProfilerStats stats;
  stats.duration_ns = 10'000 * kMillisecondNs;
  cuts_.progress(stats);
  EXPECT_TRUE(cuts_.wait(cut, kLong));
}

// A disk that does not answer until the test lets it. A call that waits for it would never return.
struct StalledDisk {
  CutOptions options() {
    CutOptions options;
    options.prepare = [this] {
      answers_.get_future().wait();
      return Result<void>();
    };
    return options;
  }
  void answers() { answers_.set_value(); }

 private:
  std::promise<void> answers_;
};

TEST_F(CutSinkTest, NobodyWaitsForADiskThatStandsStill) {
  feed(0, 100);
  StalledDisk disk;
  const auto cut =
      cuts_.begin(in_folder("dump.tsv"), 90 * kMillisecondNs, {}, disk.options()).value();
  cuts_.mark(cut, "pre-dump", 100 * kMillisecondNs);
  feed(100, 200);
  cuts_.gap({200 * kMillisecondNs, 203 * kMillisecondNs, 3, MissCause::late});
  cuts_.progress({});
  feed(203, 220);
  EXPECT_EQ(cuts_.copy_rows(0, 10'000).size(), 2U * 217);
  EXPECT_EQ(cuts_.gaps_after(0).size(), 1U);
  EXPECT_TRUE(cuts_.info());
  const auto other = cuts_.begin(in_folder("other.tsv"), 90 * kMillisecondNs, {}).value();
  cuts_.end(other, 210 * kMillisecondNs, {});
  cuts_.end(cut, 210 * kMillisecondNs, {});
  EXPECT_EQ(cuts_.wait_created(cut, std::chrono::milliseconds(0)).error().code,
            Code::deadline_exceeded);
  ASSERT_TRUE(cuts_.wait(other, kLong)) << "the other disk answers";
  EXPECT_FALSE(std::filesystem::exists(in_folder("dump.tsv")));

  disk.answers();
  ASSERT_TRUE(cuts_.wait(cut, kLong));
  EXPECT_EQ(lines(in_folder("dump.tsv")), lines(in_folder("other.tsv"))) << "no row was lost";
  EXPECT_EQ(lines(in_folder("dump.gaps.tsv")), lines(in_folder("other.gaps.tsv")));
  const nlohmann::json meta = metadata("dump");
  EXPECT_EQ(meta["state"], "ended");
  EXPECT_EQ(meta["marks"][0]["name"], "pre-dump");
  EXPECT_EQ(meta["stats"]["rows_written"], 117);
  EXPECT_EQ(meta["stats"]["missed_late"], 3);
  EXPECT_EQ(meta["stats"]["ticks_due"], 120);
}

TEST_F(CutSinkTest, RowsThatAStalledDiskMissedAreAGapAndNotLostInSilence) {
  feed(0, 100);
  StalledDisk disk;
  const auto cut =
      cuts_.begin(in_folder("dump.tsv"), 90 * kMillisecondNs, {}, disk.options()).value();
  feed(100, 5000);  // the memory holds 600 rows
  cuts_.end(cut, 5000 * kMillisecondNs, {});
  feed(5000, 5001);
  disk.answers();
  ASSERT_TRUE(cuts_.wait(cut, kLong));
  const std::size_t rows = lines(in_folder("dump.tsv")).size() - 1;
  EXPECT_GE(rows, 500U);
  const nlohmann::json stats = metadata("dump")["stats"];
  EXPECT_EQ(stats["rows_written"], rows);
  EXPECT_EQ(stats["missed_sink_error"], 4910 - rows);
  EXPECT_EQ(stats["ticks_due"], 4910);
  const std::vector<std::string> gaps = lines(in_folder("dump.gaps.tsv"));
  ASSERT_EQ(gaps.size(), 2U);
  EXPECT_EQ(gaps[1], "0\t" + std::to_string((4910 - rows) * kMillisecondNs) + "\t" +
                         std::to_string(4910 - rows) + "\tsink_error");
  ASSERT_TRUE(cuts_.loss_of(cut));
  EXPECT_EQ(cuts_.loss_of(cut)->message,
            in_folder("dump.tsv") + " lacks " + std::to_string(4910 - rows) +
                " of 4910 rows: newer rows took their place in memory before they were written, "
                "because the disk or the machine was too slow");
}

TEST_F(CutSinkTest, ADiskThatRefusesRowsCostsThemAloneAndNotTheRecording) {
  feed(0, 500);
  const auto cut = cuts_.begin(in_folder("dump.tsv"), 0, {}).value();
  while (!std::filesystem::exists(in_folder("dump.tsv")) ||
         lines(in_folder("dump.tsv")).size() < 501) {
    std::this_thread::yield();
  }
  {
    // The limit is the current size of the rows. The metadata is smaller, so it can still be
    // written.
    const FileSizeLimit full(std::filesystem::file_size(in_folder("dump.tsv")));
    feed(500, 600);
    do {
      cuts_.progress({});
    } while (metadata("dump")["stats"]["missed_sink_error"] != 100);
  }
  feed(600, 700);
  cuts_.end(cut, 700 * kMillisecondNs, {});
  feed(700, 701);
  ASSERT_TRUE(cuts_.wait(cut, kLong));
  const nlohmann::json stats = metadata("dump")["stats"];
  EXPECT_EQ(stats["rows_written"], 600);
  EXPECT_EQ(stats["missed_sink_error"], 100);
  const std::vector<std::string> gaps = lines(in_folder("dump.gaps.tsv"));
  ASSERT_EQ(gaps.size(), 2U);
  EXPECT_EQ(gaps[1], "500000000\t600000000\t100\tsink_error");
}

TEST_F(CutSinkTest, ACutThatCannotBeCreatedIsGivenUpAloneAndSaysWhy) {
  feed(0, 100);
  std::ofstream(in_folder("taken.tsv")) << "somebody else's";
  const auto cut = cuts_.begin(in_folder("taken.tsv"), 0, {}).value();
  EXPECT_EQ(cuts_.wait_created(cut, kLong).error().code, Code::already_exists);
  ASSERT_TRUE(cuts_.failure_of(cut));
  EXPECT_NE(cuts_.failure_of(cut)->message.find("taken.tsv"), std::string::npos);
  const auto next = cuts_.begin(in_folder("next.tsv"), 0, {}).value();
  ASSERT_TRUE(cuts_.wait_created(next, kLong));
  EXPECT_FALSE(cuts_.failure_of(next));
  EXPECT_EQ(content(in_folder("taken.tsv")), "somebody else's");
}

TEST_F(CutSinkTest, ACommandLineThatIsNotUtf8DoesNotEndTheProgram) {
  feed(0, 100);
  const auto cut = cuts_.begin(in_folder("dump.tsv"), 0, {{"command", "a\xff"}}).value();
  cuts_.end(cut, 110 * kMillisecondNs, nlohmann::json::object());
  feed(100, 120);  // its end is later than all rows that its thread may have taken
  ASSERT_TRUE(cuts_.wait(cut, kLong));
  EXPECT_EQ(metadata("dump")["about"]["command"], "a\xef\xbf\xbd");
}

// The recording has its own columns, and none of the stream that it has no own column for.
TEST_F(CutSinkTest, OwnColumnsStandInPlaceOfTheStreams) {
  const Column tick = columns_of({"tick", "Tick", Kind::counter, Unit::count, {}}).front();
  const Column other = columns_of({"other", "Other", Kind::counter, Unit::count, {}}).front();
  const auto own = std::make_shared<OwnColumns>(std::vector<Column>{other, tick});
  const std::uint64_t read_ns = monotonic_ns();
  const std::vector<std::uint64_t> begun{40, 50, read_ns};
  const std::size_t inside = own->extend({{"state", "State", Kind::gauge, Unit::count, {}},
                                          {"disk", "Disk", Kind::gauge, Unit::count, {}},
                                          {"age", "Age", Kind::gauge, Unit::nanoseconds, {}}},
                                         begun, 2);
  RecordingInfo info;
  info.columns = {tick, columns_of({"daemon", "Daemon", Kind::gauge, Unit::count, {}}).front()};
  info.interval = std::chrono::milliseconds(1);
  info.start_monotonic_ns = monotonic_ns();
  info.rows_per_slot = 100;
  EXPECT_FALSE(cuts_.open(info)) << "it is open";
  ASSERT_TRUE(cuts_.close({}));
  ASSERT_TRUE(cuts_.open(info));
  const auto now = [&] { return monotonic_ns() - info.start_monotonic_ns; };
  CutOptions options;
  options.own_columns = own;
  const auto cut = cuts_.begin(in_folder("dump.tsv"), 0, {}, options).value();
  std::vector<std::uint64_t> words{now(), 1000, 1};
  own->add(1, 7);
  own->add(0, 70);
  own->set_all(inside, std::vector<std::uint64_t>{41, 50, UINT64_MAX});
  words.insert(words.end(), {now(), 1001, 2});
  own->add(1, 3);
  words.insert(words.end(), {now(), 1002, 3});
  ASSERT_TRUE(cuts_.write({words.data(), 3, 3}));
  cuts_.end(cut, words[6] + 1, {});
  const std::vector<std::uint64_t> later{now() + 2 * kMillisecondNs, 1003, 4};
  ASSERT_TRUE(cuts_.write({later.data(), 1, 3}));
  ASSERT_TRUE(cuts_.wait(cut, kLong));
  std::vector<std::string> values;
  for (const std::string& line : lines(in_folder("dump.tsv"))) {
    values.push_back(line.substr(line.find('\t') + 1));
  }
  const std::string age = std::to_string(info.start_monotonic_ns + words[0] - read_ns);
  EXPECT_EQ(values, (std::vector<std::string>{"tick\tstate\tdisk\tage", "0\t40\t50\t" + age,
                                              "7\t41\t50\t0", "10\t41\t50\t0"}));
}

}  // namespace
}  // namespace kymo
