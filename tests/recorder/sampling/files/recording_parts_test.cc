#include "recorder/sampling/files/recording_parts.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "recorder/metrics/metric_rules.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

class RecordingPartsTest : public TemporaryFolderTest {
 protected:
  void SetUp() override {
    TemporaryFolderTest::SetUp();
    info_.columns = columns_of({"steps", "Steps", Kind::counter, Unit::count, {}});
    info_.interval = std::chrono::nanoseconds(10);
    path_ = in_folder("run.tsv");
  }
  // Writes `count` rows, with numbers that continue after the last one.
  Result<void> write(RecordingParts& parts, std::size_t count) {
    std::vector<std::uint64_t> words;
    for (std::size_t i = 0; i < count; ++i) {
      words.push_back(number_ * 10 + 1);
      words.push_back(number_++);
    }
    return parts.write({words.data(), count, 2});
  }
  nlohmann::json metadata(const std::string& stem) {
    return nlohmann::json::parse(content(in_folder(stem + ".meta.json")));
  }
  // Returns the numbers in a part, which must be valid without the other parts.
  std::vector<std::uint64_t> numbers(const std::string& name) {
    const std::vector<std::string> all = lines(in_folder(name));
    EXPECT_FALSE(all.empty()) << name;
    std::vector<std::uint64_t> found;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 0) {
        EXPECT_EQ(all[i], "Time (ns)\tsteps") << name;
      } else {
        found.push_back(std::stoull(all[i].substr(all[i].find('\t') + 1)));
      }
    }
    return found;
  }
  static std::vector<std::uint64_t> range(std::uint64_t first, std::uint64_t end) {
    std::vector<std::uint64_t> all(end - first);
    std::iota(all.begin(), all.end(), first);
    return all;
  }
  [[nodiscard]] bool exists(const std::string& name) const {
    return std::filesystem::exists(in_folder(name));
  }

  RecordingInfo info_;
  std::string path_;
  std::uint64_t number_ = 0;
};

TEST_F(RecordingPartsTest, PartsAreNumberedBeforeTheEnding) {
  EXPECT_EQ(part_path("a.tsv/b.tsv", 0), "a.tsv/b.tsv");
  EXPECT_EQ(part_path("a.tsv/b.tsv", 7), "a.tsv/b.7.tsv");
  EXPECT_EQ(part_path("b.tsv.zst", 7), "b.7.tsv.zst");
}

TEST_F(RecordingPartsTest, APartThatIsLargeEnoughIsFollowedByTheNext) {
  RecordingParts parts = RecordingParts::create(path_, {.rotate_bytes = 120}, info_).value();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(write(parts, 5));
  }
  parts.add_gap({300, 320, 2, MissCause::late});
  ProfilerStats stats;
  stats.rows_written = 30;
  ASSERT_TRUE(parts.write_metadata(stats, "ended"));

  std::vector<std::uint64_t> all;
  std::uint64_t due = 0;
  std::uint64_t rows = 0;
  std::uint64_t number = 0;
  for (; exists(std::filesystem::path(part_path("run.tsv", number))); ++number) {
    const std::string name = part_path("run.tsv", number);
    const auto part = numbers(name);
    all.insert(all.end(), part.begin(), part.end());
    const nlohmann::json meta = metadata(name.substr(0, name.size() - 4));
    EXPECT_EQ(meta["state"], "ended") << name;
    EXPECT_EQ(meta["columns"].size(), 1U);
    EXPECT_EQ(meta["stats"]["rows_written"], part.size());
    due += meta["stats"]["ticks_due"].get<std::uint64_t>();
    rows += part.size();
    EXPECT_EQ(meta["part"]["number"], number);
    EXPECT_EQ(meta["part"].value("previous", ""),
              number == 0 ? "" : part_path("run.tsv", number - 1));
    const bool last = !exists(part_path("run.tsv", number + 1));
    EXPECT_EQ(meta["part"].value("next", ""), last ? "" : part_path("run.tsv", number + 1));
  }
  EXPECT_GE(number, 3U);
  EXPECT_EQ(all, range(0, 30));
  EXPECT_EQ(due, rows + 2) << "the gap must be counted in only one part";
}

