// Live progress: of a dump and a restore as they run, by the command line and in the recording.

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <sstream>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using nlohmann::json;

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

std::size_t callers_of(const Kymod& kymod) {
  const std::string log = kymod.log();
  std::size_t callers = 0;
  for (std::size_t at = 0; (at = log.find("caller on ", at)) != std::string::npos; ++at) ++callers;
  return callers;
}

// What a watcher sees that called kymod before the request began.
std::future<Outcome> watch(const Kymod& kymod, std::vector<std::string> words) {
  const std::size_t before = callers_of(kymod);
  words.insert(words.begin(), "progress");
  auto watcher = std::async(std::launch::async, [&kymod, words] { return kymod.kymo(words); });
  EXPECT_TRUE(eventually([&] { return callers_of(kymod) > before; })) << kymod.log();
  return watcher;
}

TEST(ProgressTest, ADumpAndARestoreAreSeenAsTheyRun) {
  KYMO_NEEDS_CRIU();
  constexpr int kMib = 256;
  constexpr std::uint64_t kBytes = std::uint64_t{kMib} << 20;
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(kMib, "web"));
  const std::vector<std::string> often{"web", "--wait", "--json", "--rate", "500"};
  auto watcher = watch(kymod, often);
  const json dumped = kymod.kymo_json({"dump", "process", "web"});
  const Outcome watched = watcher.get();
  ASSERT_EQ(watched.exit_code, 0) << watched.err;
  const std::vector<json> seen = lines_of(watched.out);
  ASSERT_GE(seen.size(), 3U);
  std::uint64_t before = 0;
  bool half_way = false;
  for (const json& line : seen) {
    EXPECT_EQ(line["job"], "web");
    EXPECT_GE(line["bytes_done"], before);
    before = line["bytes_done"];
    if (line["state"] != "running") continue;
    if (line["bytes_total"].is_null()) continue;
    if (!line["remaining_ns"].is_null()) {
      EXPECT_GE(before * 10, line["bytes_total"].get<std::uint64_t>());
    }
    EXPECT_GT(line["bytes_total"], kBytes);
    EXPECT_LT(line["bytes_total"], kBytes * 11 / 10);  // the estimate before it began
    half_way = half_way || (line["phase"] == "memory" && before > kBytes / 10 && before < kBytes &&
                            line["bytes_per_second"] > 0 && line["pages_done"] > 0);
  }
  EXPECT_TRUE(half_way) << seen.size() << " updates, the last " << seen.back();
  EXPECT_EQ(seen.back()["state"], "succeeded");
  EXPECT_EQ(seen.back()["bytes_done"], dumped["image_bytes"]);
  EXPECT_EQ(seen.back()["bytes_remaining"], 0);

  const auto columns = [&] {
    static_cast<void>(ended_metadata(dumped["recording"]));
    return read_recording(dumped["recording"]);
  }();
  const auto& done = columns.at("request_done_bytes");
  EXPECT_GT(*std::max_element(done.begin(), done.end()), kBytes / 2);
  EXPECT_EQ(done.back(), 0U);  // it has ended
  const auto& remaining = columns.at("request_remaining_bytes");
  EXPECT_GT(*std::max_element(remaining.begin(), remaining.end()), kBytes);
  const auto& pages = columns.at("request_done_pages");
  EXPECT_GT(*std::max_element(pages.begin(), pages.end()), kBytes / 2 / 4096);

  auto restoring = watch(kymod, often);
  static_cast<void>(kymod.kymo_json({"restore", "process", dumped["directory"]}));
  const Outcome restored = restoring.get();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  const json last = lines_of(restored.out).back();
  EXPECT_EQ(last["kind"], "restore");
  EXPECT_EQ(last["state"], "succeeded");
  EXPECT_GE(last["bytes_done"], kBytes);
}

TEST(ProgressTest, ABarIsDrawnWhereItIsAskedForAndNeverInAPipeByItself) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(1, "small"));
  const Outcome quiet = kymod.kymo({"dump", "process", "small", "--leave-running"});
  ASSERT_EQ(quiet.exit_code, 0) << quiet.err;
  EXPECT_EQ(quiet.err, "");
  const Outcome wrong =
      kymod.kymo({"dump", "process", "small", "--leave-running", "--progress", "some"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("--progress"), std::string::npos) << wrong.err;

  const Outcome nothing = kymod.kymo({"progress"});
  EXPECT_EQ(nothing.exit_code, 0);
  EXPECT_EQ(nothing.err, "kymo: no dump or restore runs\n");
  const Outcome nobody = kymod.kymo({"progress", "nobody"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_NE(nobody.err.find("no dump or restore of it is running"), std::string::npos)
      << nobody.err;
}

TEST(ProgressTest, AWatcherEndsWithTheDaemon) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  auto watcher = watch(kymod, {"--wait", "--json"});
  EXPECT_EQ(kymod.stop(SIGTERM), 0);
  EXPECT_EQ(watcher.get().exit_code, 1);
}

}  // namespace
}  // namespace kymo::test
