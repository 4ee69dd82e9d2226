#include "daemon/config/allowed_path.h"

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

TEST_F(AllowedPathTest, PathsBelowAnAllowedDirectoryAreResolvedAsTheSystemDoes) {
  for (const auto& [asked, meant] : std::vector<std::pair<std::string, std::string>>{
           {"/in", "/in"},
           {"/in/", "/in"},
           {"/in/there/new/newer", "/in/there/new/newer"},
           {"/in/./there/../x//y/", "/in/x/y"},
           {"/to-in/there", "/in/there"},
           {"/other/../in/x", "/in/x"},
           {"/in/out/../in", "/in"},  // leaves the folder and comes back
           {"/state/checkpoints/web-1", "/state/checkpoints/web-1"}}) {
    const auto path = look(root_ + asked);
    ASSERT_TRUE(path.ok()) << path.error().message;
    EXPECT_EQ(*path, root_ + meant) << asked;
  }
}

TEST_F(AllowedPathTest, EveryPathThatLeadsOutIsRefused) {
  for (const char* asked :
       {"", "/", "/inside", "/in/..", "/in/../other/x", "/in/../in/../other", "/in/out",
        "/in/out/x/y", "/to-in/out/x", "/other", "/in/new/../../other", "/in/dangling/x",
        "/state/../other", "/state-2"}) {
    const auto path = look(root_ + asked);
    ASSERT_FALSE(path.ok()) << asked << " must be refused, but was resolved to " << *path;
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

TEST_F(AllowedPathTest, WithoutAllowedDirectoriesAnyAbsolutePathIsAllowed) {
  config_.allowed_directories.clear();
  EXPECT_EQ(*look("/var//tmp/./x/../y/"), "/var/tmp/y");
  EXPECT_EQ(*look(root_ + "/in/out"), root_ + "/in/out");
  EXPECT_EQ(look("x").error().code, Code::invalid_argument);
  EXPECT_EQ(look(std::string("/x\0y", 4)).error().code, Code::invalid_argument);
}

TEST_F(AllowedPathTest, AParentThatIsAFolderWasNotLookedInto) {
  const std::string images = root_ + "/in/images";
  fs::create_directories(images + "/parent/parent");
  fs::create_directories(root_ + "/other/images");
  const auto look_at = [&] { return allowed_images(config_, "restore it", images); };
  EXPECT_TRUE(look_at().ok());
  fs::create_directory_symlink(root_ + "/in/there", images + "/parent/parent/parent");
  EXPECT_TRUE(look_at().ok());
  fs::create_directory_symlink(root_ + "/other/images", root_ + "/in/there/parent");
  const Result<void> found = look_at();
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::permission_denied);
  EXPECT_EQ(found.error().message,
            "restore it with its parent " + root_ + "/in/there/parent, which is " + root_ +
                "/other/images: it is not in a directory that requests may use "
                "(--allow-directory of kymod)");
  config_.allowed_directories.clear();
  EXPECT_TRUE(look_at().ok());
}

TEST_F(AllowedPathTest, AFileOfTheImagesMayNotLeadOut) {
  const std::string images = root_ + "/in/images";
  fs::create_directories(images + "/parent");
  const auto look_at = [&] { return allowed_images(config_, "restore it", images); };
  for (const std::string& folder : {images, images + "/parent"}) {
    const std::string pages = folder + "/pages-1.img";
    fs::create_symlink(root_ + "/in/pages", pages);
    EXPECT_FALSE(look_at().ok()) << "the target of the link does not exist yet";
    folder_.file("in/pages", "");
    EXPECT_TRUE(look_at().ok()) << folder;
    fs::remove(pages);
    fs::remove(root_ + "/in/pages");
    fs::create_symlink(root_ + "/other/pages", pages);
    folder_.file("other/pages", "");
    ASSERT_FALSE(look_at().ok()) << folder;
    EXPECT_EQ(look_at().error().code, Code::permission_denied);
    fs::remove(pages);
  }
}

TEST_F(AllowedPathTest, ParentsThatFormALoopAreRefused) {
  const std::string images = root_ + "/in/images";
  fs::create_directories(images);
  fs::create_directory_symlink(images, images + "/parent");
  const Result<void> found = allowed_images(config_, "restore it", images);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::failed_precondition);
}

TEST_F(AllowedPathTest, ANameBecomesOneFolder) {
  EXPECT_EQ(as_file_name("sleep"), "sleep");
  EXPECT_EQ(as_file_name("../../etc"), ".._.._etc");
  EXPECT_EQ(as_file_name("/"), "_");
  EXPECT_EQ(as_file_name(".."), "_");
  EXPECT_EQ(as_file_name("."), "_");
  EXPECT_EQ(as_file_name(""), "_");
  EXPECT_EQ(as_file_name("a b\n\x1b[31m\x9b\xc2\x9b"), "a_b__[31m___");
}

}  // namespace
}  // namespace kymo::daemon
