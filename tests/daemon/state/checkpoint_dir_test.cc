#include "daemon/state/checkpoint_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lens/report/checkpoint_record.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

TEST(CheckpointDirTest, ANewOneIsPrivateAndHasItsFolders) {
  const test::TemporaryDirectory folder;
  const CheckpointDir dir(folder.path() + "/some/where");
  ASSERT_TRUE(create_checkpoint_dir(dir).ok());
  for (const std::string& path : {dir.path(), dir.partial_images(), dir.work(), dir.recordings()}) {
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_mode & 0777U, 0700U) << path;
  }
  EXPECT_FALSE(fs::exists(dir.images()));
  ASSERT_TRUE(publish_images(dir).ok());
  EXPECT_TRUE(fs::exists(dir.images()) && !fs::exists(dir.partial_images()));
}

TEST(CheckpointDirTest, ARecordThatNestsWithoutEndIsDamaged) {
  const test::TemporaryDirectory folder;
  const std::string deep(200'000, '[');
  static_cast<void>(folder.file("checkpoint.json", "{\"format_version\":1,\"job\":" + deep +
                                                       std::string(deep.size(), ']') + "}"));
  EXPECT_EQ(report::read_checkpoint_record(folder.path()).error().code, Code::data_loss);
}

TEST(CheckpointDirTest, ARecordThatIsTooLargeIsDamaged) {
  const test::TemporaryDirectory folder;
  std::string wide = "{\"format_version\":1,\"job\":[0";
  while (wide.size() <= report::kMaxRecordBytes) wide += ",0";
  static_cast<void>(folder.file("checkpoint.json", wide + "]}"));
  EXPECT_EQ(report::read_checkpoint_record(folder.path()).error().code, Code::data_loss);
}

TEST(CheckpointDirTest, OnlyTheOutputFilesOfItsOwnJobAreKymods) {
  const nlohmann::json record{{"job", {{"id", "j0123456789ab"}, {"name", "web"}}}};
  const auto at = [&](const std::string& path) { return report::output_file_at(record, path); };
  EXPECT_EQ(at("/var/lib/kymo/jobs/j0123456789ab/stdout"), "stdout");
  EXPECT_EQ(at("/elsewhere/jobs/j0123456789ab/stderr"), "stderr");
  for (const char* no : {"", "stdout", "jobs/j0123456789ab/stdout", "/jobs/j0123456789ab/other",
                         "/jobs/j0123456789ac/stdout", "/jobs/j0123456789ab/x/stdout"}) {
    EXPECT_EQ(at(no), "") << no;
  }
  EXPECT_EQ(report::output_file_at(nlohmann::json::object(), "/jobs//stdout"), "");
}

TEST(CheckpointDirTest, ACommandOfAnyLengthLeavesARecordThatCanBeRead) {
  const test::TemporaryDirectory folder;
  const CheckpointDir dir(folder.path());
  const std::vector<std::string> command(3, std::string(report::kMaxRecordBytes / 2, '\1'));
  ASSERT_TRUE(write_record(dir, {{"command", command}, {"pid", 7}}).ok());
  const auto record = report::read_checkpoint_record(folder.path());
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(record->at("pid"), 7);
  EXPECT_EQ(record->at("command").back(), "...");
  EXPECT_EQ(record->at("command").size(), 2U);
}

TEST(CheckpointDirTest, ALinkInOneThatSomebodyMadeIsNotFollowed) {
  const test::TemporaryDirectory folder;
  const CheckpointDir dir(folder.folder("c"));
  const std::string elsewhere = folder.file("elsewhere", R"({"format_version":1})");
  fs::create_symlink(elsewhere, dir.record());
  const auto record = report::read_checkpoint_record(dir.path());
  ASSERT_FALSE(record.ok());
  EXPECT_EQ(record.error().code, Code::permission_denied) << record.error().message;

  EXPECT_TRUE(check_no_linked_folders(dir).ok()) << "missing folders are permitted";
  static_cast<void>(folder.folder("c/work"));
  EXPECT_TRUE(check_no_linked_folders(dir).ok());
  fs::create_directory_symlink(folder.path(), dir.images());
  const Result<void> linked = check_no_linked_folders(dir);
  ASSERT_FALSE(linked.ok());
  EXPECT_NE(linked.error().message.find("/images: a link is in the way"), std::string::npos)
      << linked.error().message;
}

TEST(CheckpointDirTest, AnEmptyOneIsTakenAndAFullOneRefusedUntouched) {
  const test::TemporaryDirectory folder;
  EXPECT_TRUE(create_checkpoint_dir(CheckpointDir(folder.folder("empty"))).ok());
  const CheckpointDir full(folder.folder("full"));
  static_cast<void>(folder.file("full/something", "precious"));
  const Result<void> refused = create_checkpoint_dir(full);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::failed_precondition);
  EXPECT_NE(refused.error().message.find("is not empty"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(full.path()), fs::directory_iterator()), 1);
  EXPECT_FALSE(create_checkpoint_dir(CheckpointDir(full.path() + "/something")).ok());
}

TEST(CheckpointDirTest, AFailedDumpLeavesNoImages) {
  const test::TemporaryDirectory folder;
  const CheckpointDir dir(folder.path() + "/c");
  ASSERT_TRUE(create_checkpoint_dir(dir).ok());
  static_cast<void>(folder.file("c/images.partial/inventory.img", "half"));
  discard_images(dir);
  EXPECT_FALSE(fs::exists(dir.partial_images()));
}

TEST(CheckpointDirTest, ImagesDoNotReplaceWhatAnotherProgramMade) {
  const test::TemporaryDirectory folder;
  const CheckpointDir dir(folder.path() + "/c");
  ASSERT_TRUE(create_checkpoint_dir(dir).ok());
  static_cast<void>(folder.file("c/images.partial/inventory.img", "whole"));
  fs::create_directory(dir.images());
  const Result<void> refused = publish_images(dir);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::already_exists);
  EXPECT_NE(refused.error().message.find(is_taken(dir)), std::string::npos);
  fs::remove(dir.images());
  EXPECT_TRUE(publish_images(dir).ok());
}

