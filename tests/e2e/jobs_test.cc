// Commands for jobs and checkpoints: attach, kill, inspect, delete.

#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <thread>
#include <utility>

#include "base/proc/process.h"
#include "daemon/database/store.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

nlohmann::json shell(const Kymod& kymod, const std::string& name, const std::string& script) {
  return kymod.kymo_json({"run", "process", "--name", name, "--", "/bin/sh", "-c", script});
}

TEST(JobsTest, WatchShowsWhatJobsDoAndThePhaseByItsName) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(shell(kymod, "work", "while :; do :; done").contains("pid"));
  const Outcome seen = kymod.kymo({"watch", "--once"});
  ASSERT_EQ(seen.exit_code, 0) << seen.err;
  std::map<std::string, std::string> values;
  std::istringstream lines(seen.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::string value;
    words >> name >> value;
    values[name] = value;
  }
  EXPECT_EQ(values["phase"], "idle") << seen.out;
  EXPECT_EQ(values["job_running[work]"], "1") << seen.out;
  EXPECT_NE(values["job_resident_bytes[work]"], "0") << seen.out;
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
  const std::string said = kymod.path("said");
  const auto says = [&](const std::string& text) {
    return eventually([&] { return read_file(said).find(text) != std::string::npos; });
  };
  Outcome attached;
  std::thread client([&] {
    attached = run({"/bin/sh", "-c", R"(exec 2>"$0" "$@")", said, KYMO_PROGRAM, "--socket",
                    kymod.socket(), "attach", "work", "--tail", "1"});
  });
  EXPECT_TRUE(kymod.goes_on(job));
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
  EXPECT_TRUE(says("waiting for its restore")) << read_file(said);
  EXPECT_EQ(kymod.kymo_json({"restore", "process", dump["directory"]})["job"], "work");
  EXPECT_TRUE(kymod.goes_on(job));
  EXPECT_TRUE(says("was restored and goes on as pid")) << read_file(said);
  const Outcome killed = kymod.kymo({"kill", "work", "--signal", "KILL", "--wait"});
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  client.join();
  EXPECT_EQ(attached.exit_code, 128 + SIGKILL) << read_file(said);
  EXPECT_TRUE(says("was ended by signal 9 (SIGKILL)")) << read_file(said);
}