// The recorder counts a tick up to a slot before its row is written.
TEST_F(RecordingPartsTest, APartHasNoFiguresOfTheTicksOfOtherParts) {
  RecordingParts parts =
      RecordingParts::create(path_, {.rotate_after = std::chrono::nanoseconds(50)}, info_).value();
  ProfilerStats stats;
  const auto count = [&](std::uint64_t ticks) {
    stats.rows_captured += ticks;
    stats.rows_on_time += ticks;
    stats.missed_late += ticks;
    stats.late_sample += ticks;
    stats.ticks_due += 2 * ticks;
    stats.timing_error_ns += ticks;
    stats.timing_error_max_ns = stats.timing_error_p999_ns = 1;
    return parts.write_metadata(stats, "running");
  };
  ASSERT_TRUE(write(parts, 1));
  ASSERT_TRUE(count(1));
  EXPECT_EQ(metadata("run")["stats"]["rows_on_time"], 1) << "the only part is the whole recording";
  EXPECT_EQ(metadata("run")["stats"]["late_sample"], 1);
  ASSERT_TRUE(write(parts, 5));  // the part ends
  ASSERT_TRUE(write(parts, 3));
  ASSERT_TRUE(count(99));
  stats.rows_written = 9;
  ASSERT_TRUE(parts.write_metadata(stats, "ended"));
  for (const char* part : {"run", "run.1"}) {
    const nlohmann::json figures = metadata(part)["stats"];
    EXPECT_EQ(figures["rows_captured"], figures["rows_written"]) << part;
    for (const char* unknown : {"rows_on_time", "late_sample", "late_stolen", "timing_error_ns",
                                "timing_error_max_ns", "timing_error_p999_ns", "spin_ns"}) {
      EXPECT_FALSE(figures.contains(unknown)) << part << ' ' << unknown;
    }
  }
}

TEST_F(RecordingPartsTest, APartThatIsOldEnoughIsFollowedByTheNext) {
  RecordingParts parts =
      RecordingParts::create(path_, {.rotate_after = std::chrono::nanoseconds(50)}, info_).value();
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(write(parts, 1));
  }
  EXPECT_EQ(numbers("run.tsv"), range(0, 5)) << "five rows of 10 ns last 50 ns";
  EXPECT_EQ(numbers("run.1.tsv"), range(5, 9));
}

// Before, a part ended only after the group of rows in which its time was over.
TEST_F(RecordingPartsTest, APartEndsAfterTheGroupThatIsNearestToItsTime) {
  RecordingParts parts =
      RecordingParts::create(path_, {.rotate_after = std::chrono::nanoseconds(100)}, info_).value();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(write(parts, 4));
  }
  EXPECT_EQ(numbers("run.tsv"), range(0, 8)) << "80 ns or 120: the next one would be as far";
  EXPECT_EQ(numbers("run.1.tsv"), range(8, 16));
}

TEST_F(RecordingPartsTest, TheOldestGoFirstAndTheBoundHolds) {
  constexpr std::uint64_t kKeep = 8000;
  RecordingParts parts =
      RecordingParts::create(path_, {.rotate_bytes = 500, .keep_bytes = kKeep}, info_).value();
  constexpr std::uint64_t kOneWrite = 1000;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(write(parts, 10));
    ASSERT_TRUE(parts.write_metadata({}, "running"));
    std::uint64_t kept = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      kept += entry.file_size();
    }
    ASSERT_LE(kept, kKeep + 2 * kOneWrite) << "after write " << i;
  }
  EXPECT_FALSE(exists("run.tsv"));
  EXPECT_FALSE(exists("run.meta.json"));
  EXPECT_FALSE(exists("run.gaps.tsv"));
  const std::uint64_t newest = parts.place().file;
  const auto last = numbers(part_path("run.tsv", newest - 1));
  ASSERT_FALSE(last.empty()) << "more than the current part must be kept";
}

