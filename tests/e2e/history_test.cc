// Lists of a job's checkpoints, and its history, after real dumps.

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "counted_job.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

// Carries out SQL on the database of a kymod that does not run.
void change(const Kymod& kymod, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((kymod.state() + "/kymo.db").c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

nlohmann::json dump_leaving(const Kymod& kymod, const std::string& job) {
  return kymod.kymo_json({"dump", "process", job, "--leave-running"});
}

TEST(HistoryTest, CheckpointsAreListedOldestFirstByJobAndInAll) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(kymod.churn(8, "work").contains("pid"));
  ASSERT_TRUE(kymod.churn(8, "other").contains("pid"));
  const nlohmann::json first = dump_leaving(kymod, "work");
  const nlohmann::json other = dump_leaving(kymod, "other");
  const nlohmann::json second = dump_leaving(kymod, "work");
  const nlohmann::json of_job = kymod.kymo_json({"checkpoints", "work"});
  ASSERT_EQ(of_job.size(), 2U);
  EXPECT_EQ(of_job[0]["directory"], first["directory"]);
  EXPECT_EQ(of_job[1]["directory"], second["directory"]);
  EXPECT_EQ(of_job[1]["job"], "work");
  EXPECT_EQ(of_job[1]["state"], "complete");
  EXPECT_EQ(of_job[1]["image_bytes"], second["image_bytes"]);
  EXPECT_EQ(of_job[1]["stats"], second["stats"]);
  EXPECT_GT(of_job[1]["duration_ns"].get<std::uint64_t>(), 0U);
  EXPECT_EQ(kymod.kymo_json({"checkpoints"}).size(), 3U);
  const Outcome text = kymod.kymo({"checkpoints"});
  EXPECT_NE(text.out.find(other["directory"].get<std::string>()), std::string::npos) << text.out;
  const Outcome unknown = kymod.kymo({"checkpoints", "nobody"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_EQ(unknown.err, "kymo: no job is named nobody: kymo ps lists the jobs\n");
}

TEST(HistoryTest, ADumpCutShortByAKillIsListedWithWhatHappened) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  ASSERT_TRUE(kymod.churn(16, "work").contains("pid"));
  const std::string dir = kymod.state() + "/checkpoints/work-1";
  kymod.kill_when_pages_are_dumped(criu, {"dump", "process", "work"});
  kymod.start();
  const nlohmann::json checkpoints = kymod.kymo_json({"checkpoints", "work"});
  ASSERT_EQ(checkpoints.size(), 1U);
  EXPECT_EQ(checkpoints[0]["state"], "failed");
  const std::string error = checkpoints[0]["error"];
  EXPECT_EQ(error.find("kymod stopped during the dump"), 0U) << error;
  // The table shows a part of the reason. `kymo inspect` shows all of it.
  const std::string reason = checkpoints[0]["reason"];
  EXPECT_EQ(reason.find("kymod stopped during the dump"), 0U) << reason;
  EXPECT_LE(reason.size(), 80U);
  EXPECT_NE(kymod.kymo({"checkpoints"}).out.find(reason), std::string::npos);
  EXPECT_NE(kymod.kymo({"inspect", checkpoints[0]["id"]}).out.find(error), std::string::npos);
  const nlohmann::json runs = kymod.kymo_json({"history", "work"})["runs"];
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0]["error"], error);
  EXPECT_TRUE(runs[0]["duration_ns"].is_null());
  std::string metrics;
  const auto is_counted = [&] {
    metrics = run({"curl", "-s", "http://" + kymod.http() + "/metrics"}).out;
    return metrics.find("kymo_dumps_total{result=\"error\"} 1\n") != std::string::npos &&
           metrics.find("kymo_failures_total{request=\"dump\",reason=\"kymod-ended\"} 1\n") !=
               std::string::npos;
  };
  EXPECT_TRUE(eventually(is_counted)) << metrics;
}

