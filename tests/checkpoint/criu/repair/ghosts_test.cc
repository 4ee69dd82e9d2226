#include "checkpoint/criu/repair/ghosts.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/clock.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMinute = 60'000'000'000;

TEST(GhostsTest, TheLogOfARestoreNamesThem) {
  EXPECT_EQ(
      ghosts_in("(00.001) files: Opening ghost file 0x1a for tmp/a for b\n"
                "(00.002)     12: Opening ghost file 0x2 for tmp/c\n"
                "(00.003)     12: Remap rpath is c.cr.2.ghost\n"
                "(00.004)     12: Remap rpath is tmp/folder\n"
                "(00.004)     12: Remap rpath is tmp/others.ghost\n"
                "(00.004)     12: Remap rpath is tmp/others.cr.x.ghost\n"
                "(00.005) Opening ghost file 0xzz for tmp/d\n"
                "(00.006) Opening ghost file 0x3"),
      (std::vector<std::string>{"/c.cr.2.ghost", "/tmp/a for b.cr.1a.ghost", "/tmp/c.cr.2.ghost"}));
  EXPECT_TRUE(ghosts_in("").empty());
}

struct GhostsOfALog : testing::Test {
  GhostsOfALog() {
    const std::string name = folder.path().substr(1) + "/a";
    log = folder.file("restore.log", "(00.001) Opening ghost file 0x1 for " + name + "\n");
  }
  test::TemporaryDirectory folder;
  std::string log;
  const std::string ghost = folder.path() + "/a.cr.1.ghost";
};

TEST_F(GhostsOfALog, AFileThatWasMadeSinceTheRestoreBeganIsRemoved) {
  folder.file("a.cr.1.ghost", "");
  folder.file("a.cr.2.ghost", "");
  remove_leftover_ghosts(log, unix_ns() - kMinute);
  EXPECT_FALSE(fs::exists(ghost));
  EXPECT_TRUE(fs::exists(folder.path() + "/a.cr.2.ghost"));
}

TEST_F(GhostsOfALog, AFileThatWasThereBeforeStays) {
  folder.file("a.cr.1.ghost", "");
  remove_leftover_ghosts(log, unix_ns() + kMinute);
  EXPECT_TRUE(fs::exists(ghost));
}

TEST_F(GhostsOfALog, AFolderStaysAndNoLinkIsFollowed) {
  fs::create_directory(ghost);
  remove_leftover_ghosts(log, unix_ns() - kMinute);
  EXPECT_TRUE(fs::exists(ghost));
  const std::string elsewhere = folder.folder("elsewhere");
  folder.file("elsewhere/a.cr.1.ghost", "");
  fs::create_directory_symlink(elsewhere, folder.path() + "/link");
  remove_leftover_ghosts(log, unix_ns() - kMinute, [this](const std::string&) {
    return GhostFile{folder.path(), "link/a.cr.1.ghost"};
  });
  EXPECT_TRUE(fs::exists(elsewhere + "/a.cr.1.ghost"));
}

TEST_F(GhostsOfALog, WhatIsNowhereIsNotLookedFor) {
  folder.file("a.cr.1.ghost", "");
  remove_leftover_ghosts(log, 0, [](const std::string&) { return std::nullopt; });
  EXPECT_TRUE(fs::exists(ghost));
}

}  // namespace
}  // namespace kymo::criu