TEST_F(RecordingPartsTest, TheBoundHoldsOverThePartsOfEarlierStarts) {
  constexpr std::uint64_t kKeep = 8000;
  std::vector<std::string> earlier;
  const auto kept = [&] {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      bytes += entry.file_size();
    }
    return bytes;
  };
  for (int start = 1; start <= 6; ++start) {
    const std::string path = in_folder("run-" + std::to_string(start) + ".tsv");
    const TsvOptions options{.rotate_bytes = 500, .keep_bytes = kKeep};
    RecordingParts parts = RecordingParts::create(path, options, info_, earlier).value();
    for (int i = 0; i < 12; ++i) {
      ASSERT_TRUE(write(parts, 10));
    }
    ASSERT_TRUE(parts.write_metadata({}, "ended"));
    for (std::uint64_t part = 0; part <= parts.place().file; ++part) {
      earlier.push_back(part_path(path, part));
    }
    EXPECT_LE(kept(), kKeep + 2000) << "after start " << start;
  }
  EXPECT_FALSE(exists("run-1.tsv")) << "the oldest part must be removed first";
  EXPECT_FALSE(exists("run-1.gaps.tsv"));
  EXPECT_FALSE(exists("run-1.meta.json"));
  EXPECT_TRUE(exists("run-6.tsv")) << "the newest parts must stay";
}

TEST_F(RecordingPartsTest, ANegativeTimeOfAPartIsRefused) {
  const auto parts =
      RecordingParts::create(path_, {.rotate_after = std::chrono::nanoseconds(-1)}, info_);
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, Code::invalid_argument);
  EXPECT_EQ(parts.error().message, "cannot record to " + path_ +
                                       ": the time of a part is -1 ns: must be 0 (none) or more");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(RecordingPartsTest, BoundsThatContradictAreRefused) {
  const auto parts =
      RecordingParts::create(path_, {.rotate_bytes = 600, .keep_bytes = 1000}, info_);
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, Code::invalid_argument);
  EXPECT_NE(parts.error().message.find("at most half"), std::string::npos);
  EXPECT_FALSE(exists("run.tsv"));
}

TEST_F(RecordingPartsTest, ANameThatIsTakenIsPassedOver) {
  std::ofstream(in_folder("run.1.tsv")) << "somebody else's";
  RecordingParts parts = RecordingParts::create(path_, {.rotate_bytes = 1}, info_).value();
  ASSERT_TRUE(write(parts, 1));
  EXPECT_EQ(parts.place().file, 2U);
  EXPECT_EQ(content(in_folder("run.1.tsv")), "somebody else's");
  EXPECT_EQ(metadata("run")["part"]["next"], "run.2.tsv");
}

TEST_F(RecordingPartsTest, GoesOnWhereTheNextPartCannotBeBegun) {
  RecordingParts parts = RecordingParts::create(path_, {.rotate_bytes = 1}, info_).value();
  // The folder is renamed during the recording: the open file can still be written, but no new file
  // can be made.
  std::filesystem::rename(folder_, folder_ + ".away");
  ASSERT_TRUE(write(parts, 3));
  ASSERT_TRUE(write(parts, 3));
  std::filesystem::rename(folder_ + ".away", folder_);
  ASSERT_TRUE(write(parts, 1));
  EXPECT_EQ(numbers("run.tsv"), range(0, 7));
  ASSERT_TRUE(write(parts, 1));
  EXPECT_EQ(numbers("run.1.tsv"), range(7, 8));
}

TEST_F(RecordingPartsTest, APartWhoseRowsAreGoneEndsAndNamesTheNext) {
  for (const char* how : {"removed", "cut"}) {
    SCOPED_TRACE(how);
    const std::string name = how;
    number_ = 0;
    RecordingParts parts = RecordingParts::create(in_folder(name + ".tsv"), {}, info_).value();
    ASSERT_TRUE(write(parts, 2));
    if (name == "removed") {
      std::filesystem::remove(in_folder(name + ".tsv"));
    } else {
      std::filesystem::resize_file(in_folder(name + ".tsv"), 0);
    }
    ASSERT_TRUE(write(parts, 3));
    ASSERT_TRUE(parts.write_metadata({}, "ended"));
    EXPECT_EQ(parts.lost_rows("ends").rows, 2U);
    const nlohmann::json gone = metadata(name);
    EXPECT_EQ(gone["state"], "ended");
    EXPECT_EQ(gone["part"]["next"], name + ".1.tsv");
    EXPECT_EQ(gone["stats"]["rows_written"], 0);
    EXPECT_EQ(gone["stats"]["missed_sink_error"], 2);
    EXPECT_EQ(gone["stats"]["ticks_due"], 2);
    EXPECT_EQ(metadata(name + ".1")["part"]["previous"], name + ".tsv");
    EXPECT_EQ(metadata(name + ".1")["stats"]["rows_written"], 3);
  }
}