TEST(HistoryTest, ARestoreCutShortByAKillIsListedAndCounted) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  ASSERT_TRUE(kymod.churn(8, "work").contains("pid"));
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
  criu.break_at("pre-restore", SIGSTOP);
  std::thread client([&] { static_cast<void>(kymod.kymo({"restore", dump["directory"]})); });
  const pid_t stopped = criu.stopped();
  EXPECT_NE(stopped, 0) << kymod.log();
  criu.mend();
  EXPECT_EQ(kymod.stop(SIGKILL), -1);
  if (stopped != 0) kill(stopped, SIGKILL);
  client.join();
  kymod.start();
  const nlohmann::json runs = kymod.kymo_json({"history", "work", "--restores"})["runs"];
  ASSERT_EQ(runs.size(), 1U);
  const std::string error = runs[0]["error"];
  EXPECT_EQ(error.find("kymod stopped during the restore"), 0U) << error;
  EXPECT_EQ(runs[0]["image_bytes"], dump["image_bytes"]);
  EXPECT_TRUE(runs[0]["duration_ns"].is_null());
  EXPECT_TRUE(kymod.logs("kymod stopped during it; the checkpoint can be restored again"));
  const std::string told = kymod.kymo({"explain", "work"}).out;
  EXPECT_EQ(told.find("The newest restore, at "), 0U) << told;
  EXPECT_NE(told.find(", failed. " + error), std::string::npos) << told;
  EXPECT_EQ(kymod.kymo_json({"explain", "work"})["id"], "kymod-ended");
  const std::string metrics = run({"curl", "-s", "http://" + kymod.http() + "/metrics"}).out;
  EXPECT_NE(metrics.find("kymo_restores_total{result=\"error\"} 1\n"), std::string::npos)
      << metrics;
  EXPECT_NE(metrics.find("kymo_failures_total{request=\"restore\",reason=\"kymod-ended\"} 1\n"),
            std::string::npos)
      << metrics;
}

// podman restores the job without kymod.
void expect_that_images_are_in_use(const CountedJob& job) {
  EXPECT_NE(job.kymod->job(job.counting->name())["pending"].get<std::string>().find(
                "something may still restore it"),
            std::string::npos);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"delete", job.dir()},
        std::vector<std::string>{"delete", job.counting->name(), "--all"},
        std::vector<std::string>{"restore", job.dir()}}) {
    const Outcome refused = job.kymod->kymo(words);
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_TRUE(std::filesystem::exists(job.dir() + "/images/inventory.img")) << refused.err;
  }
}

// Where podman expects its checkpoint of the container.
std::string link_of_podman(const CountedJob& job) {
  const std::string pid_file =
      run({"podman", "container", "inspect", "--format", "{{.PidFile}}", job.counting->name()}).out;
  return pid_file.substr(0, pid_file.rfind('/')) + "/checkpoint";
}

// podman goes on without kymod.
TEST(ContainerHistoryTest, ARestoreByPodmanThatOutlivesKymodIsListedAndCounted) {
  KYMO_NEEDS(Kind::podman);
  CountedJob job(Kind::podman);
  job.dump();
  if (HasFailure()) return;
  job.criu.break_at("pre-resume", SIGSTOP);
  std::thread client([&] { static_cast<void>(job.kymod->kymo({"restore", job.dir()})); });
  const pid_t stopped = job.criu.stopped();
  EXPECT_NE(stopped, 0) << job.kymod->log();
  job.criu.mend();
  EXPECT_EQ(job.kymod->stop(SIGKILL), -1);
  client.join();
  job.kymod->start();
  const auto runs = [&] {
    const Outcome said = job.kymod->kymo({"history", job.counting->name(), "--restores", "--json"});
    return said.exit_code == 0 ? nlohmann::json::parse(said.out)["runs"] : nlohmann::json::array();
  };
  EXPECT_TRUE(runs().empty()) << "the restore has no outcome yet";
  expect_that_images_are_in_use(job);
  if (stopped > 0) kill(stopped, SIGCONT);
  EXPECT_TRUE(eventually([&] { return runs().size() == 1; })) << job.kymod->log();
  EXPECT_EQ(runs().at(0)["error"], "");
  EXPECT_TRUE(job.counting->counts());
  nlohmann::json seen;
  EXPECT_TRUE(eventually([&] {
    seen = job.kymod->job(job.counting->name());
    return seen["state"] == "running" && seen["pending"] == "";
  })) << seen.dump(1);
  EXPECT_FALSE(std::filesystem::is_symlink(link_of_podman(job)))
      << "podman would write its next checkpoint over the images";
  EXPECT_EQ(job.kymod->kymo({"delete", job.dir()}).exit_code, 0);
  std::string metrics;
  EXPECT_TRUE(eventually([&] {
    metrics = run({"curl", "-s", "http://" + job.kymod->http() + "/metrics"}).out;
    return metrics.find("kymo_restores_total{result=\"ok\"} 1\n") != std::string::npos;
  })) << metrics;
}

