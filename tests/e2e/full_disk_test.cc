// Disks without free inodes.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "programs.h"
#include "small_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

TEST(FullDiskTest, ADiskWithoutFreeInodesIsNamedByWhatItRefuses) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(16, "work");
  SmallDisk disk(kymod.path("small"), "size=64m,nr_inodes=200");
  const std::string dir = kymod.path("small/c");
  static_cast<void>(kymod.kymo_json({"dump", "process", "work", "--dir", dir}));
  wait_until_recorded(dir, {"dump"});
  disk.take_inodes();
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 1);
  EXPECT_EQ(restored.err.find("Invalid request code"), std::string::npos) << restored.err;
  EXPECT_NE(
      restored.err.find("its disk has no free inodes, and each file needs one (df -i): delete "
                        "files there, or choose another directory"),
      std::string::npos)
      << restored.err;
  EXPECT_EQ(std::count(restored.err.begin(), restored.err.end(), '\n'), 1) << restored.err;
  EXPECT_EQ(kymod.job("work")["state"], "dumped");
  EXPECT_EQ(kymod.kymo({"verify", dir}).exit_code, 0) << "it writes nothing";
  EXPECT_EQ(kymod.kymo_json({"history", "work", "--restores"})["runs"].back()["failure"],
            "disk-full");
  disk.give_all_inodes();
  static_cast<void>(kymod.kymo_json({"restore", dir}));
  wait_until_recorded(dir, {"restore"});

  disk.take_inodes(7);
  const Outcome refused = kymod.kymo({"dump", "process", "work", "--dir", kymod.path("small/d")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("its disk has 7 free inodes"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(kymod.path("small/d")));
  for (const char* const way : {"--stream", "--no-stream"}) {
    disk.give_all_inodes();
    disk.take_inodes(7);
    const Outcome failed = kymod.kymo(
        {"dump", "process", "work", "--dir", kymod.path("small/") + way, "--force", way});
    EXPECT_EQ(failed.exit_code, 1);
    EXPECT_NE(failed.err.find(" free inodes, and each file needs one"), std::string::npos)
        << failed.err;
    EXPECT_EQ(failed.err.find(" needed in "), std::string::npos)
        << "space helps not: " << failed.err;
  }
  EXPECT_TRUE(kymod.goes_on(job));
}

TEST(FullDiskTest, AJobThatHasNoInodeForItsOutputIsRefusedWithTheCause) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  SmallDisk disk(kymod.state(), "size=64m,nr_inodes=100,mode=0700");
  kymod.start();
  disk.take_inodes();
  const Outcome refused = kymod.kymo({"run", "process", "--", "true"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("its disk has no free inodes"), std::string::npos) << refused.err;
  disk.give_all_inodes();
  EXPECT_EQ(kymod.kymo({"run", "process", "--", "true"}).exit_code, 0);
}

}  // namespace
}  // namespace kymo::test