TEST_F(RecordingPartsTest, OfAFileThatWasCutOffTheRowsBehindTheCutAreGoneAndListed) {
  RecordingParts parts = RecordingParts::create(path_, {}, info_).value();
  ASSERT_TRUE(write(parts, 2));
  const std::uintmax_t kept = std::filesystem::file_size(path_);
  ASSERT_TRUE(write(parts, 3));
  std::filesystem::resize_file(path_, kept + 1);  // in the middle of a row
  EXPECT_EQ(parts.lost_rows("ends").rows, 3U);
  ASSERT_TRUE(write(parts, 1));
  ASSERT_TRUE(parts.write_metadata({}, "ended"));
  EXPECT_EQ(parts.lost_rows("ends").rows, 3U);
  const nlohmann::json cut = metadata("run");
  EXPECT_EQ(cut["stats"]["rows_written"], 2);
  EXPECT_EQ(cut["stats"]["missed_sink_error"], 3);
  EXPECT_EQ(cut["stats"]["ticks_due"], 5);
  ASSERT_EQ(cut["longest_gaps"].size(), 1U);
  EXPECT_EQ(cut["longest_gaps"][0]["ticks"], 3);
  EXPECT_EQ(lines(in_folder("run.gaps.tsv")).size(), 2U);
}

TEST_F(RecordingPartsTest, RowsThatAreGoneAreSaidAlthoughNoRowFollows) {
  RecordingParts parts = RecordingParts::create(path_, {}, info_).value();
  ASSERT_TRUE(write(parts, 2));
  EXPECT_TRUE(parts.lost_rows("goes on").text.empty());
  std::filesystem::remove(path_);
  ASSERT_TRUE(parts.write_metadata({}, "running"));
  const LostRows lost = parts.lost_rows("goes on");
  EXPECT_EQ(lost.rows, 2U);
  EXPECT_EQ(lost.text, path_ +
                           " was removed or replaced by another program while it was recorded: of "
                           "the rows that were written, 2 are gone; the recording goes on in " +
                           in_folder("run.1.tsv"));
  ASSERT_TRUE(write(parts, 3));
  EXPECT_EQ(parts.lost_rows("goes on").text, lost.text) << "the same words while it goes on";
  EXPECT_EQ(metadata("run")["state"], "ended");
}

TEST_F(RecordingPartsTest, AFileThatIsRemovedBeforeItsFirstRowIsSaid) {
  RecordingParts parts = RecordingParts::create(path_, {}, info_).value();
  std::filesystem::remove(path_);
  ASSERT_TRUE(write(parts, 2));
  const std::string said = path_ +
                           " was removed or replaced by another program while it was recorded, "
                           "before it had a row; the rows after are in " +
                           in_folder("run.1.tsv");
  EXPECT_EQ(parts.trouble(), said);
  EXPECT_EQ(parts.lost_rows("goes on").rows, 0U);
  ASSERT_TRUE(parts.write_metadata({}, "ended"));
  EXPECT_EQ(parts.trouble(), said);
  EXPECT_EQ(numbers("run.1.tsv"), range(0, 2));
}

TEST_F(RecordingPartsTest, GapsThatWereLostInAnEarlierPartAreSaidAtTheEnd) {
  const std::shared_ptr<Sink> sink = make_tsv_sink(path_, {.rotate_bytes = 120});
  ASSERT_TRUE(sink->open(info_));
  std::filesystem::remove(in_folder("run.gaps.tsv"));
  const std::string lost = in_folder("run.gaps.tsv") + " was removed or replaced";
  sink->progress({});
  EXPECT_TRUE(sink->lost_rows().text.starts_with(lost)) << sink->lost_rows().text;
  EXPECT_EQ(sink->lost_rows().rows, 0U);
  while (!exists("run.1.tsv")) {
    const std::uint64_t words[] = {number_ * 10 + 1, number_};
    ASSERT_TRUE(sink->write({words, 1, 2}));
    ++number_;
  }
  sink->progress({});
  EXPECT_TRUE(sink->lost_rows().text.starts_with(lost)) << sink->lost_rows().text;
  const Result<void> closed = sink->close({});
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::data_loss);
  EXPECT_TRUE(closed.error().message.starts_with(lost)) << closed.error().message;
}