TEST(HistoryTest, AJobsDumpsAndRestoresAreItsHistory) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(kymod.churn(8, "work").contains("pid"));
  for (int i = 0; i < 3; ++i) dump_leaving(kymod, "work");
  const nlohmann::json last = kymod.kymo_json({"dump", "process", "work"});
  const nlohmann::json back = kymod.kymo_json({"restore", "process", last["directory"]});
  EXPECT_EQ(back["job"], "work");

  const nlohmann::json dumps = kymod.kymo_json({"history", "work"});
  EXPECT_EQ(dumps["job"], "work");
  EXPECT_EQ(dumps["kind"], "dumps");
  ASSERT_EQ(dumps["runs"].size(), 4U);
  EXPECT_EQ(dumps["runs"][0]["warmth"], "cold: the first since kymod started");
  EXPECT_EQ(dumps["runs"][2]["warmth"], "warm");
  EXPECT_EQ(dumps["runs"][2]["conditions"], "leave running");
  EXPECT_EQ(dumps["runs"][3]["conditions"], "");
  EXPECT_EQ(dumps["compared"], nlohmann::json({3})) << "only the last dump ended its process";
  EXPECT_GT(dumps["runs"][2]["phases_ns"]["look at the kernel"].get<std::uint64_t>(), 0U);
  EXPECT_EQ(dumps["runs"][3]["image_bytes"], last["image_bytes"]);
  EXPECT_EQ(dumps["runs"][3]["stood_still_ns"], last["stood_still_ns"]);
  const auto part = [&](const char* name) {
    return last["stats"][name].get<std::uint64_t>() * 1000;
  };
  EXPECT_EQ(last["stood_still_ns"], part("freezing_time_us") + part("frozen_time_us"));

  EXPECT_EQ(kymod.kymo({"dump", "process", "work", "--stream", "--leave-running"}).exit_code, 0);
  EXPECT_EQ(kymod.kymo_json({"history", "work"})["runs"][4]["conditions"], "leave running");

  const nlohmann::json restores = kymod.kymo_json({"history", "work", "--restores"});
  ASSERT_EQ(restores["runs"].size(), 1U);
  EXPECT_EQ(restores["runs"][0]["checkpoint"], dumps["runs"][3]["checkpoint"]);
  EXPECT_EQ(restores["runs"][0]["image_bytes"], last["image_bytes"]);
  EXPECT_EQ(restores["runs"][0]["away_ns"], back["away_ns"]);
  EXPECT_GT(restores["runs"][0]["away_ns"].get<std::uint64_t>(),
            last["stood_still_ns"].get<std::uint64_t>())
      << "the time from the freeze of the dump to the end of the restore";
  EXPECT_EQ(kymod.kymo_json({"history", "work", "--last", "2"})["runs"].size(), 2U);
  const Outcome text = kymod.kymo({"history", "work", "--fail-on-regression", "20%"});
  EXPECT_EQ(text.exit_code, 3) << text.err;
  EXPECT_NE(text.out.find("too few runs to tell a regression"), std::string::npos) << text.out;
}

