#include "lens/analysis/find_recordings.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "temp_folder.h"

namespace kymo::analysis {
namespace {

TEST(FindRecordings, ListsACheckpointsRecordingsInNaturalOrder) {
  const tests::TempFolder folder;
  for (const char* name : {"restore-10.tsv", "restore.tsv", "dump.gaps.tsv", "dump.tsv",
                           "dump.meta.json", "restore-2.tsv"}) {
    static_cast<void>(folder.file(std::string("recordings/") + name, ""));
  }
  static_cast<void>(folder.file("other.tsv", ""));
  auto found = find_recordings(folder / "");
  ASSERT_TRUE(found.ok());
  std::vector<std::string> names;
  for (const std::string& path : *found) {
    names.push_back(std::filesystem::path(path).filename().string());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"dump.tsv", "restore.tsv", "restore-2.tsv",
                                             "restore-10.tsv"}));
}

TEST(FindRecordings, TakesAFileAndAPlainFolder) {
  const tests::TempFolder folder;
  const std::string path = folder.file("run.tsv", "");
  EXPECT_EQ(*find_recordings(path), (std::vector<std::string>{path}));
  EXPECT_EQ(find_recordings(folder / "")->size(), 1U);
}

TEST(FindRecordings, SaysWhereItLooked) {
  const tests::TempFolder folder;
  auto none = find_recordings(folder / "");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("folder recordings"), std::string::npos);
  auto missing = find_recordings(folder / "missing");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::not_found);
}

TEST(FindRecordings, AShellsGlobThatMatchesTheListsOfGapsBringsTheRecordingsAlone) {
  const tests::TempFolder folder;
  std::vector<std::string> all;
  for (const char* name : {"r1.gaps.tsv", "r1.meta.json", "r1.tsv", "r2.gaps.tsv", "r2.tsv"}) {
    all.push_back(folder.file(name, ""));
  }
  EXPECT_EQ(*find_all_recordings(all),
            (std::vector<std::string>{folder / "r1.tsv", folder / "r2.tsv"}));
  // The first part of this one was removed, and its companions were not.
  EXPECT_EQ(*find_all_recordings({folder.file("r3.gaps.tsv", ""), folder.file("r3.1.tsv", "")}),
            std::vector<std::string>{folder / "r3.1.tsv"});
}

TEST(FindRecordings, ACompanionFileAloneIsRefusedByTheRecordingsName) {
  const tests::TempFolder folder;
  const std::string gaps = folder.file("r1.gaps.tsv", "");
  static_cast<void>(folder.file("r1.tsv.zst", ""));
  const std::string other = folder.file("r2.tsv", "");
  // The gaps of r1 are named together with the recording r2. They must not be skipped silently: r1 would then
  // not be compared.
  const auto refused = find_all_recordings({gaps, other});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "read " + gaps + ": it is the list of gaps of " +
                                         (folder / "r1.tsv.zst") + ", not a recording; give " +
                                         (folder / "r1.tsv.zst"));
  EXPECT_FALSE(recordings_to_compare(gaps, "").ok());
  EXPECT_FALSE(find_recordings(folder.file("r2.meta.json", "{}")).ok());
}

}  // namespace
}  // namespace kymo::analysis