TEST(JobsTest, KillSendsWhatIsAskedForAndSaysHowItEnded) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job =
      shell(kymod, "work", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return read_file(job["stdout_path"]) == "ready\n"; }));
  for (const char* signal : {"FOO", "0", "99", ""}) {
    const Outcome wrong = kymod.kymo({"kill", "work", "--signal", signal});
    EXPECT_EQ(wrong.exit_code, 2) << signal;
    EXPECT_NE(wrong.err.find("there is no signal"), std::string::npos) << wrong.err;
  }
  const Outcome ended = kymod.kymo({"kill", "work", "--wait"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find("sent SIGTERM to job work"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("it exited with status 3"), std::string::npos) << ended.out;
  EXPECT_EQ(kymod.job("work")["exit_code"], 3);
  const Outcome again = kymod.kymo({"kill", "work"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(again.err, "kymo: kill job work: it is not running (it is exited)\n");
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
  EXPECT_NE(text.out.find("\n  stood still "), std::string::npos) << text.out;
  EXPECT_NE(kymod.kymo({"inspect", "work"}).out.find(id), std::string::npos);
  // A directory that no kymod has listed.
  wait_until_recorded(dir, {"dump"});
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
  static_cast<void>(
      kymod.kymo_json({"dump", "process", "work", "--leave-running", "--dir", kymod.path("gone")}));
  wait_until_recorded(kymod.path("gone"), {"dump"});
  fs::remove_all(kymod.path("gone"));
  const Outcome forgotten = kymod.kymo({"delete", kymod.path("gone")});
  EXPECT_EQ(forgotten.exit_code, 0) << forgotten.err;
  EXPECT_TRUE(forgotten.out.starts_with("forgot checkpoint ")) << forgotten.out;
  EXPECT_TRUE(forgotten.out.ends_with(": its files were gone already\n"));
  const Outcome running = kymod.kymo({"delete", "work", "--all"});
  EXPECT_EQ(running.exit_code, 1);
  EXPECT_EQ(running.err, "kymo: delete job work: it runs: end it first (kymo kill)\n");
  EXPECT_EQ(kymod.kymo({"kill", "work", "--signal", "KILL", "--wait"}).exit_code, 0);
  const Outcome kept = kymod.kymo({"delete", "work"});
  EXPECT_EQ(kept.exit_code, 1);
  EXPECT_NE(kept.err.find("it has 1 whole checkpoint: --all"), std::string::npos) << kept.err;
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

// The first dump of the job failed, the user removed its directory, and another dump used the same
// directory. So two checkpoints have this directory.
TEST(JobsTest, AJobIsDeletedOfWhichTwoCheckpointsNameOneDirectory) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  const std::string dir = kymod.path("mine");
  criu.let_do("exit 3");
  EXPECT_EQ(kymod.kymo({"dump", "process", "work", "--dir", dir}).exit_code, 1);
  criu.mend();
  wait_until_recorded(dir, {"dump"});
  fs::remove_all(dir);
  const Outcome dumped = kymod.kymo({"dump", "process", "work", "--dir", dir});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const nlohmann::json both = kymod.kymo_json({"checkpoints"});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0]["directory"], both[1]["directory"]);
  const Outcome deleted = kymod.kymo({"delete", "work", "--all"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  EXPECT_TRUE(kymod.kymo_json({"ps"}).empty());
  EXPECT_TRUE(kymod.kymo_json({"checkpoints"}).empty());
  EXPECT_FALSE(fs::exists(dir));
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
  const Outcome dumped =
      kymod.kymo({"dump", "process", "work", "--leave-running", "--dir", mine, "-v"});
  EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_NE(dumped.out.find(" µs\n"), std::string::npos) << dumped.out;
  EXPECT_EQ(dumped.out.find(" us\n"), std::string::npos) << dumped.out;
  EXPECT_TRUE(eventually([&] { return kymod.kymo_json({"checkpoints"}).size() == 3; }));
  // Kymod first takes a checkpoint from its list, and then removes it.
  for (const std::string& old : {dirs[0], dirs[1]}) {
    EXPECT_TRUE(eventually([&] { return !fs::exists(old + "/images"); })) << old;
  }
  EXPECT_TRUE(fs::exists(dirs[3] + "/images/inventory.img"));
  EXPECT_TRUE(fs::exists(mine + "/images/inventory.img"));
  EXPECT_TRUE(eventually([&] {
    return kymod.log().find("made room: removed the oldest checkpoint") != std::string::npos;
  }));
  EXPECT_EQ(kymod.kymo_json({"history", "work"})["runs"].size(), 5U) << "the history must be kept";
  kymod.restart({"--keep-bytes", "1"});
  ASSERT_TRUE(kymod.logs("made room: removed the oldest checkpoint"));
  const std::string log = kymod.log();
  const std::size_t said = log.find("removing 2 old checkpoints with ");
  EXPECT_LT(said, log.find("made room: ")) << log;
  EXPECT_NE(log.find("2 complete ones, more than --keep-count 2 and --keep-bytes 1 B allow"),
            std::string::npos)
      << log;
}

// Undoes what the test did to the disk of the checkpoints, before kymod is stopped.
struct MountedCheckpoints {
  MountedCheckpoints(const MoodyDisk& source, std::string target)
      : disk(source), path(std::move(target)) {
    fs::create_directories(path);
    mounted = mount(disk.path().c_str(), path.c_str(), "", MS_BIND, nullptr) == 0;
  }
  ~MountedCheckpoints() {
    disk.be("well");
    umount2(path.c_str(), MNT_DETACH);
  }
  MountedCheckpoints(const MountedCheckpoints&) = delete;
  MountedCheckpoints& operator=(const MountedCheckpoints&) = delete;
  const MoodyDisk& disk;
  const std::string path;
  bool mounted = false;
};

// A deletion waited for its disk. Somebody deleted the newest checkpoint meanwhile, and then the last one that was left
// was removed as well, because it was among those to be removed when the newest one was still there.
TEST(JobsTest, WhichCheckpointIsTheNewestIsLookedUpBeforeEachDeletion) {
  KYMO_NEEDS_CRIU();
  const TemporaryDirectory folder;
  const MoodyDisk disk(folder);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  Kymod kymod;
  const MountedCheckpoints checkpoints(disk, kymod.state() + "/checkpoints");
  ASSERT_TRUE(checkpoints.mounted);
  kymod.start();
  static_cast<void>(kymod.churn(4, "work"));
  std::vector<std::string> dirs;
  for (int i = 0; i < 2; ++i) {
    const nlohmann::json dumped = kymod.kymo_json({"dump", "process", "work", "--leave-running"});
    dirs.push_back(dumped["directory"]);
    ended_metadata(dumped["recording"]);  // kymod writes nothing to the disk any more
  }
  const std::string newest = kymod.path("mine");
  static_cast<void>(
      kymod.kymo_json({"dump", "process", "work", "--leave-running", "--dir", newest}));
  disk.be("stalls");
  kymod.restart({"--keep-bytes", "1"});  // both go, because the newest one is elsewhere
  EXPECT_TRUE(eventually([&] {
    return kymod.kymo_json({"checkpoints"}).at(0).at("state") == "deleting";
  })) << kymod.log();
  const Outcome deleted = kymod.kymo({"delete", newest});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  disk.be("well");
  EXPECT_TRUE(eventually([&] { return !fs::exists(dirs[0]); })) << kymod.log();
  EXPECT_EQ(kymod.stop(SIGTERM), 0);  // the removal has ended
  EXPECT_TRUE(fs::exists(dirs[1] + "/images/inventory.img")) << kymod.log();
  kymod.start();
  EXPECT_EQ(kymod.kymo_json({"checkpoints"}).size(), 1U);
}

// It was sent the signal, although it is not the job.
TEST(JobsTest, AfterARestartOfTheMachineNoOtherProcessGetsASignalOfTheJob) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const pid_t pid = kymod.churn(4, "work")["pid"];
  kymod.stop(SIGKILL);
  {
    const auto store = store::Store::open(kymod.state() + "/kymo.db").value();
    store::Job job = store->job("work").value();
    EXPECT_FALSE(job.boot_id.empty());
    job.boot_id = "of an earlier boot";
    ASSERT_TRUE(store->update_job(job).ok());
  }
  kymod.start();
  EXPECT_EQ(kymod.job("work")["state"], "exited");
  const Outcome refused = kymod.kymo({"kill", "work", "--signal", "KILL"});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("it is not running"), std::string::npos) << refused.err;
  EXPECT_TRUE(probe::process_lives(pid, 0));
  kill(pid, SIGKILL);
}

TEST(JobsTest, AttachLetsAJobCommandATerminalOnlyWhenAskedTo) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(shell(kymod, "work", "printf 'a\\033[31mb\\tc\\n'; printf 'e\\033[31m\\n' >&2")
                  .contains("pid"));
  const auto shown = [&](const std::string& flags) {
    return run({"script", "-qec", KYMO_PROGRAM " attach work --socket " + kymod.socket() + flags,
                "/dev/null"})
        .out;
  };
  const std::string plain = shown("");
  EXPECT_NE(plain.find("a?[31mb\tc"), std::string::npos) << plain;
  EXPECT_EQ(plain.find('\033'), std::string::npos) << plain;
  EXPECT_NE(shown(" --raw").find("a\033[31mb"), std::string::npos);
  EXPECT_EQ(kymod.kymo({"attach", "work"}).out, "a\033[31mb\tc\n")
      << "output to a file must be unchanged";
}

