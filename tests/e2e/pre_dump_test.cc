// Rounds of pre-dump. Where the kernel tracks what is written (CONFIG_MEM_SOFT_DIRTY) they are made
// and restored from; where it does not they are refused.

#include <gtest/gtest.h>

#include <filesystem>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using nlohmann::json;

bool tracks_writes() {
  return run({criu_path(), "check", "--feature", "mem_dirty_track"}).exit_code == 0;
}

TEST(PreDumpTest, RoundsWriteLessAndLessOrAreRefused) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const json job = kymod.kymo_json(
      {"run", "process", "--name", "web", "--", CHURN_PROGRAM, "--mib", "32", "--rate", "1"});
  ASSERT_TRUE(kymod.goes_on(job));
  if (!tracks_writes()) {
    const Outcome refused = kymod.kymo({"dump", "process", "web", "--pre-dump", "2"});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("does not track which pages are written"), std::string::npos)
        << refused.err;
    EXPECT_TRUE(kymod.goes_on(job));
    GTEST_SKIP() << "this kernel does not track which pages are written: refused, as it must be";
  }
  const json dumped = kymod.kymo_json({"dump", "process", "web", "--pre-dump", "3"});
  const json& rounds = dumped["pre_dumps"];
  ASSERT_GE(rounds.size(), 1U);
  EXPECT_GE(rounds[0]["pages_written"], 32 * 256) << "the first writes everything";
  EXPECT_LT(dumped["stats"]["pages_written"], rounds[0]["pages_written"]);
  EXPECT_GT(dumped["stats"]["pages_skipped_parent"], 0);
  const std::string images = dumped["images_directory"];
  EXPECT_TRUE(std::filesystem::exists(images + "/pre-1/pages-1.img"));
  static_cast<void>(kymod.kymo_json({"restore", "process", dumped["directory"]}));
  EXPECT_TRUE(kymod.goes_on(kymod.job("web")));
}

TEST(PreDumpTest, WhatMakesNoSenseIsRefused) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(1, "web"));
  EXPECT_EQ(kymod.kymo({"dump", "process", "web", "--pre-dump", "0"}).exit_code, 2);
  EXPECT_EQ(kymod.kymo({"dump", "process", "web", "--pre-dump", "33"}).exit_code, 2);
  const Outcome streamed = kymod.kymo({"dump", "process", "web", "--pre-dump", "2", "--stream"});
  EXPECT_EQ(streamed.exit_code, 1);
  EXPECT_NE(streamed.err.find("takes no parent images"), std::string::npos) << streamed.err;
}

}  // namespace
}  // namespace kymo::test
