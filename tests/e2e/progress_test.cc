// The progress of a dump and a restore while they run, from the command line and in the recording.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <future>
#include <sstream>

#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using nlohmann::json;

std::vector<json> progress_in(const std::string& text) {
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

// Starts a watcher that calls kymod before the request begins. Its output goes to the file.
std::future<Outcome> watch(const Kymod& kymod, std::vector<std::string> words,
                           const std::string& file) {
  const std::size_t before = callers_of(kymod);
  words.insert(words.begin(), {"sh", "-c", R"(exec "$@" >"$0")", file, KYMO_PROGRAM, "--socket",
                               kymod.socket(), "progress"});
  auto watcher = std::async(std::launch::async, [words] { return run(words); });
  EXPECT_TRUE(eventually([&] { return callers_of(kymod) > before; })) << kymod.log();
  return watcher;
}

std::string last_whole_line(const std::string& text) {
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos || end == 0) return "";
  const std::size_t before = text.rfind('\n', end - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end - begin);
}

// Ends a process group at the end of the test, also if the test fails.
struct Group {
  pid_t leader;
  ~Group() { kill(-leader, SIGKILL); }
};

// Two processes, whose memory CRIU writes one after the other. CRIU is stopped between them until the
// progress was seen.
TEST(ProgressTest, ADumpAndARestoreAreSeenAsTheyRun) {
  KYMO_NEEDS_CRIU();
  constexpr std::uint64_t kBytes = std::uint64_t{64} << 20U;  // the memory of both processes
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  const json job = kymod.kymo_json({"run", "process", "--name", "web", "--", "sh", "-c",
                                    "\"$0\" --mib 32 & exec \"$0\" --mib 32 >>\"$1\"",
                                    CHURN_PROGRAM, kymod.path("other")});
  const Group both{job["pid"].get<pid_t>()};
  for (const std::string& out : {job["stdout_path"].get<std::string>(), kymod.path("other")}) {
    ASSERT_TRUE(eventually([&] { return !read_file(out).empty(); })) << kymod.log();
  }
  const std::string file = kymod.path("seen");
  auto watcher = watch(kymod, {"web", "--wait", "--json", "--rate", "500"}, file);
  criu.break_at("Dumping pages (type", SIGSTOP, 1);
  auto dumping = std::async(std::launch::async, [&] {
    return kymod.kymo_json({"dump", "process", "web"});
  });
  const pid_t stopped = criu.stopped();
  ASSERT_NE(stopped, 0) << kymod.log();
  criu.mend();
  json half_way;
  EXPECT_TRUE(eventually([&] {
    half_way = json::parse(last_whole_line(read_file(file)), nullptr, false);
    return half_way.is_object() && half_way["bytes_done"] > kBytes / 2;
  })) << half_way;
  EXPECT_EQ(half_way["phase"], "memory");
  EXPECT_LT(half_way["bytes_done"], kBytes);
  EXPECT_GT(half_way["pages_done"], kBytes / 2 / 4096);
  kill(stopped, SIGCONT);
  const json dumped = dumping.get();
  const Outcome watched = watcher.get();
  ASSERT_EQ(watched.exit_code, 0) << watched.err;
  const std::vector<json> seen = progress_in(read_file(file));
  ASSERT_FALSE(seen.empty());
  std::uint64_t before = 0;
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
    EXPECT_LT(line["bytes_total"], kBytes * 11 / 10);  // the estimate that was made before the dump
  }
  EXPECT_EQ(seen.back()["state"], "succeeded");
  EXPECT_EQ(seen.back()["bytes_done"], dumped["image_bytes"]);
  EXPECT_EQ(seen.back()["bytes_remaining"], 0);

  const auto columns = [&] {
    static_cast<void>(ended_metadata(dumped["recording"]));
    return read_recording(dumped["recording"]);
  }();
  const auto& done = columns.at("request_done_bytes");
  EXPECT_GT(*std::max_element(done.begin(), done.end()), kBytes / 2);
  EXPECT_EQ(done.back(), 0U);  // the request has ended
  const auto& remaining = columns.at("request_remaining_bytes");
  EXPECT_GT(*std::max_element(remaining.begin(), remaining.end()), kBytes);
  const auto& pages = columns.at("request_done_pages");
  EXPECT_GT(*std::max_element(pages.begin(), pages.end()), kBytes / 2 / 4096);

  auto restoring = watch(kymod, {"web", "--wait", "--json", "--rate", "500"}, file);
  static_cast<void>(kymod.kymo_json({"restore", "process", dumped["directory"]}));
  const Outcome restored = restoring.get();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  const json last = progress_in(read_file(file)).back();
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
  auto watcher = watch(kymod, {"--wait", "--json"}, kymod.path("seen"));
  EXPECT_EQ(kymod.stop(SIGTERM), 0);
  EXPECT_EQ(watcher.get().exit_code, 1);
}

}  // namespace
}  // namespace kymo::test
