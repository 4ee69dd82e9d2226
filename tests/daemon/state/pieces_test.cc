#include "daemon/state/pieces.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "daemon/state/foreign.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

class PiecesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"work", "images", "recordings"}) {
      fs::create_directory(folder_.path() + "/" + name);
    }
    for (const char* name :
         {"checkpoint.json", "work/dump.log", "work/stats-dump", "images/stats-dump",
          "images/pages-1.img", "images/core-7.img", "recordings/dump.tsv"}) {
      static_cast<void>(folder_.file(name, std::string("text of ") + name));
    }
  }

  const std::unique_ptr<confine::Helper> helper_ =
      confine::Helper::start(foreign_readers()).value();
  const test::TemporaryDirectory folder_;
};

TEST_F(PiecesTest, ImagesAreNeitherListedNorRead) {
  const auto names = shown_files_in(*helper_, folder_.path());
  ASSERT_TRUE(names.ok()) << names.error().message;
  EXPECT_EQ(*names,
            (std::vector<std::string>{"checkpoint.json", "images/stats-dump", "recordings/dump.tsv",
                                      "work/dump.log", "work/stats-dump"}));
  for (const std::string& name : *names) {
    const auto piece = piece_of(*helper_, folder_.path(), name, 5);
    ASSERT_TRUE(piece.ok()) << piece.error().message;
    EXPECT_EQ(*piece, "of " + name);
    EXPECT_EQ(piece_of(*helper_, folder_.path(), name, 500).value(), "");
  }
  for (const char* name :
       {"images/pages-1.img", "images/core-7.img", "../", "images/../images/pages-1.img",
        "recordings/../images/pages-1.img", "/etc/passwd", "work/", "work/..", "images", "",
        "recordings/.hidden", "work/criu-netns.img"}) {
    EXPECT_EQ(piece_of(*helper_, folder_.path(), name, 0).error().code, Code::permission_denied)
        << name;
  }
}

TEST_F(PiecesTest, NoLinkIsFollowedAndNoPipeIsWaitedFor) {
  fs::create_symlink(folder_.path() + "/images/pages-1.img", folder_.path() + "/work/restore.log");
  fs::create_symlink("/etc/passwd", folder_.path() + "/recordings/passwd.tsv");
  ASSERT_EQ(::mkfifo((folder_.path() + "/work/pipe.log").c_str(), 0600), 0);
  const auto names = shown_files_in(*helper_, folder_.path());
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->size(), 5U);
  for (const char* name : {"work/restore.log", "recordings/passwd.tsv", "work/pipe.log"}) {
    EXPECT_FALSE(piece_of(*helper_, folder_.path(), name, 0).ok()) << name;
  }
}

TEST_F(PiecesTest, TheOutputOfAJobIsReadFromWhereTheCallerIs) {
  const std::string path = folder_.file("stdout", "one\ntwo\nthree\n");
  const auto tail = output_tail(*helper_, path, 1);
  ASSERT_TRUE(tail.ok()) << tail.error().message;
  EXPECT_EQ(tail->text, "");
  EXPECT_EQ(tail->offset, 8U);
  const auto rest = output_from(*helper_, path, tail->offset);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->text, "three\n");
  EXPECT_EQ(rest->offset, 14U);
  EXPECT_EQ(output_from(*helper_, path, 14).value().text, "");
  EXPECT_EQ(output_from(*helper_, folder_.path() + "/none", 3).value().text, "");
}

// Whoever takes over the reader answers what he likes.
TEST_F(PiecesTest, AnAnswerWithoutAnOffsetIsRefused) {
  const auto liar =
      confine::Helper::start({{"read the output of a job",
                               [](const std::string&) { return Result<std::string>("text"); }},
                              {"list what is shown of a checkpoint",
                               [](const std::string&) {
                                 return Result<std::string>(
                                     R"({"files":["../../etc/passwd",7,"images/pages-1.img"]})");
                               }}})
          .value();
  EXPECT_EQ(output_from(*liar, folder_.path(), 0).error().code, Code::data_loss);
  EXPECT_EQ(shown_files_in(*liar, folder_.path()).value(), std::vector<std::string>());
}

}  // namespace
}  // namespace kymo::daemon