TEST_F(RecordingPartsTest, GapsThatWaitForAFullDiskAreSaidUntilTheyAreWritten) {
  RecordingParts parts = RecordingParts::create(path_, {}, info_).value();
  {
    const FileSizeLimit full(std::filesystem::file_size(in_folder("run.gaps.tsv")));
    parts.add_gap({300, 320, 2, MissCause::late});
    EXPECT_EQ(parts.trouble(), "gaps wait in memory, because they cannot be written to " +
                                   in_folder("run.gaps.tsv") + ": File too large");
  }
  parts.add_gap({400, 420, 2, MissCause::late});
  EXPECT_EQ(parts.trouble(), "");
  EXPECT_EQ(lines(in_folder("run.gaps.tsv")).size(), 3U);
}

TEST_F(RecordingPartsTest, MetadataThatWereRemovedWithTheirRowsDoNotComeBack) {
  RecordingParts parts = RecordingParts::create(path_, {}, info_).value();
  ASSERT_TRUE(write(parts, 2));
  for (const char* name : {"run.tsv", "run.meta.json", "run.gaps.tsv"}) {
    std::filesystem::remove(in_folder(name));
  }
  ASSERT_TRUE(write(parts, 2));
  EXPECT_FALSE(exists("run.meta.json"));
  EXPECT_EQ(metadata("run.1")["part"]["previous"], "run.tsv");
}

// If a process is restored from an image that is older than its recording, the file has more rows
// than the process has written.
TEST_F(RecordingPartsTest, RowsOfAnotherHandAreLeftAloneAndANewPartBegins) {
  RecordingParts parts = RecordingParts::create(path_, {}, info_).value();
  ASSERT_TRUE(write(parts, 2));
  std::ofstream(path_, std::ios::app) << "21\t2\n";
  std::ofstream(in_folder("run.meta.json")) << "the other's";
  ASSERT_TRUE(write(parts, 2));
  EXPECT_EQ(content(path_), "Time (ns)\tsteps\n1\t0\n11\t1\n21\t2\n");
  EXPECT_EQ(content(in_folder("run.meta.json")), "the other's");
  EXPECT_EQ(numbers("run.1.tsv"), range(2, 4));
  ASSERT_TRUE(parts.write_metadata({}, "ended"));
  EXPECT_EQ(metadata("run.1")["part"]["previous"], "run.tsv");
}

TEST_F(RecordingPartsTest, AStrayLineEndsThePartAndNamesTheNext) {
  RecordingParts parts = RecordingParts::create(path_, {}, info_).value();
  ASSERT_TRUE(write(parts, 2));
  ASSERT_TRUE(parts.write_metadata({}, "running"));
  EXPECT_EQ(parts.trouble(), "");
  std::ofstream(path_, std::ios::app) << "garbage\n";
  ASSERT_TRUE(write(parts, 3));
  const std::string said =
      path_ +
      " has lines that this recorder did not write: another program has written to it, or this "
      "process was restored from an older image; the rows after are in " +
      in_folder("run.1.tsv");
  EXPECT_EQ(parts.trouble(), said);
  EXPECT_EQ(parts.lost_rows("goes on").text, "") << "no row is gone";
  ASSERT_TRUE(parts.write_metadata({}, "ended"));
  EXPECT_EQ(parts.trouble(), said);
  const nlohmann::json first = metadata("run");
  EXPECT_EQ(first["state"], "ended");
  EXPECT_EQ(first["part"]["next"], "run.1.tsv");
  EXPECT_EQ(first["stats"]["rows_written"], 2);
  EXPECT_EQ(content(path_), "Time (ns)\tsteps\n1\t0\n11\t1\ngarbage\n");
  EXPECT_EQ(numbers("run.1.tsv"), range(2, 5));
}

}  // namespace
}  // namespace kymo
