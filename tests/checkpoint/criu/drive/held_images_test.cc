#include "checkpoint/criu/drive/held_images.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

class HeldImagesTest : public testing::Test {
 protected:
  // Writes an image as kymod does.
  void write(const std::string& name, const std::string& text) {
    write_unseen(name, text);
    struct stat info {};
    ASSERT_EQ(::stat(path(name).c_str(), &info), 0);
    held_->wrote(name, info.st_ino, text.size());
  }
  // Writes an image as CRIU does.
  void write_unseen(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return images_ + "/" + name; }
  void expect_changed(const std::string& what) const {
    const Result<void> checked = held_->check_before_end();
    ASSERT_FALSE(checked.ok()) << what;
    EXPECT_EQ(checked.error().code, Code::aborted);
    const std::string& said = checked.error().message;
    EXPECT_NE(said.find("another program changed the images: "), std::string::npos) << said;
    EXPECT_NE(said.find(what), std::string::npos) << said;
  }
  void expect_unchanged() const {
    const Result<void> checked = held_->check_before_end();
    EXPECT_TRUE(checked.ok()) << (checked ? "" : checked.error().message);
  }

  test::TemporaryDirectory folder_;
  const std::string images_ = folder_.folder("images.partial");
  const std::string later_ = folder_.path() + "/images";
  std::shared_ptr<HeldImages> held_ = HeldImages::hold(images_, later_).value();
};

TEST_F(HeldImagesTest, AnImageThatIsGoneOrAnotherOneOrOfAnotherSizeIsNamed) {
  write("core-1.img", "core");
  write("pages-1.img", "pages");
  expect_unchanged();
  fs::resize_file(path("pages-1.img"), 2);
  expect_changed(path("pages-1.img") + " has 2 bytes instead of 5");
  write("pages-1.img", "pages");
  expect_unchanged();
  fs::copy(path("core-1.img"), path("new"));
  fs::rename(path("new"), path("core-1.img"));
  expect_changed(path("core-1.img") + " was replaced");
  fs::remove(path("core-1.img"));
  expect_changed(path("core-1.img") + " was removed");
  fs::create_symlink(path("pages-1.img"), path("core-1.img"));
  expect_changed(path("core-1.img") + " was replaced");
}

TEST_F(HeldImagesTest, TheImagesOfARoundAreRemembered) {
  fs::create_directory(path("pre-1"));
  write_unseen("pre-1/pages-1.img", "pages");
  ASSERT_TRUE(held_->wrote_all("pre-1").ok());
  expect_unchanged();
  fs::remove(path("pre-1/pages-1.img"));
  expect_changed(path("pre-1/pages-1.img") + " was removed");
}

TEST_F(HeldImagesTest, WhatCriuWritesIsSeenAndMayBeRead) {
  ASSERT_TRUE(held_->watch().ok());
  write_unseen("core-1.img", "core");
  write_unseen("descriptors.json", "{}");
  fs::create_directory(path("elsewhere"));
  write_unseen("elsewhere/moved.img", "from a folder that a runtime makes");
  fs::rename(path("elsewhere/moved.img"), path("moved.img"));
  std::string read;
  std::ifstream(path("core-1.img")) >> read;
  EXPECT_EQ(read, "core");
  fs::remove(path("descriptors.json"));
  expect_unchanged();
  fs::remove(path("moved.img"));
  expect_changed(path("moved.img") + " was removed");
}

TEST_F(HeldImagesTest, AnImageOfCriuThatCameBackIsAnotherOne) {
  ASSERT_TRUE(held_->watch().ok());
  write_unseen("core-1.img", "core");
  write_unseen("copy", "core");
  fs::rename(path("copy"), path("core-1.img"));
  expect_changed(path("core-1.img") + " was replaced by another file");
}

// The size alone does not show it: CRIU would go on writing behind the hole.
TEST_F(HeldImagesTest, AnImageThatAnotherProgramOpensForWritingWhileCriuWritesItIsNamed) {
  ASSERT_TRUE(held_->watch().ok());
  std::ofstream criu(path("pages-1.img"));
  criu << "pages" << std::flush;
  write_unseen("pages-1.img", "");
  held_->look();  // as kymod does each millisecond
  criu << "pages" << std::flush;
  criu.close();
  expect_changed(path("pages-1.img") + " was opened for writing by another program");
}

TEST_F(HeldImagesTest, AnImageThatIsCutOffWithoutOpeningItIsNamed) {
  ASSERT_TRUE(held_->watch().ok());
  write_unseen("core-1.img", "core");
  held_->look();
  ASSERT_EQ(::truncate(path("core-1.img").c_str(), 1), 0);
  expect_changed(path("core-1.img") + " has 1 bytes instead of 4");
}

TEST_F(HeldImagesTest, AFolderThatIsGoneOrAnotherOneIsFoundAgain) {
  const std::string aside = folder_.path() + "/aside";
  EXPECT_TRUE(held_->is_in_place());
  fs::rename(images_, aside);
  expect_changed(images_ + " was removed or renamed (it is now " + aside + ")");
  EXPECT_TRUE(held_->is_at(aside));
  fs::create_directory(images_);
  expect_changed(images_ + " was replaced by something else (it is now " + aside + ")");
  fs::remove(images_);
  fs::create_directory_symlink(aside, images_);
  expect_changed(images_ + " was replaced by something else");
  EXPECT_FALSE(held_->is_in_place());
  std::ofstream(held_->own_path() + "/core-1.img") << "core";
  EXPECT_TRUE(fs::exists(aside + "/core-1.img"));
  fs::remove(images_);
  fs::rename(aside, images_);
  expect_unchanged();
}

TEST_F(HeldImagesTest, AMountOverTheFolderIsNamedAlsoOneOfItself) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount";
  for (const std::string& source : {folder_.folder("other"), images_}) {
    EXPECT_FALSE(is_mounted_over(images_));
    ASSERT_EQ(mount(source.c_str(), images_.c_str(), nullptr, MS_BIND, nullptr), 0);
    EXPECT_TRUE(is_mounted_over(images_));
    expect_changed("a file system was mounted over " + images_);
    ASSERT_EQ(umount2(images_.c_str(), MNT_DETACH), 0);
    expect_unchanged();
  }
}

TEST_F(HeldImagesTest, TheLaterNameMustBeFreeBeforeTheEnd) {
  fs::create_directory(later_);
  expect_changed(later_ + " exists");
  EXPECT_TRUE(held_->check().ok());
  fs::remove(later_);
}

}  // namespace
}  // namespace kymo::criu
