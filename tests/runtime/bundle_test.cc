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