TEST(CheckpointDirTest, RecordingsAreNumberedAndNoneIsOverwritten) {
  const test::TemporaryDirectory folder;
  const CheckpointDir dir(folder.path() + "/c");
  ASSERT_TRUE(create_checkpoint_dir(dir).ok());
  EXPECT_EQ(dir.next_recording("restore"), dir.recordings() + "/restore.tsv");
  static_cast<void>(folder.file("c/recordings/restore.tsv", ""));
  EXPECT_EQ(dir.next_recording("restore"), dir.recordings() + "/restore-2.tsv");
  static_cast<void>(folder.file("c/recordings/restore-2.tsv", ""));
  EXPECT_EQ(dir.next_recording("restore"), dir.recordings() + "/restore-3.tsv");
  static_cast<void>(folder.file("c/recordings/restore-3.pb.gz", ""));
  EXPECT_EQ(dir.next_recording("restore"), dir.recordings() + "/restore-4.tsv");
  static_cast<void>(folder.file("c/recordings/restore-4.meta.json", ""));
  EXPECT_EQ(dir.next_recording("restore"), dir.recordings() + "/restore-5.tsv");
}

TEST(CheckpointDirTest, TheRecordIsReadBackAndANewerOneRefusedByName) {
  const test::TemporaryDirectory folder;
  const CheckpointDir dir(folder.folder("c"));
  EXPECT_EQ(report::read_checkpoint_record(dir.path()).error().code, Code::not_found);
  ASSERT_TRUE(write_record(dir, {{"state", "complete"}}).ok());
  EXPECT_EQ(report::read_checkpoint_record(dir.path()).value(),
            nlohmann::json({{"format_version", 1}, {"state", "complete"}}));
  for (const char* damaged : {"", "{", "[]", "{}", R"({"format_version":"1"})"}) {
    static_cast<void>(folder.file("c/checkpoint.json", damaged));
    EXPECT_EQ(report::read_checkpoint_record(dir.path()).error().code, Code::data_loss) << damaged;
  }
  static_cast<void>(folder.file("c/checkpoint.json", R"({"format_version":2})"));
  EXPECT_NE(report::read_checkpoint_record(dir.path()).error().message.find("format_version 2"),
            std::string::npos);
}

}  // namespace
}  // namespace kymo::daemon