// The second restore said "away for" the time since the dump, in which the process had run.
TEST(HistoryTest, TheTimeAwayOfASecondRestoreIsNotKnown) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const nlohmann::json listed = kymod.kymo_json({"ps"}).at(0);
  for (const std::string& target : {std::string("work"), listed["pid"].dump()}) {
    const nlohmann::json dumped = kymod.kymo_json({"dump", "process", target});
    const std::vector<std::string> restore{"restore", "process", dumped["directory"]};
    EXPECT_GT(kymod.kymo_json(restore)["away_ns"].get<std::uint64_t>(), 0U);
    ASSERT_EQ(kymod.kymo({"kill", "work", "--wait"}).exit_code, 0);
    const Outcome again = kymod.kymo(restore);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.out.find("away for"), std::string::npos) << again.out;
  }
}

TEST(HistoryTest, RefusedDumpsAreInTheHistoryAndPushNoRealOneOut) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(kymod.churn(8, "work").contains("pid"));
  dump_leaving(kymod, "work");
  ASSERT_EQ(kymod.kymo({"kill", "work", "--wait"}).exit_code, 0);
  for (int night = 0; night < 12; ++night) {
    EXPECT_EQ(kymod.kymo({"dump", "process", "work"}).exit_code, 1);
  }
  const nlohmann::json history = kymod.kymo_json({"history", "work"});
  ASSERT_EQ(history["runs"].size(), 11U) << history;
  EXPECT_EQ(history["runs"][0]["refused"], false);
  EXPECT_EQ(history["runs"][10]["refused"], true);
  EXPECT_EQ(history["runs"][10]["failure"], "not-now");
  EXPECT_EQ(history["runs"][10]["error"], "dump job work: it is not running (it is exited)");
  EXPECT_EQ(history["compared"], nlohmann::json::array({0}));
  EXPECT_EQ(kymod.kymo_json({"history", "work", "--last", "1"})["runs"].size(), 11U);
  const auto metrics = [&] {
    return run({"curl", "-s", "http://" + kymod.http() + "/metrics"}).out;
  };
  const std::string in_a_row = "kymo_refused_in_a_row{request=\"dump\",target=\"job:work\"} ";
  EXPECT_NE(metrics().find(in_a_row + "12\n"), std::string::npos) << metrics();
  const nlohmann::json seen = kymod.kymo_json({"inspect", "work"});
  ASSERT_EQ(seen["refused"].size(), 1U) << seen;
  EXPECT_EQ(seen["refused"][0]["failure"], "not-now");
  EXPECT_EQ(kymod.kymo_json({"explain", "work"})["id"], "not-now");

  // A deleted job fires no alert for ever, but somebody who still dumps it does.
  ASSERT_EQ(kymod.kymo({"delete", "work", "--all"}).exit_code, 0);
  EXPECT_EQ(metrics().find(in_a_row), std::string::npos);
  EXPECT_EQ(kymod.kymo({"dump", "process", "work"}).exit_code, 1);
  EXPECT_NE(metrics().find(in_a_row + "1\n"), std::string::npos) << metrics();
  EXPECT_EQ(kymod.kymo_json({"history", "work"})["runs"][10]["failure"], "not-found");
  EXPECT_EQ(kymod.kymo({"dump", "process", "nobody"}).exit_code, 1);
  EXPECT_EQ(kymod.kymo({"history", "nobody"}).exit_code, 1) << "a mistyped name makes no history";
}

TEST(HistoryTest, ItBelongsToTheNameAndOutlivesTheJob) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const auto run_dump_and_delete = [&kymod] {
    ASSERT_TRUE(kymod.churn(4, "work").contains("pid"));
    static_cast<void>(kymod.kymo_json({"dump", "process", "work"}));
    EXPECT_EQ(kymod.kymo({"delete", "work", "--all"}).exit_code, 0);
  };
  run_dump_and_delete();
  const nlohmann::json deleted = kymod.kymo_json({"history", "work"});
  EXPECT_EQ(deleted["job"], "work");
  EXPECT_EQ(deleted["runs"].size(), 1U);
  run_dump_and_delete();
  EXPECT_EQ(kymod.kymo_json({"history", "work"})["runs"].size(), 2U);
}

