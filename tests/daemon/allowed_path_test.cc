#include "daemon/allowed_path.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

class AllowedPathTest : public testing::Test {
 protected:
  AllowedPathTest() {
    for (const char* name : {"/in", "/in/there", "/other", "/state"}) {
      fs::create_directories(root_ + name);
    }
    fs::create_directory_symlink(root_ + "/other", root_ + "/in/out");
    fs::create_directory_symlink(root_ + "/in", root_ + "/to-in");
    fs::create_directory_symlink(root_ + "/nowhere/yet", root_ + "/in/dangling");
    config_.state_dir = root_ + "/state";
    config_.allowed_directories = {root_ + "/in"};
  }
  [[nodiscard]] Result<std::string> look(const std::string& path) const {
    return allowed_path(config_, "dump into", path);
  }

  test::TemporaryDirectory folder_;
  std::string root_ = fs::canonical(folder_.path());
  Config config_;
};

TEST_F(AllowedPathTest, WhatLiesInADirectoryIsTakenAsTheSystemWillTakeIt) {
  for (const auto& [asked, meant] : std::vector<std::pair<std::string, std::string>>{
           {"/in", "/in"},
           {"/in/", "/in"},
           {"/in/there/new/newer", "/in/there/new/newer"},
           {"/in/./there/../x//y/", "/in/x/y"},
           {"/to-in/there", "/in/there"},
           {"/other/../in/x", "/in/x"},
           {"/in/out/../in", "/in"},  // out and back
           {"/state/checkpoints/web-1", "/state/checkpoints/web-1"}}) {
    const auto path = look(root_ + asked);
    ASSERT_TRUE(path.ok()) << path.error().message;
    EXPECT_EQ(*path, root_ + meant) << asked;
  }
}

TEST_F(AllowedPathTest, WhatLeadsOutIsRefusedByWhateverWay) {
  for (const char* asked :
       {"", "/", "/inside", "/in/..", "/in/../other/x", "/in/../in/../other", "/in/out",
        "/in/out/x/y", "/to-in/out/x", "/other", "/in/new/../../other", "/in/dangling/x",
        "/state/../other", "/state-2"}) {
    const auto path = look(root_ + asked);
    ASSERT_FALSE(path.ok()) << asked << " is taken for " << *path;
    EXPECT_EQ(path.error().code, Code::permission_denied) << asked;
    EXPECT_NE(path.error().message.find("--allow-directory"), std::string::npos);
  }
  for (const std::string& asked : {std::string(), std::string("in"), std::string("../in"),
                                   root_ + "/in" + '\0' + "/../../other"}) {
    const auto path = look(asked);
    ASSERT_FALSE(path.ok());
    EXPECT_EQ(path.error().code, Code::invalid_argument);
  }
}

TEST_F(AllowedPathTest, WithoutDirectoriesAnyPathWillDoButNoneThatIsNone) {
  config_.allowed_directories.clear();
  EXPECT_EQ(*look("/var//tmp/./x/../y/"), "/var/tmp/y");
  EXPECT_EQ(*look(root_ + "/in/out"), root_ + "/in/out");
  EXPECT_EQ(look("x").error().code, Code::invalid_argument);
  EXPECT_EQ(look(std::string("/x\0y", 4)).error().code, Code::invalid_argument);
}

TEST_F(AllowedPathTest, ANameBecomesOneFolder) {
  EXPECT_EQ(as_file_name("sleep"), "sleep");
  EXPECT_EQ(as_file_name("../../etc"), ".._.._etc");
  EXPECT_EQ(as_file_name("/"), "_");
  EXPECT_EQ(as_file_name(".."), "_");
  EXPECT_EQ(as_file_name("."), "_");
  EXPECT_EQ(as_file_name(""), "_");
}

}  // namespace
}  // namespace kymo::daemon
