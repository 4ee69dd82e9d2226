#include "recorder/sampling/files/recording_files.h"

#include <nlohmann/json.hpp>

#include "recorder/metrics/metric_rules.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

class RecordingFilesTest : public TemporaryFolderTest {
 protected:
  static RecordingInfo info() {
    RecordingInfo info;
    info.columns = columns_of({"steps", "Steps", Kind::counter, Unit::count, {}});
    info.interval = std::chrono::microseconds(1);
    return info;
  }
  nlohmann::json metadata() { return nlohmann::json::parse(content(in_folder("run.meta.json"))); }
};

TEST_F(RecordingFilesTest, DescribesARunFromItsStart) {
  const auto files = RecordingFiles::create(in_folder("run.tsv"), info(), {{"job", "a"}});
  ASSERT_TRUE(files);
  EXPECT_EQ(metadata()["state"], "running");
  EXPECT_EQ(metadata()["format_version"], 1);
  EXPECT_EQ(metadata()["about"]["job"], "a");
  EXPECT_EQ(metadata()["columns"][0]["name"], "steps");
  EXPECT_EQ(content(in_folder("run.tsv")), "Time (ns)\tsteps\n");
}

TEST_F(RecordingFilesTest, KeepsTheHundredLongestGapsAndEveryLine) {
  RecordingFiles files = RecordingFiles::create(in_folder("run.tsv"), info(), {}).value();
  for (std::uint64_t i = 1; i <= 300; ++i) {
    files.add_gap({i * 1000, i * 1000 + i, i, MissCause::late});
  }
  ASSERT_TRUE(files.write_metadata({}, "ended"));
  EXPECT_EQ(lines(in_folder("run.gaps.tsv")).size(), 301U);
  EXPECT_EQ(lines(in_folder("run.gaps.tsv"))[1], "1000\t1001\t1\tlate");
  const nlohmann::json gaps = metadata()["longest_gaps"];
  ASSERT_EQ(gaps.size(), 100U);
  EXPECT_EQ(gaps[0]["ticks"], 300);
  EXPECT_EQ(gaps[99]["ticks"], 201);
}

TEST_F(RecordingFilesTest, LeavesNothingWhereItCannotBegin) {
  std::ofstream(in_folder("run.gaps.tsv")) << "another's";
  EXPECT_FALSE(RecordingFiles::create(in_folder("run.tsv"), info(), {}));
  EXPECT_FALSE(std::filesystem::exists(in_folder("run.tsv")));
  EXPECT_EQ(content(in_folder("run.gaps.tsv")), "another's");
}

TEST_F(RecordingFilesTest, TheMetadataOfAnotherRecordingWereWrittenOver) {
  std::ofstream(in_folder("run.meta.json")) << "another's";
  const auto refused = RecordingFiles::create(in_folder("run.tsv"), info(), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::already_exists);
  EXPECT_EQ(refused.error().message, "cannot create " + in_folder("run.meta.json") +
                                         ": File exists; choose another name or move it away");
  EXPECT_EQ(content(in_folder("run.meta.json")), "another's");
  EXPECT_FALSE(std::filesystem::exists(in_folder("run.tsv")));
  EXPECT_FALSE(std::filesystem::exists(in_folder("run.gaps.tsv")));
}

TEST_F(RecordingFilesTest, WritesMoreRowsThanItsBufferHolds) {
  RecordingFiles files = RecordingFiles::create(in_folder("run.tsv"), info(), {}).value();
  constexpr std::size_t kRows = 50'000;
  std::vector<std::uint64_t> words;
  for (std::size_t i = 0; i < kRows; ++i) {
    words.insert(words.end(), {i + 5, i * i});
  }
  ASSERT_TRUE(files.append({words.data(), kRows, 2}, 5));
  const std::vector<std::string> tsv = lines(in_folder("run.tsv"));
  ASSERT_EQ(tsv.size(), kRows + 1);
  EXPECT_EQ(tsv[1], "0\t0");
  EXPECT_EQ(tsv[kRows], "49999\t2499900001");
  EXPECT_EQ(files.bytes(), content(in_folder("run.tsv")).size());
}

TEST_F(RecordingFilesTest, CompressesWhereTheNameAsksForIt) {
  if (!has_zstd()) {
    GTEST_SKIP() << "built without zstd";
  }
  RecordingFiles files = RecordingFiles::create(in_folder("run.tsv.zst"), info(), {}).value();
  constexpr std::size_t kRows = 50'000;
  std::vector<std::uint64_t> words;
  std::string expected = "Time (ns)\tsteps\n";
  for (std::uint64_t i = 0; i < kRows; ++i) {
    words.insert(words.end(), {i, i * i});
    expected += std::to_string(i) + '\t' + std::to_string(i * i) + '\n';
  }
  ASSERT_TRUE(files.append({words.data(), kRows, 2}, 0));
  EXPECT_EQ(text(in_folder("run.tsv.zst")), expected);
  EXPECT_EQ(files.bytes(), content(in_folder("run.tsv.zst")).size());
  EXPECT_LT(files.bytes(), expected.size() / 2);
  EXPECT_EQ(metadata()["state"], "running");
  // Only whole frames are appended. If one is cut off again, the file is as before.
  const std::uint64_t before = files.bytes();
  {
    const FileSizeLimit limit(before + 10);
    EXPECT_EQ(files.append({words.data(), kRows, 2}, 0).error().errno_value, EFBIG);
  }
  EXPECT_EQ(files.bytes(), before);
  EXPECT_EQ(text(in_folder("run.tsv.zst")), expected);
}

TEST_F(RecordingFilesTest, ARecordingThatCannotBeFinishedIsMarkedInPlace) {
  RecordingInfo described = info();
  described.start_monotonic_ns = 7;
  RecordingFiles files =
      RecordingFiles::create(in_folder("run.tsv"), described, {{"state", "running"}}).value();
  const std::size_t size = content(in_folder("run.meta.json")).size();
  {
    const FileSizeLimit full(size + 100);
    for (std::uint64_t i = 1; i <= 500; ++i) {
      files.add_gap({i * 1000, i * 1000 + i, i, MissCause::late});
    }
    EXPECT_EQ(files.write_metadata({}, "ended").error().code, Code::data_loss);
    EXPECT_EQ(metadata()["state"], "running");
    files.mark_failed();
  }
  EXPECT_EQ(metadata()["state"], "failed");
  EXPECT_EQ(metadata()["about"]["state"], "running");
  EXPECT_EQ(content(in_folder("run.meta.json")).size(), size);
}

TEST_F(RecordingFilesTest, RefusesAnotherEnding) {
  const auto refused = RecordingFiles::create(in_folder("run.csv"), info(), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(".tsv.zst"), std::string::npos);
}

}  // namespace
}  // namespace kymo