// The control character U+009B also begins an escape sequence. It can be a single byte, or two bytes
// that come in two reads.
TEST(JobsTest, AttachShowsNoEscapeOfOneCharacterToATerminal) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(
      shell(kymod, "work", "printf 'a\\302'; sleep 1; printf '\\2331mb \\2331mc \\303\\244\\n'")
          .contains("pid"));
  const std::string shown =
      run({"script", "-qec", KYMO_PROGRAM " attach work --socket " + kymod.socket(), "/dev/null"})
          .out;
  EXPECT_NE(shown.find("a?1mb ?1mc \u00e4"), std::string::npos) << shown;
  EXPECT_EQ(shown.find('\x9b'), std::string::npos) << shown;
}

// gRPC refuses text that is not UTF-8.
TEST(JobsTest, AProcessWhoseNameIsNoTextHidesNothing) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const std::string program = kymod.path("b\x9b\n\x1b[31m");
  std::filesystem::copy_file(CHURN_PROGRAM, program);
  const Outcome started =
      run({"/bin/bash", "-c",
           "setsid \"$1\" --mib 4 </dev/null >" + kymod.path("out") + " 2>&1 & echo $!", "bash",
           program});
  ASSERT_EQ(started.exit_code, 0) << started.err;
  const std::string pid = std::to_string(std::stoi(started.out));
  ASSERT_TRUE(eventually([&] { return !read_file(kymod.path("out")).empty(); }));
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", pid, "--leave-running"});
  const std::string directory = dump["directory"];
  const std::string folder = directory.substr(directory.rfind('/') + 1);
  EXPECT_EQ(folder, "b___[31m-" + pid + "-1")
      << "the name of the folder must not contain control codes";
  EXPECT_EQ(kymod.kymo_json({"checkpoints"}).size(), 1U);
  EXPECT_EQ(kymod.kymo_json({"adopt", "process", pid, "--name", "odd"})["name"], "odd");
  EXPECT_EQ(kymod.kymo_json({"ps"}).size(), 1U);
  EXPECT_EQ(kymod.kymo({"kill", "odd"}).exit_code, 0);
  const Outcome refused = kymod.kymo({"run", "process", "--", "sleep", "\x9b"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("not UTF-8"), std::string::npos) << refused.err;
}