TEST(HistoryTest, AFailedDumpSaysHowLongTheProcessStoodStill) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  ASSERT_TRUE(kymod.churn(4, "work").contains("pid"));
  criu.break_at("Dumping pages (type", SIGKILL);
  const Outcome failed = kymod.kymo({"dump", "process", "work"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_NE(failed.err.find("; it stood still for "), std::string::npos) << failed.err;
  const nlohmann::json checkpoint = kymod.kymo_json({"checkpoints", "work"})[0];
  EXPECT_EQ(checkpoint["state"], "failed");
  EXPECT_GT(checkpoint["stood_still_ns"], 0);
  const nlohmann::json run = kymod.kymo_json({"history", "work"})["runs"][0];
  EXPECT_EQ(run["stood_still_ns"], checkpoint["stood_still_ns"]);
}

TEST(HistoryTest, OfAJobTheNewestDumpIsExplainedAlsoOneThatFailed) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  ASSERT_TRUE(kymod.churn(4, "work").contains("pid"));
  const auto newest = [&kymod] {
    return kymod.kymo_json({"checkpoints", "work"}).back()["directory"].get<std::string>();
  };
  const auto explained = [&kymod](const std::string& what) {
    return kymod.kymo_json({"explain", what});
  };
  const auto dump_that_fails = [&] {
    criu.break_at("Dumping processes (pid", SIGKILL);
    EXPECT_EQ(kymod.kymo({"dump", "process", "work"}).exit_code, 1);
    criu.mend();
  };
  EXPECT_EQ(kymod.kymo({"explain", "work"}).exit_code, 2) << "there is no dump yet";
  dump_that_fails();
  EXPECT_TRUE(explained("work").contains("retry"));
  EXPECT_EQ(explained("work"), explained(newest()));
  const Outcome stats = kymod.kymo({"stats", "work"});
  EXPECT_EQ(stats.exit_code, 2);
  EXPECT_NE(stats.err.find("kymo explain work says why its dump failed"), std::string::npos)
      << stats.err;
  dump_leaving(kymod, "work");
  const std::string complete = newest();
  EXPECT_EQ(explained("work"), explained(complete));
  EXPECT_FALSE(explained("work").contains("retry"));
  dump_that_fails();
  EXPECT_EQ(explained("work"), explained(newest()));
  EXPECT_TRUE(explained("work").contains("retry"));
  const Outcome text = kymod.kymo({"explain", "work"});
  EXPECT_NE(text.out.find("\nThe last complete checkpoint: kymo explain " + complete + "\n"),
            std::string::npos)
      << text.out;

  EXPECT_EQ(kymod.kymo({"delete", "work", "--failed"}).exit_code, 0);
  const nlohmann::json left = kymod.kymo_json({"checkpoints", "work"});
  ASSERT_EQ(left.size(), 1U) << left;
  EXPECT_EQ(left[0]["directory"], complete);
}

TEST(HistoryTest, AProcessToWhichCriuCannotAttachDidNotStandStill) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const pid_t pid = kymod.churn(4, "work")["pid"];
  ASSERT_EQ(ptrace(PTRACE_SEIZE, pid, nullptr, nullptr), 0)
      << "this test traces it, as strace does";
  const Outcome failed = kymod.kymo({"dump", "process", "work", "--force"});
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr), 0);
  waitpid(pid, nullptr, __WALL);
  ASSERT_EQ(ptrace(PTRACE_DETACH, pid, nullptr, nullptr), 0);
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_NE(failed.err.find("cannot-attach"), std::string::npos) << failed.err;
  EXPECT_EQ(failed.err.find("stood still"), std::string::npos) << failed.err;
  EXPECT_TRUE(kymod.kymo_json({"checkpoints", "work"})[0]["stood_still_ns"].is_null());
  const std::string metrics = run({"curl", "-s", "http://" + kymod.http() + "/metrics"}).out;
  EXPECT_NE(metrics.find("kymo_stood_still_seconds_count 0\n"), std::string::npos) << metrics;
}

