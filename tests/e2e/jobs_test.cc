// What is done with jobs and checkpoints from the command line: attach, kill, inspect, delete.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <thread>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

nlohmann::json shell(const Kymod& kymod, const std::string& name, const std::string& script) {
  return kymod.kymo_json({"run", "process", "--name", name, "--", "/bin/sh", "-c", script});
}

TEST(JobsTest, AttachGivesTheOutputAndTheExitCode) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(shell(kymod, "work", "echo one; echo two; echo bad >&2; sleep 1; echo three; exit 7")
                  .contains("pid"));
  const Outcome all = kymod.kymo({"attach", "work"});
  EXPECT_EQ(all.exit_code, 7) << all.err;
  EXPECT_EQ(all.out, "one\ntwo\nthree\n");
  EXPECT_EQ(all.err, "bad\n");
  const Outcome tail = kymod.kymo({"attach", "work", "--tail", "1"});
  EXPECT_EQ(tail.exit_code, 7);
  EXPECT_EQ(tail.out, "three\n");
  EXPECT_EQ(kymod.kymo({"attach", "work", "--tail", "0"}).out, "");
  EXPECT_EQ(kymod.kymo({"attach", "work", "--tail", "99"}).out, "one\ntwo\nthree\n");
  const Outcome unknown = kymod.kymo({"attach", "nobody"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("there is no job and no checkpoint nobody"), std::string::npos);
}

TEST(JobsTest, AttachGoesOnThroughADumpAndARestore) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  Outcome attached;
  std::thread client([&] { attached = kymod.kymo({"attach", "work", "--tail", "1"}); });
  EXPECT_TRUE(kymod.goes_on(job));
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
  std::this_thread::sleep_for(std::chrono::seconds(1));  // for attach to see it
  EXPECT_EQ(kymod.kymo_json({"restore", "process", dump["directory"]})["job"], "work");
  EXPECT_TRUE(kymod.goes_on(job));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const Outcome killed = kymod.kymo({"kill", "work", "--signal", "KILL", "--wait"});
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  client.join();
  EXPECT_EQ(attached.exit_code, 128 + SIGKILL) << attached.err;
  EXPECT_NE(attached.err.find("waiting for its restore"), std::string::npos) << attached.err;
  EXPECT_NE(attached.err.find("was restored and goes on as pid"), std::string::npos)
      << attached.err;
  EXPECT_NE(attached.err.find("ended by SIGKILL"), std::string::npos) << attached.err;
}