TEST(JobsTest, WhatRunsAlreadyIsAdoptedDumpedAndRestored) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const Outcome started = run(
      {"/bin/bash", "-c",
       "setsid " CHURN_PROGRAM " --mib 4 </dev/null >" + kymod.path("out") + " 2>&1 & echo $!"});
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
  for (const pid_t wrong : {pid_t{1}, kymod.pid(), getpid()}) {
    const Outcome refused = kymod.kymo({"adopt", "process", std::to_string(wrong)});
    EXPECT_EQ(refused.exit_code, 1) << wrong;
    EXPECT_TRUE(refused.err.find("it is init") != std::string::npos ||
                refused.err.find("a program that started it") != std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(kymod.kymo_json({"ps"}).size(), 1U);
  EXPECT_EQ(kymod.kymo({"adopt", "runc", "nobody"}).exit_code, 1);
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "taken"});
  EXPECT_EQ(kymod.job("taken")["state"], "dumped");
  EXPECT_EQ(kymod.kymo_json({"restore", "process", dump["directory"]})["job"], "taken");
  EXPECT_EQ(kymod.job("taken")["state"], "running");
}

TEST(JobsTest, ARunningJobIsGivenBackAndRunsOn) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(4, "work");
  const std::string dir =
      kymod.kymo_json({"dump", "process", "work", "--leave-running"})["directory"];
  const Outcome released = kymod.kymo({"release", "work"});
  ASSERT_EQ(released.exit_code, 0) << released.err;
  EXPECT_NE(released.out.find("is no longer a job; it runs on, its output goes to "),
            std::string::npos)
      << released.out;
  EXPECT_TRUE(kymod.kymo_json({"ps"}).empty());
  EXPECT_TRUE(kymod.goes_on(job));
  EXPECT_EQ(kymod.kymo_json({"checkpoints"})[0]["directory"], dir)
      << "the checkpoints of a released job must be kept";
  EXPECT_NE(kymod.kymo({"release", "work"}).err.find("no job is named work"), std::string::npos);
  const nlohmann::json again =
      kymod.kymo_json({"adopt", "process", std::to_string(job["pid"].get<int>())});
  EXPECT_EQ(again["pid"], job["pid"]);
  const Outcome ended = kymod.kymo({"kill", again["name"], "--signal", "KILL", "--wait"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Outcome late = kymod.kymo({"release", again["name"]});
  EXPECT_NE(late.err.find("it is not running (it is exited): kymo delete removes it"),
            std::string::npos)
      << late.err;
}

TEST(JobsTest, AFrozenJobIsShownAsFrozen) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(4, "work"));
  EXPECT_EQ(kymod.job("work")["frozen"], false);
  ASSERT_EQ(kymod.kymo({"freeze", "process", "work"}).exit_code, 0);
  EXPECT_EQ(kymod.job("work")["frozen"], true);
  const Outcome shown = kymod.kymo({"ps"});
  EXPECT_NE(shown.out.find("frozen"), std::string::npos) << shown.out;
  ASSERT_EQ(kymod.kymo({"unfreeze", "process", "work"}).exit_code, 0);
  EXPECT_EQ(kymod.job("work")["frozen"], false);
}

