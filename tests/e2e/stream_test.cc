// Streamed and compressed checkpoints, and deadlines, from the command line.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using nlohmann::json;

TEST(StreamTest, ACompressedCheckpointIsSmallIsReadByStatsAndRestores) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(32, "web"));
  for (const std::string compression : {"zstd", "lz4", "none"}) {
    const json dumped = kymod.kymo_json({"dump", "process", "web", "--compression", compression});
    const std::string directory = dumped["directory"];
    const std::string images = dumped["images_directory"];
    const std::string suffix = compression == "zstd" ? ".zst" : compression == "lz4" ? ".lz4" : "";
    EXPECT_TRUE(std::filesystem::exists(images + "/inventory.img" + suffix)) << compression;
    EXPECT_GE(dumped["streamed_bytes"], 32U << 20U);
    const json stats = kymod.kymo_json({"stats", directory});
    EXPECT_EQ(stats["dump"]["pages_written"], dumped["stats"]["pages_written"]) << stats;

    static_cast<void>(kymod.kymo_json({"restore", "process", directory}));
    EXPECT_TRUE(kymod.goes_on(kymod.job("web"))) << compression;
  }
  if (run({"zstd", "--version"}).exit_code == 0) {
    const Outcome unpacked =
        run({"zstd", "-t", "-q", kymod.state() + "/checkpoints/web-1/images/pages-1.img.zst"});
    EXPECT_EQ(unpacked.exit_code, 0) << unpacked.err;
  }
}

TEST(StreamTest, WhatMakesNoSenseIsRefused) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(1, "web"));
  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"dump", "process", "web"});
    return kymod.kymo(std::move(more));
  };
  EXPECT_EQ(refused({"--no-stream", "--compression", "zstd"}).exit_code, 2);
  EXPECT_EQ(refused({"--stream", "--compression", "gzip"}).exit_code, 2);
  const Outcome level = refused({"--stream", "--compression", "lz4", "--compression-level", "15"});
  EXPECT_EQ(level.exit_code, 1);
  EXPECT_NE(level.err.find("lz4 has 1 to 12"), std::string::npos) << level.err;
  EXPECT_EQ(refused({"--deadline", "30"}).exit_code, 2);  // a number without a unit is refused
  EXPECT_EQ(refused({"--deadline", "-1s"}).exit_code, 2);
}

// The forecast is based on an earlier dump that CRIU was slow for. So it is above the deadline on any
// machine.
TEST(StreamTest, ADeadlineIsForetoldAndKeptOrTheProcessRunsOn) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  static_cast<void>(kymod.churn(32, "web"));
  criu.let_do("sleep 2");
  const Outcome first =
      kymod.kymo({"dump", "process", "web", "--leave-running", "--deadline", "30s"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("the deadline of 30 s: there is no earlier dump"), std::string::npos)
      << first.err;
  for (const bool stream : {false, true}) {
    criu.break_at("Dumping pages (type", SIGSTOP);
    std::vector<std::string> command{"dump",       "process", "web", "--leave-running",
                                     "--deadline", "1s"};
    if (stream) command.insert(command.end(), {"--stream", "--compression", "zstd"});
    const Outcome late = kymod.kymo(command);
    EXPECT_EQ(late.exit_code, 1);
    EXPECT_NE(late.err.find("the dump will probably not meet the deadline of 1 s"),
              std::string::npos)
        << late.err;
    EXPECT_NE(late.err.find("did not end within its deadline of 1 s"), std::string::npos)
        << late.err;
    EXPECT_NE(late.err.find("the process runs on"), std::string::npos) << late.err;
    EXPECT_TRUE(kymod.goes_on(kymod.job("web")));
  }
  criu.mend();
  const Outcome over =
      kymod.kymo({"dump", "process", "web", "--leave-running", "--deadline", "1ms"});
  EXPECT_EQ(over.exit_code, 1);
  EXPECT_NE(over.err.find("deadline"), std::string::npos) << over.err;
  const json in_time =
      kymod.kymo_json({"dump", "process", "web", "--leave-running", "--deadline", "1h"});
  EXPECT_NE(in_time["forecast"].get<std::string>().find("the dump will probably meet"),
            std::string::npos)
      << in_time;
  EXPECT_EQ(
      kymod.kymo({"dump", "process", "web", "--leave-running", "--deadline", "1h", "--quiet"}).err,
      "");
}

}  // namespace
}  // namespace kymo::test