TEST(JobsTest, KillSendsWhatIsAskedForAndSaysHowItEnded) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(
      shell(kymod, "work", "trap 'exit 3' TERM; while :; do sleep 0.05; done").contains("pid"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for the trap to be set
  for (const char* signal : {"FOO", "0", "99", ""}) {
    const Outcome wrong = kymod.kymo({"kill", "work", "--signal", signal});
    EXPECT_EQ(wrong.exit_code, 2) << signal;
    EXPECT_NE(wrong.err.find("there is no signal"), std::string::npos) << wrong.err;
  }
  const Outcome ended = kymod.kymo({"kill", "work", "--wait"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find("sent SIGTERM to job work"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("it has ended: exit code 3"), std::string::npos) << ended.out;
  EXPECT_EQ(kymod.job("work")["exit_code"], 3);
  const Outcome again = kymod.kymo({"kill", "work"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(again.err, "kymo: kill job work: it does not run, it is exited\n");
}

TEST(JobsTest, InspectShowsAJobACheckpointAndADirectory) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
  const std::string dir = dump["directory"];
  const nlohmann::json of_job = kymod.kymo_json({"inspect", "work"});
  EXPECT_EQ(of_job["job"]["state"], "dumped");
  EXPECT_EQ(of_job["job"]["id"], job["id"]);
  ASSERT_EQ(of_job["checkpoints"].size(), 1U);
  const std::string id = of_job["checkpoints"][0]["id"];
  for (const std::string& target : {id, dir, dir + "/"}) {
    const nlohmann::json seen = kymod.kymo_json({"inspect", target});
    EXPECT_EQ(seen["checkpoint"]["id"], id);
    EXPECT_EQ(seen["record"]["state"], "complete");
    EXPECT_EQ(seen["recordings"], nlohmann::json({dir + "/recordings/dump.tsv"}));
    EXPECT_EQ(seen["criu"]["dump"], dump["stats"]) << seen["criu"].dump(2);
  }
  const Outcome text = kymod.kymo({"inspect", id});
  EXPECT_NE(text.out.find("where the time went"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("criu starts"), std::string::npos) << text.out;
  EXPECT_NE(kymod.kymo({"inspect", "work"}).out.find(id), std::string::npos);
  // A directory that no kymod knows.
  fs::copy(dir, kymod.path("copy"), fs::copy_options::recursive);
  const nlohmann::json copy = kymod.kymo_json({"inspect", kymod.path("copy")});
  EXPECT_TRUE(copy["checkpoint"].is_null());
  EXPECT_EQ(copy["record"]["pid"], job["pid"]);
  EXPECT_EQ(kymod.kymo({"inspect", "nobody"}).exit_code, 1);
}

TEST(JobsTest, DeleteRemovesCheckpointsAndJobsButNoneThatRuns) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  const nlohmann::json first = kymod.kymo_json({"dump", "process", "work", "--leave-running"});
  const nlohmann::json second =
      kymod.kymo_json({"dump", "process", "work", "--leave-running", "--dir", kymod.path("mine")});
  const std::string id = kymod.kymo_json({"checkpoints"})[0]["id"];
  const nlohmann::json deleted = kymod.kymo_json({"delete", id});
  EXPECT_EQ(deleted["checkpoints"], nlohmann::json({id}));
  EXPECT_EQ(deleted["freed_bytes"], first["image_bytes"]);
  EXPECT_FALSE(fs::exists(first["directory"].get<std::string>() + "/images"));
  EXPECT_EQ(kymod.kymo_json({"checkpoints"}).size(), 1U);
  const Outcome running = kymod.kymo({"delete", "work", "--all"});
  EXPECT_EQ(running.exit_code, 1);
  EXPECT_EQ(running.err, "kymo: delete job work: it runs: end it first (kymo kill)\n");
  EXPECT_EQ(kymod.kymo({"kill", "work", "--signal", "KILL", "--wait"}).exit_code, 0);
  const Outcome kept = kymod.kymo({"delete", "work"});
  EXPECT_EQ(kept.exit_code, 1);
  EXPECT_NE(kept.err.find("it has 1 whole checkpoints: --all"), std::string::npos) << kept.err;
  EXPECT_EQ(kymod.kymo({"delete", "work", "--all"}).exit_code, 0);
  EXPECT_TRUE(kymod.kymo_json({"ps"}).empty());
  EXPECT_TRUE(kymod.kymo_json({"checkpoints"}).empty());
  EXPECT_FALSE(fs::exists(kymod.path("mine") + "/images"));
  EXPECT_FALSE(fs::exists(job["stdout_path"].get<std::string>()));
  const Outcome unknown = kymod.kymo({"delete", "c1", "c2"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("there is no checkpoint and no job c2"), std::string::npos);
  EXPECT_EQ(kymod.kymo({"delete"}).exit_code, 2);
}

TEST(JobsTest, TheOldestCheckpointsMakeRoomAndOthersPlacesAreLeftAlone) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--keep-count", "2"});
  kymod.start();
  ASSERT_TRUE(kymod.churn(4, "work").contains("pid"));
  std::vector<std::string> dirs;
  for (int i = 0; i < 4; ++i) {
    dirs.push_back(kymod.kymo_json({"dump", "process", "work", "--leave-running"})["directory"]);
  }
  const std::string mine = kymod.path("mine");
  EXPECT_EQ(kymod.kymo({"dump", "process", "work", "--leave-running", "--dir", mine}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return kymod.kymo_json({"checkpoints"}).size() == 3; }));
  for (const std::string& old : {dirs[0], dirs[1]}) {  // no longer listed first, then removed
    EXPECT_TRUE(eventually([&] { return !fs::exists(old + "/images"); })) << old;
  }
  EXPECT_TRUE(fs::exists(dirs[3] + "/images/inventory.img"));
  EXPECT_TRUE(fs::exists(mine + "/images/inventory.img"));
  EXPECT_NE(kymod.log().find("made room: checkpoint"), std::string::npos);
  EXPECT_EQ(kymod.kymo_json({"history", "work"})["runs"].size(), 5U) << "history outlives them";
}

TEST(JobsTest, WhatRunsAlreadyIsAdoptedDumpedAndRestored) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const Outcome started =
      run({"/bin/bash", "-c",
           "for fd in {3..255}; do eval \"exec $fd>&-\"; done; "  // the test runner's own
           "setsid " CHURN_PROGRAM " --mib 4 </dev/null >" +
               kymod.path("out") + " 2>&1 & echo $!"});
  ASSERT_EQ(started.exit_code, 0) << started.err;
  const std::string pid = std::to_string(std::stoi(started.out));
  ASSERT_TRUE(eventually([&] { return !read_file(kymod.path("out")).empty(); }));
  const nlohmann::json job = kymod.kymo_json({"adopt", "process", pid, "--name", "taken"});
  EXPECT_EQ(job["name"], "taken");
  EXPECT_EQ(job["pid"], std::stoi(pid));
  const Outcome twice = kymod.kymo({"adopt", "process", pid});
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_NE(twice.err.find("it is job taken already"), std::string::npos) << twice.err;
  EXPECT_EQ(kymod.kymo({"adopt", "process", "4194304"}).exit_code, 1);
  EXPECT_EQ(kymod.kymo({"adopt", "runc", "nobody"}).exit_code, 1);
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "taken"});
  EXPECT_EQ(kymod.job("taken")["state"], "dumped");
  EXPECT_EQ(kymod.kymo_json({"restore", "process", dump["directory"]})["job"], "taken");
  EXPECT_EQ(kymod.job("taken")["state"], "running");
}

}  // namespace
}  // namespace kymo::test