// A dump that is refused because of a terminal must not be listed as a failed checkpoint.
TEST(JobsTest, AProcessOnATerminalIsRefusedAndNeverFrozen) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  int master = -1;
  const pid_t pid = forkpty(&master, nullptr, nullptr, nullptr);
  if (pid == 0) {
    execlp("sleep", "sleep", "1000", nullptr);
    _exit(1);
  }
  ASSERT_GT(pid, 0);
  ASSERT_TRUE(
      eventually([&] { return read_file("/proc/" + std::to_string(pid) + "/comm") == "sleep\n"; }));
  const Outcome dump = kymod.kymo({"dump", "process", std::to_string(pid), "--shell-job"});
  EXPECT_EQ(dump.exit_code, 1);
  EXPECT_NE(dump.err.find("it has the terminal /dev/pts/"), std::string::npos) << dump.err;
  EXPECT_NE(dump.err.find("kymo run"), std::string::npos) << dump.err;
  EXPECT_EQ(kill(pid, 0), 0);
  EXPECT_TRUE(kymod.kymo_json({"checkpoints"}).empty());
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  close(master);
}

// A process that is not the leader of its session and has no terminal still needs --shell-job.
TEST(JobsTest, APartOfASessionIsDumpedWithShellJobAndRestored) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  // The leader of the session waits for this process, and is not dumped.
  const Outcome started =
      run({"/bin/bash", "-c",
           "setsid bash -c '" + std::string(CHURN_PROGRAM) + " --mib 4 </dev/null >" +
               kymod.path("out") + " 2>&1 & echo $! >" + kymod.path("pid") +
               "; wait' </dev/null >/dev/null 2>&1 &"});
  ASSERT_EQ(started.exit_code, 0) << started.err;
  ASSERT_TRUE(eventually([&] { return !read_file(kymod.path("pid")).empty(); }));
  const std::string pid = std::to_string(std::stoi(read_file(kymod.path("pid"))));
  ASSERT_TRUE(eventually([&] { return !read_file(kymod.path("out")).empty(); }));
  ASSERT_EQ(kymod.kymo({"adopt", "process", pid, "--name", "part"}).exit_code, 0);
  const Outcome dump = kymod.kymo({"dump", "process", "part", "--shell-job", "--json"});
  ASSERT_EQ(dump.exit_code, 0) << dump.err;
  const std::string dir = nlohmann::json::parse(dump.out)["directory"];
  // The checkpoint keeps the flags of the dump.
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_EQ(kymod.job("part")["state"], "running");
}

