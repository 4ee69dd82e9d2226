#include "runtimes/runc/bundle.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

TEST(BundleTest, AFolderForTheOldRootIsMadeInAReadOnlyRootThatLacksIt) {
  const test::TemporaryDirectory folder;
  folder.folder("rootfs");
  folder.file("config.json", R"({"root": {"path": "rootfs", "readonly": true}})");
  const auto root = prepare_root("restore x", folder.path());
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_TRUE(root->read_only);
  EXPECT_NE(root->made.find(folder.path() + "/rootfs/tmp"), std::string::npos) << root->made;
  EXPECT_TRUE(fs::is_directory(folder.path() + "/rootfs/tmp"));
  EXPECT_EQ(prepare_root("restore x", folder.path())->made, "") << "it is there by now";
}

TEST(BundleTest, AWritableRootIsLeftAlone) {
  const test::TemporaryDirectory folder;
  folder.folder("rootfs");
  for (const char* config :
       {R"({"root": {"path": "rootfs"}})", R"({"root": {"path": "rootfs", "readonly": false}})",
        R"({"root": {"path": 7, "readonly": true}})", R"({"root": []})", "[]", "{", ""}) {
    folder.file("config.json", config);
    const auto root = prepare_root("restore x", folder.path());
    ASSERT_TRUE(root) << config;
    EXPECT_FALSE(root->read_only) << config;
    EXPECT_FALSE(fs::exists(folder.path() + "/rootfs/tmp")) << config;
  }
}

// It made the folder, open to everybody, in whatever folder the link led to.
TEST(BundleTest, ALinkInPlaceOfTheRootWasFollowed) {
  const test::TemporaryDirectory folder;
  const std::string precious = folder.folder("precious");
  const std::string bundle = folder.folder("bundle");
  folder.folder("precious/inner");
  fs::create_directory_symlink(precious, bundle + "/rootfs");
  for (const std::string& path : {std::string("rootfs"), std::string("rootfs/"), bundle + "/rootfs",
                                  std::string("../bundle/rootfs"), std::string("rootfs/inner")}) {
    folder.file("bundle/config.json", R"({"root": {"readonly": true, "path": ")" + path + R"("}})");
    const auto root = prepare_root("restore x", bundle);
    ASSERT_FALSE(root) << path;
    EXPECT_NE(root.error().message.find("is a link or lies behind one"), std::string::npos)
        << root.error().message;
    EXPECT_FALSE(fs::exists(precious + "/tmp")) << path;
    EXPECT_FALSE(fs::exists(precious + "/inner/tmp")) << path;
  }
}

TEST(BundleTest, TheBundleMayBeReachedThroughALinkAndTheRootMayLieBesideIt) {
  const test::TemporaryDirectory folder;
  const std::string bundle = folder.folder("bundle");
  fs::create_directory_symlink(bundle, folder.path() + "/link");
  const std::string real = fs::canonical(folder.path());
  for (const std::string& path : {std::string("rootfs"), std::string("./deeper//rootfs/"),
                                  std::string("../beside"), real + "/absolute"}) {
    fs::create_directories(fs::path(real + "/bundle") / path);
    folder.file("bundle/config.json", R"({"root": {"readonly": true, "path": ")" + path + R"("}})");
    const auto root = prepare_root("restore x", folder.path() + "/link");
    ASSERT_TRUE(root) << root.error().message;
    const fs::path tmp = fs::path(real + "/bundle") / path / "tmp";
    EXPECT_EQ(fs::status(tmp).permissions(), fs::perms(01777)) << tmp;
  }
}

TEST(BundleTest, ATmpThatIsALinkIsNotFollowed) {
  const test::TemporaryDirectory folder;
  const std::string precious = folder.folder("precious");
  folder.folder("rootfs");
  folder.file("config.json", R"({"root": {"path": "rootfs", "readonly": true}})");
  fs::create_directory_symlink(precious + "/new", folder.path() + "/rootfs/tmp");
  EXPECT_FALSE(prepare_root("restore x", folder.path()));
  EXPECT_TRUE(fs::is_empty(precious));
}

TEST(BundleTest, AFolderThatCannotBeMadeIsNamed) {
  const test::TemporaryDirectory folder;
  folder.file("config.json", R"({"root": {"path": "/nowhere/rootfs", "readonly": true}})");
  const auto root = prepare_root("restore x", folder.path());
  ASSERT_FALSE(root);
  EXPECT_NE(root.error().message.find("make /nowhere/rootfs/tmp"), std::string::npos)
      << root.error().message;
}

}  // namespace
}  // namespace kymo::runtime
