// Rounds of pre-dump. If the kernel tracks which pages are written (CONFIG_MEM_SOFT_DIRTY), rounds
// are made and restored. Otherwise they are refused.

#include <gtest/gtest.h>

#include <filesystem>

#include "programs.h"
#include "support/containers.h"
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
  EXPECT_GE(rounds[0]["pages_written"], 32 * 256) << "the first round must write all memory";
  EXPECT_LT(dumped["stats"]["pages_written"], rounds[0]["pages_written"]);
  EXPECT_GT(dumped["stats"]["pages_skipped_parent"], 0);
  const std::string images = dumped["images_directory"];
  EXPECT_TRUE(std::filesystem::exists(images + "/pre-1/pages-1.img"));
  static_cast<void>(kymod.kymo_json({"restore", "process", dumped["directory"]}));
  EXPECT_TRUE(kymod.goes_on(kymod.job("web")));
}

// A command like counting_command(), but with so much memory that kymod makes rounds.
std::vector<std::string> counting_with_memory() {
  return {"/bin/sh", "-c",
          "x=$(busybox head -c 4000000 /dev/zero | busybox tr '\\0' x); " + counting_loop()};
}

// Makes `kymo dump KIND NAME --pre-dump 3` of a container that counts in this root. Returns the
// reply, or nothing if the request is refused because of the kernel.
json dump_in_rounds(const Kymod& kymod, const std::string& kind, const std::string& name,
                    const std::string& root) {
  if (!tracks_writes()) {
    const Outcome refused = kymod.kymo({"dump", kind, name, "--pre-dump", "3"});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("does not track which pages are written"), std::string::npos)
        << refused.err;
    EXPECT_TRUE(counts_on(root));
    return {};
  }
  json dumped = kymod.kymo_json({"dump", kind, name, "--pre-dump", "3"});
  const json& rounds = dumped["pre_dumps"];
  EXPECT_GE(rounds.size(), 1U) << dumped;
  if (rounds.empty()) return dumped;
  EXPECT_GE(rounds[0]["pages_written"], 900) << "the first round must write all memory";
  EXPECT_LT(dumped["stats"]["pages_written"], rounds[0]["pages_written"]);
  EXPECT_GT(dumped["stats"]["pages_skipped_parent"], 0);
  const std::string images = dumped["images_directory"];
  EXPECT_TRUE(std::filesystem::exists(images + "/pre-1/pages-1.img"));
  EXPECT_TRUE(std::filesystem::exists(images + "/parent/pages-1.img"))
      << "the parent images must be found after the folder was renamed";
  return dumped;
}

TEST(PreDumpTest, ARuncContainersRoundsWriteLessAndLessOrAreRefused) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = make_bundle(runc.folder(), "bundle", counting_with_memory());
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  static_cast<void>(kymod.kymo_json({"run", "runc", "--bundle", bundle, "--id", "kymo-rounds"}));
  ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  const json dumped = dump_in_rounds(kymod, "runc", "kymo-rounds", bundle + "/rootfs");
  if (dumped.is_null()) GTEST_SKIP() << "this kernel does not track which pages are written";
  EXPECT_EQ(kymod.kymo({"restore", dumped["directory"]}).exit_code, 0);
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

TEST(PreDumpTest, APodmanContainerIsRefusedAndRunsOn) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-rounds");
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  const Outcome refused = kymod.kymo({"dump", "podman", "kymo-rounds", "--pre-dump", "3"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("--pre-dump: podman makes no rounds"), std::string::npos)
      << refused.err;
  EXPECT_TRUE(counts_on(root));
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
  EXPECT_NE(streamed.err.find("does not support parent images"), std::string::npos) << streamed.err;
}

}  // namespace
}  // namespace kymo::test