TEST(JobsTest, ACheckpointThatIsDeletedDuringItsRestoreIsRefusedOrSaid) {
  KYMO_NEEDS_CRIU();
  const TemporaryDirectory folder;
  const std::string slow = folder.path() + "/slow";
  const std::string started = folder.path() + "/started";
  const std::string criu = folder.file(
      "criu", "#!/bin/sh\n[ ! -e " + slow + " ] || { : >" + started + "; while [ -e " + slow +
                  " ]; do sleep 0.05; done; }\nexec " + criu_path() + " \"$@\"\n");
  ASSERT_EQ(chmod(criu.c_str(), 0755), 0);
  Kymod kymod({"--criu", criu});
  kymod.start();
  static_cast<void>(kymod.churn(4, "work"));
  const std::string dir = kymod.kymo_json({"dump", "process", "work"})["directory"];
  static_cast<void>(folder.file("slow", ""));
  Outcome restore;
  std::thread client([&] { restore = kymod.kymo({"restore", dir}); });
  EXPECT_TRUE(eventually([&] { return fs::exists(started); }));
  const Outcome refused = kymod.kymo({"delete", dir});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("a dump or restore uses"), std::string::npos) << refused.err;
  fs::remove_all(dir + "/images");  // somebody removes the images without kymo
  fs::remove(slow);
  client.join();
  EXPECT_EQ(restore.exit_code, 1);
  EXPECT_NE(restore.err.find("the checkpoint was deleted meanwhile; nothing was restored"),
            std::string::npos)
      << restore.err;
  EXPECT_EQ(kymod.job("work")["state"], "dumped");
  EXPECT_EQ(kymod.kymo({"restore", dir}).exit_code, 1);
  EXPECT_EQ(kymod.kymo({"delete", "work", "--all"}).exit_code, 0);
}

TEST(JobsTest, TheOutputOfAJobIsBoundedAndTheJobIsStillRestored) {
  KYMO_NEEDS_CRIU();
  constexpr std::uint64_t kMax = 1 << 20;
  Kymod kymod({"--job-output-bytes", "1MiB"});
  kymod.start();
  const nlohmann::json job = shell(
      kymod, "loud",
      "i=0; while :; do i=$((i + 1)); [ $((i % 500)) = 0 ] && sleep 0.01; echo line $i; done");
  const std::string out = job["stdout_path"];
  const auto stored = [&] {
    struct stat info {};
    return stat(out.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * 512 : 0;
  };
  ASSERT_TRUE(
      eventually([&] { return kymod.log().find("removed the oldest") != std::string::npos; },
                 std::chrono::seconds(60)))
      << fs::file_size(out);
  const Outcome dump = kymod.kymo({"dump", "process", "loud", "--json"});
  ASSERT_EQ(dump.exit_code, 0) << dump.err;
  EXPECT_LT(stored(), fs::file_size(out));
  const Outcome restored =
      kymod.kymo({"restore", nlohmann::json::parse(dump.out)["directory"].get<std::string>()});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(eventually([&] { return stored() <= kMax; })) << stored();
  EXPECT_TRUE(eventually([&] {
    return kymod.kymo({"kill", "loud", "--signal", "KILL", "--wait"}).exit_code == 0;
  }));
  // The output that attach shows must begin with a whole line, and must have all lines after it.
  const Outcome attached = kymod.kymo({"attach", "loud"});
  std::istringstream lines(attached.out);
  std::uint64_t before = 0;
  for (std::string word, number; lines >> word >> number; before = std::stoull(number)) {
    ASSERT_EQ(word, "line");
    ASSERT_TRUE(before == 0 || std::stoull(number) == before + 1) << before << ' ' << number;
  }
  EXPECT_GT(before, 1000U);
}

}  // namespace
}  // namespace kymo::test