TEST(HistoryTest, AProcessThatIsNoJobIsFoundByItsProgramOrCommandLine) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  // Another kymod started them, so for this kymod they are processes without a job.
  Kymod other;
  other.start();
  const auto dump = [&](const nlohmann::json& job) {
    return kymod.kymo_json(
        {"dump", "process", std::to_string(job["pid"].get<int>()), "--leave-running"});
  };
  const nlohmann::json small = other.churn(4, "small");
  dump(small);
  dump(small);
  const nlohmann::json history = kymod.kymo_json({"history", "kymo-churn"});
  ASSERT_EQ(history["runs"].size(), 2U);
  EXPECT_EQ(history["job"].get<std::string>().rfind("program:", 0), 0U) << history["job"];

  const nlohmann::json large = other.churn(8, "large");
  dump(large);
  const Outcome which = kymod.kymo({"history", "kymo-churn"});
  EXPECT_EQ(which.exit_code, 1);
  EXPECT_NE(which.err.find("several command lines"), std::string::npos) << which.err;
  const nlohmann::json told = kymod.kymo_json(
      {"history", history["job"].get<std::string>().substr(std::string("program:").size())});
  EXPECT_EQ(told["runs"].size(), 2U) << "the history has only the runs of this command line";
  EXPECT_EQ(kymod.kymo({"history", "nobody"}).exit_code, 1);
}

TEST(HistoryTest, ARegressionExitsWithOneAndBadUsageWithTwo) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(kymod.churn(4, "work").contains("pid"));
  for (int i = 0; i < 12; ++i) dump_leaving(kymod, "work");
  // How much memory the program has at each dump depends on the machine, so the sizes are given.
  ASSERT_EQ(kymod.stop(SIGTERM), 0);
  change(kymod, "UPDATE runs SET image_bytes = 20000000 + 1000 * (rowid % 5)");
  kymod.start();
  const Outcome steady =
      kymod.kymo({"history", "work", "--metric", "bytes", "--fail-on-regression", "20%"});
  EXPECT_EQ(steady.exit_code, 0) << steady.out << steady.err;
  EXPECT_NE(steady.out.find("no regression"), std::string::npos) << steady.out;

  ASSERT_EQ(kymod.stop(SIGTERM), 0);
  change(kymod,
         "UPDATE runs SET image_bytes = image_bytes * 2"
         " WHERE created_unix_ns = (SELECT max(created_unix_ns) FROM runs)");
  kymod.start();
  const Outcome worse =
      kymod.kymo({"history", "work", "--metric", "bytes", "--fail-on-regression", "20%"});
  EXPECT_EQ(worse.exit_code, 1) << worse.out << worse.err;
  EXPECT_NE(worse.out.find("REGRESSION: bytes"), std::string::npos) << worse.out;
  // One large dump does not change the median of three.
  const Outcome median = kymod.kymo(
      {"history", "work", "--metric", "bytes", "--newest", "3", "--fail-on-regression", "20%"});
  EXPECT_EQ(median.exit_code, 0) << median.out << median.err;

  for (const char* share : {"much", "-5%", "", "%"}) {
    const Outcome wrong = kymod.kymo({"history", "work", "--fail-on-regression", share});
    EXPECT_EQ(wrong.exit_code, 2) << share << wrong.out;
  }
  EXPECT_EQ(kymod.kymo({"history", "work", "--metric", "beauty"}).exit_code, 2);
  EXPECT_EQ(kymod.kymo({"history"}).exit_code, 2);
  EXPECT_EQ(kymod.kymo({"history", "nobody"}).exit_code, 1);
}

}  // namespace
}  // namespace kymo::test
