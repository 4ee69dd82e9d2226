// CRIU hangs, crashes, refuses or finds the disk full during a dump or restore. kymo must print one
// clear line, the process must run on (or its images must stay), no incomplete checkpoint may be listed,
// and the next request must work.

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "base/proc/process.h"
#include "programs.h"
#include "small_disk.h"
#include "support/breakable_criu.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Fault {
  const char* name;
  const char* does;  // a shell command; for a signal, the text of the log before which CRIU gets it
  int signal;
  const char* says;  // the line that kymo must print

  [[nodiscard]] bool hangs() const;
  [[nodiscard]] bool kills() const { return signal == SIGKILL || signal == SIGSEGV; }
};

constexpr char kExits[] = "echo 'criu: out of order' >&2; exit 3";
constexpr char kTooLate[] = "did not answer within 5 s and was killed";

bool Fault::hangs() const {
  return says == kTooLate;
}

constexpr Fault kDumpFaults[] = {
    {"EndsAtOnce", kExits, 0, "exited with status 3, saying: criu: out of order"},
    {"CrashesBeforeItFreezes", "pre-dump", SIGSEGV, "was ended by signal 11 (SIGSEGV)"},
    {"IsKilledBeforeItFreezes", "pre-dump", SIGKILL, "was ended by signal 9 (SIGKILL)"},
    {"IsKilledWhenAllIsWritten", "post-dump", SIGKILL, "was ended by signal 9 (SIGKILL)"},
    {"HangsAtOnce", "sleep 300", 0, kTooLate},
    {"HangsBeforeItFreezes", "pre-dump", SIGSTOP, kTooLate},
    {"HangsWhenItHasFrozen", "Dumping pages (type", SIGSTOP, kTooLate},
    {"HangsWhenAllIsWritten", "post-dump", SIGSTOP, kTooLate}};

constexpr Fault kRestoreFaults[] = {
    {"EndsAtOnce", kExits, 0, "exited with status 3, saying: criu: out of order"},
    {"IsKilledBeforeItForks", "pre-restore", SIGKILL, "was ended by signal 9 (SIGKILL)"},
    {"IsKilledWhenMemoryIsBack", "post-restore", SIGKILL, "was ended by signal 9 (SIGKILL)"},
    {"IsKilledBeforeItResumes", "pre-resume", SIGKILL, "was ended by signal 9 (SIGKILL)"},
    {"HangsAtOnce", "sleep 300", 0, kTooLate},
    {"HangsBeforeItForks", "pre-restore", SIGSTOP, kTooLate},
    {"HangsWhenMemoryIsBack", "post-restore", SIGSTOP, kTooLate},
    {"HangsBeforeItResumes", "pre-resume", SIGSTOP, kTooLate}};

class CriuFaultsTest : public ::testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_ = std::make_unique<Kymod>(std::vector<std::string>{"--criu", criu_.path()});
    kymod_->start();
    job_ = kymod_->churn(16, "work");
  }
  void TearDown() override {
    if (job_.is_object()) kill(pid(), SIGKILL);
  }

  [[nodiscard]] pid_t pid() const { return job_["pid"].get<pid_t>(); }
  [[nodiscard]] std::string dir() const { return kymod_->path("checkpoint"); }

  // Only a CRIU that hangs gets a short timeout, and only while it is broken: a busy machine needs more
  // time.
  void break_criu(const Fault& fault) {
    if (fault.hangs()) kymod_->restart({"--criu-timeout", "5"});
    if (fault.signal == 0) {
      criu_.let_do(fault.does);
    } else {
      criu_.break_at(fault.does, fault.signal);
    }
  }

  void mend_criu(const Fault& fault) {
    criu_.mend();
    if (fault.hangs()) kymod_->restart();
  }

  // Expects that kymo failed with one line that contains this.
  static void expect_failure(const Outcome& outcome, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  void expect_no_checkpoint() const {
    EXPECT_FALSE(fs::exists(dir() + "/images"));
    EXPECT_FALSE(fs::exists(dir() + "/images.partial"));
    EXPECT_EQ(kymod_->job("work")["state"], "running");
    EXPECT_EQ(kymod_->job("work").value("last_checkpoint", ""), "");
    EXPECT_TRUE(probe::stopped_threads(pid()).empty());
    EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
  }
  void expect_only_images() const {
    EXPECT_FALSE(probe::process_lives(pid(), 0)) << "a process of the restore is left";
    EXPECT_EQ(kymod_->job("work")["state"], "dumped");
    EXPECT_TRUE(fs::is_empty(kymod_->state() + "/restoring"));
  }

  const BreakableCriu criu_;
  std::unique_ptr<Kymod> kymod_;
  json job_;
};

class DumpFaultsTest : public CriuFaultsTest {};
class RestoreFaultsTest : public CriuFaultsTest {};

std::string name_of(const ::testing::TestParamInfo<Fault>& info) {
  return info.param.name;
}

// Lets gtest print the name of the fault.
void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.name;
}

TEST_P(DumpFaultsTest, TheProcessRunsOnAndNothingIsListed) {
  break_criu(GetParam());
  const Outcome failed = kymod_->kymo({"dump", "process", "work", "--dir", dir()});
  expect_failure(failed, GetParam().says);
  EXPECT_NE(failed.err.find("; the process runs on"), std::string::npos) << failed.err;
  expect_no_checkpoint();
  const json record = json::parse(read_file(dir() + "/checkpoint.json"));
  EXPECT_EQ(record["state"], "failed");
  if (GetParam().kills()) {
    EXPECT_EQ(record["failure"]["id"], "criu-died") << failed.err;
  }
  mend_criu(GetParam());
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir() + "-2"}));
}

TEST_P(RestoreFaultsTest, NothingIsLeftAndTheImagesCanBeRestored) {
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir()}));
  break_criu(GetParam());
  const Outcome failed = kymod_->kymo({"restore", "process", dir()});
  expect_failure(failed, GetParam().says);
  constexpr std::string_view kAfterwards =
      "; nothing of the process is left, and it can be restored again";
  EXPECT_EQ(failed.err.find(kAfterwards) != std::string::npos, !GetParam().hangs()) << failed.err;
  expect_only_images();
  mend_criu(GetParam());
  static_cast<void>(kymod_->kymo_json({"restore", "process", dir()}));
  EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
}

INSTANTIATE_TEST_SUITE_P(Criu, DumpFaultsTest, ::testing::ValuesIn(kDumpFaults), name_of);
INSTANTIATE_TEST_SUITE_P(Criu, RestoreFaultsTest, ::testing::ValuesIn(kRestoreFaults), name_of);

TEST_F(CriuFaultsTest, ADiskTooSmallForTheImages) {
  const SmallDisk disk(kymod_->path("checkpoint"), "size=8m");
  const std::string dir = kymod_->path("checkpoint/c");
  const Outcome failed = kymod_->kymo({"dump", "process", "work", "--force", "--dir", dir});
  expect_failure(failed, "No space left on device");
  EXPECT_NE(failed.err.find("; the process runs on"), std::string::npos) << failed.err;
  EXPECT_TRUE(std::regex_search(failed.err, std::regex("about [0-9.]+ MiB are needed in " + dir)))
      << failed.err;
  EXPECT_FALSE(fs::exists(dir + "/images"));
  EXPECT_FALSE(fs::exists(dir + "/images.partial"));
  expect_no_checkpoint();
}

TEST_F(CriuFaultsTest, AFullDiskUnderTheStateDirectory) {
  const SmallDisk disk(kymod_->state() + "/checkpoints", "size=16m");
  disk.fill();
  expect_failure(kymod_->kymo({"dump", "process", "work", "--force"}), "No space left on device");
  expect_no_checkpoint();
  disk.empty();
}

TEST_F(CriuFaultsTest, ADumpThatClearlyHasNoRoomIsRefusedBeforeTheProcessIsStopped) {
  const SmallDisk disk(kymod_->path("small"), "size=8m");
  const std::string dir = kymod_->path("small/c");
  for (int night = 0; night < 3; ++night) {
    const Outcome refused = kymod_->kymo({"dump", "process", "work", "--dir", dir});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_TRUE(std::regex_search(
        refused.err,
        std::regex("there is no room for its images: about [0-9.]+ MiB are needed in " + dir +
                   ", and its disk has [0-9.]+ MiB free")))
        << refused.err;
  }
  EXPECT_FALSE(fs::exists(dir));
  const Outcome foreseen = kymod_->kymo({"dump", "process", "work", "--dir", dir, "--dry-run"});
  EXPECT_EQ(foreseen.exit_code, 1);
  EXPECT_TRUE(std::regex_search(
      foreseen.out,
      std::regex("refuses: there is no room for the images \\(about [0-9.]+ MiB are needed in " +
                 dir +
                 ", and its disk has [0-9.]+ MiB free\\)\\. Free space, or .*failure disk-full")))
      << foreseen.out;
  EXPECT_EQ(kymod_->kymo({"check", "process", "work"}).exit_code, 0) << "the usual place has room";
  const auto metrics = [&] {
    return run({"curl", "-s", "http://" + kymod_->http() + "/metrics"}).out;
  };
  for (const char* line :
       {"kymo_dumps_total{result=\"error\"} 0\n", "kymo_dumps_total{result=\"refused\"} 3\n",
        "kymo_refusals_total{request=\"dump\",reason=\"disk-full\"} 3\n",
        "kymo_refused_in_a_row{request=\"dump\",target=\"job:work\"} 3\n",
        "kymo_criu_notifications_total{name=\"network-lock\"} 0\n",
        "kymo_stood_still_seconds_count 0\n"}) {
    EXPECT_NE(metrics().find(line), std::string::npos) << line << metrics();
  }
  const nlohmann::json history = kymod_->kymo_json({"history", "work"});
  ASSERT_EQ(history["runs"].size(), 3U) << history;
  EXPECT_EQ(history["runs"][0]["refused"], true);
  EXPECT_EQ(history["runs"][0]["failure"], "disk-full");
  EXPECT_NE(kymod_->kymo({"history", "work"}).out.find("3 refused"), std::string::npos);
  const Outcome told = kymod_->kymo({"explain", "work"});
  EXPECT_NE(told.out.find("The newest dump was refused at"), std::string::npos) << told.err;

  // Another kymod goes on counting, until a dump succeeds.
  kymod_->stop(SIGTERM);
  kymod_->start();
  EXPECT_NE(metrics().find("target=\"job:work\"} 3\n"), std::string::npos);
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--leave-running"}));
  EXPECT_EQ(metrics().find("kymo_refused_in_a_row"), std::string::npos);
  const auto last_success = [&] {
    const std::string text = metrics();
    const std::size_t at =
        text.find("kymo_last_success_timestamp_seconds{request=\"dump\",target=\"job:work\"} ");
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_NE(last_success(), "");
  kymod_->stop(SIGTERM);
  kymod_->start();
  EXPECT_NE(last_success(), "");
  EXPECT_EQ(kymod_->kymo_json({"history", "work", "--last", "1"})["runs"].size(), 1U);
  EXPECT_EQ(kymod_->kymo_json({"history", "work", "--last", "2"})["runs"].size(), 4U);
}

// The disk of the images stalls at a point of a dump. CRIU is stopped at this point until then.
class StalledDumpTest : public CriuFaultsTest {
 protected:
  void SetUp() override {
    CriuFaultsTest::SetUp();
    ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here";
  }
  // Begins a dump to the disk with these flags. Waits until CRIU is stopped where it writes this text to
  // its log. Returns the pid of CRIU.
  pid_t begin(const std::string& text, const std::vector<std::string>& flags) {
    criu_.break_at(text, SIGSTOP);
    std::vector<std::string> words{"dump", "process", "work", "--dir", dir()};
    words.insert(words.end(), flags.begin(), flags.end());
    client_ = std::thread([this, words] { answer_ = kymod_->kymo(words); });
    const pid_t criu = criu_.stopped();
    EXPECT_NE(criu, 0) << kymod_->log();
    return criu;
  }
  void expect_that_a_stream_ends_at_once(const std::string& mood) {
    const pid_t criu = begin("Dumping pages (type:", {"--stream"});
    disk_.be(mood);
    kill(criu, SIGCONT);
    EXPECT_TRUE(eventually([&] { return waits_for_disk(kymod_->pid()); })) << kymod_->log();
    cancel();
    EXPECT_EQ(answer_.exit_code, 1);
    EXPECT_NE(answer_.err.find("; the process runs on"), std::string::npos) << answer_.err;
    EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
    EXPECT_EQ(kymod_->job("work")["held"], "");
    EXPECT_EQ(state_of_checkpoint(), "failed");
    disk_.be("well");
    EXPECT_TRUE(eventually([&] { return !fs::exists(dir() + "/images.partial"); }))
        << kymod_->log();
  }
  // Cancels the dump, and waits for its answer.
  void cancel() {
    static_cast<void>(kymod_->kymo({"cancel", "work"}));
    client_.join();
  }
  [[nodiscard]] std::string dir() const { return disk_.path() + "/c"; }
  [[nodiscard]] std::string state_of_checkpoint() const {
    return kymod_->kymo_json({"checkpoints"}).at(0).at("state");
  }

  TemporaryDirectory disk_folder_;
  MoodyDisk disk_{disk_folder_};
  std::thread client_;
  Outcome answer_;
};

TEST_F(StalledDumpTest, WhenTheProcessHasEndedItsImagesAreKeptAndConfirmedLater) {
  begin("Dumping finished", {"--no-stream"});
  EXPECT_FALSE(probe::process_lives(pid(), 0))
      << "CRIU ends the process before it writes this line";
  disk_.stop();
  cancel();
  EXPECT_EQ(answer_.exit_code, 1);
  EXPECT_NE(answer_.err.find("it is not known yet whether they are whole"), std::string::npos)
      << answer_.err;
  EXPECT_EQ(state_of_checkpoint(), "unconfirmed");
  const Outcome early = kymod_->kymo({"restore", "process", dir()});
  EXPECT_EQ(early.exit_code, 1);
  disk_.go_on();
  EXPECT_TRUE(eventually([&] { return state_of_checkpoint() == "complete"; })) << kymod_->log();
  EXPECT_EQ(kymod_->job("work")["state"], "dumped");
  criu_.mend();
  static_cast<void>(kymod_->kymo_json({"restore", "process", dir()}));
  EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
}

TEST_F(StalledDumpTest, ADumpEndsAtItsDeadlineAndTheClientIsAnswered) {
  const pid_t criu = begin("Dumping pages (type:", {"--deadline", "12s"});
  disk_.stop();
  kill(criu, SIGCONT);
  client_.join();
  EXPECT_EQ(answer_.exit_code, 1);
  EXPECT_NE(answer_.err.find("runs on"), std::string::npos) << answer_.err;
  disk_.be("well");
  disk_.go_on();
  EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
  EXPECT_EQ(kymod_->job("work")["state"], "running");
  criu_.mend();
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work"}));
}

// The job counted as dumped, with the pid of the process that had ended, while it ran again.
TEST_F(StalledDumpTest, AJobThatIsRestoredFromAnOlderCheckpointMeanwhileCountsAsRunning) {
  // It writes nothing, so each of its checkpoints can be restored at any time.
  static_cast<void>(
      kymod_->kymo_json({"run", "process", "--name", "still", "--", "sleep", "1000"}));
  const std::string older = kymod_->path("older");
  static_cast<void>(
      kymod_->kymo_json({"dump", "process", "still", "--dir", older, "--leave-running"}));
  criu_.break_at("Dumping finished", SIGSTOP);
  client_ = std::thread([this] {
    answer_ = kymod_->kymo({"dump", "process", "still", "--dir", dir(), "--no-stream"});
  });
  const pid_t criu = criu_.stopped();
  EXPECT_NE(criu, 0) << kymod_->log();
  criu_.mend();
  disk_.be("stalls");
  if (criu != 0) kill(criu, SIGCONT);
  EXPECT_TRUE(eventually([&] { return kymod_->job("still")["state"] == "dumping"; }));
  const Outcome restored = kymod_->kymo({"restore", older});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  disk_.be("well");
  client_.join();
  EXPECT_EQ(answer_.exit_code, 0) << answer_.err;
  EXPECT_EQ(kymod_->job("still")["state"], "running") << kymod_->log();
  EXPECT_EQ(kymod_->kymo({"kill", "still", "--signal", "KILL"}).exit_code, 0);
}

// CRIU waits only for kymod, so it ends at once. The process must count while the disk still stalls.
TEST_F(StalledDumpTest, AStreamedDumpIsEndedAndTheProcessRunsOnWhileTheDiskStalls) {
  expect_that_a_stream_ends_at_once("stalls");
}

TEST_F(StalledDumpTest, ADiskThatTakesNoPagesHoldsNoStreamedDump) {
  expect_that_a_stream_ends_at_once("stalls-at-pages");
}

TEST_F(StalledDumpTest, AProcessThatACriuWhichCannotEndHoldsIsSaidToBeHeld) {
  const pid_t criu = begin("Dumping pages (type:", {"--no-stream"});
  disk_.be("stalls");
  kill(criu, SIGCONT);
  EXPECT_TRUE(eventually([&] { return waits_for_disk(criu); })) << kymod_->log();
  cancel();
  EXPECT_EQ(answer_.exit_code, 1);
  EXPECT_EQ(answer_.err.find("runs on;"), std::string::npos) << answer_.err;
  EXPECT_NE(answer_.err.find("is held by process " + std::to_string(criu)), std::string::npos)
      << answer_.err;
  const json job = kymod_->job("work");
  EXPECT_NE(job["held"].get<std::string>().find(std::to_string(criu)), std::string::npos) << job;
  EXPECT_EQ(state_of_checkpoint(), "unconfirmed");
  EXPECT_TRUE(eventually(
      [&] { return kymod_->kymo({"metrics"}).out.find("processes_held") != std::string::npos; }));
  // Without its checkpoint, nobody would give back what CRIU has taken from the process.
  const Outcome kept = kymod_->kymo({"delete", dir()});
  EXPECT_EQ(kept.exit_code, 1) << kept.out;
  EXPECT_NE(kept.err.find("is held by process"), std::string::npos) << kept.err;
  disk_.be("well");
  EXPECT_TRUE(eventually([&] { return state_of_checkpoint() == "failed"; })) << kymod_->log();
  EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
  EXPECT_EQ(kymod_->job("work")["held"], "");
  EXPECT_FALSE(fs::exists(dir() + "/images.partial"));
}

TEST_F(StalledDumpTest, ADumpOntoADiskThatIsSilentAlreadyIsGivenUpAtItsDeadline) {
  disk_.be("is-silent");
  const Outcome failed =
      kymod_->kymo({"dump", "process", "work", "--dir", dir(), "--deadline", "1s"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_NE(failed.err.find("a disk does not answer"), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find("; the process runs on"), std::string::npos) << failed.err;
  EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
  EXPECT_EQ(kymod_->kymo_json({"checkpoints"}).size(), 0);
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--leave-running"}));
  disk_.be("well");
  EXPECT_TRUE(eventually([&] {
    return kymod_->kymo({"dump", "process", "work", "--dir", dir()}).exit_code == 0;
  })) << kymod_->log();
}

// The same test for a restore.
TEST_F(StalledDumpTest, ARestoreFromADiskThatIsSilentAlreadyIsGivenUpAtItsDeadline) {
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir()}));
  disk_.be("is-silent");
  const Outcome failed = kymod_->kymo({"restore", dir(), "--deadline", "1s"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_NE(failed.err.find("a disk does not answer"), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find("; nothing was restored"), std::string::npos) << failed.err;
  EXPECT_EQ(kymod_->job("work")["state"], "dumped");
  disk_.be("well");
  EXPECT_TRUE(eventually([&] {
    EXPECT_FALSE(probe::process_lives(pid(), 0))
        << "a restore that kymod had given up was made all the same";
    return kymod_->kymo({"restore", dir()}).exit_code == 0;
  })) << kymod_->log();
  EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
}

// A kymod whose state is on a disk that works at first, and the job "work".
class StateOnAStalledDisk : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here";
    fs::create_directory(kymod_.state());
    ASSERT_EQ(mount(disk_.path().c_str(), kymod_.state().c_str(), "", MS_BIND, nullptr), 0);
    kymod_.start();
    // The job writes nothing, because a process that waits for the disk cannot end before the disk
    // answers.
    job_ = kymod_.kymo_json({"run", "process", "--name", "work", "--", "sleep", "1000"});
  }
  void TearDown() override {
    disk_.be("well");  // only now the kernel can end a thread that waits for the disk
    kymod_.stop(SIGTERM);
    if (job_.is_object()) kill(job_["pid"].get<pid_t>(), SIGKILL);
    umount2(kymod_.state().c_str(), MNT_DETACH);
  }

  TemporaryDirectory folder_;
  const MoodyDisk disk_{folder_};
  Kymod kymod_;
  json job_;
};

TEST_F(StateOnAStalledDisk, ListsAreAnsweredAndAJobsEndIsSeen) {
  disk_.be("stalls");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"ps"}, {"checkpoints"}, {"inspect", "work"}, {"progress"}, {"metrics"}}) {
    const Outcome outcome = kymod_.kymo(words);
    EXPECT_EQ(outcome.exit_code, 0) << words[0] << ": " << outcome.err;
  }
  kill(job_["pid"].get<pid_t>(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return kymod_.job("work")["state"] == "exited"; })) << kymod_.log();
  disk_.be("well");
  EXPECT_EQ(kymod_.stop(SIGTERM), 0) << kymod_.log();
  kymod_.start();
  EXPECT_EQ(kymod_.job("work")["exit_signal"], SIGKILL)
      << "the end of the job must be stored when the disk answers again";
}

TEST_F(StateOnAStalledDisk, WhatCannotBeStoredIsRefusedAndKymodStops) {
  disk_.be("stalls");
  const std::string marker = folder_.path() + "/started";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"dump", "process", "work", "--dir", kymod_.path("c"), "--deadline", "5s"},
           {"run", "process", "--name", "late", "--", "touch", marker}}) {
    const Outcome refused = kymod_.kymo(words);
    EXPECT_EQ(refused.exit_code, 1) << words[0];
    EXPECT_NE(refused.err.find("does not answer"), std::string::npos) << refused.err;
  }
  // Before a fix, files were left there, and a retry was refused because of them.
  EXPECT_TRUE(fs::is_empty(kymod_.path("c")));
  disk_.be("well");
  EXPECT_TRUE(eventually([&] {
    return kymod_.kymo({"run", "process", "--", "true"}).exit_code == 0;
  })) << kymod_.log();
  EXPECT_FALSE(fs::exists(marker));
  EXPECT_EQ(kymod_.kymo({"inspect", "late"}).exit_code, 1);
  disk_.be("stalls");
  kill(kymod_.pid(), SIGTERM);
  EXPECT_TRUE(kymod_.logs("stopped")) << kymod_.log();
}

// "Nothing was deleted" was said, and the job was deleted when the disk answered.
TEST_F(StateOnAStalledDisk, ADeletionThatIsRefusedIsNotCarriedOutLater) {
  static_cast<void>(kymod_.kymo_json({"run", "process", "--name", "ended", "--", "true"}));
  ASSERT_TRUE(eventually([&] { return kymod_.job("ended")["state"] == "exited"; }));
  disk_.be("stalls");
  const Outcome refused = kymod_.kymo({"delete", "ended"});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("it stays in the list"), std::string::npos) << refused.err;
  disk_.be("well");
  EXPECT_TRUE(eventually([&] {
    return kymod_.kymo({"run", "process", "--", "true"}).exit_code == 0;
  })) << kymod_.log();
  EXPECT_EQ(kymod_.kymo({"inspect", "ended"}).exit_code, 0);
}

TEST_F(CriuFaultsTest, ARestoreThatCouldNotBeStoredIsKnownToTheNextKymod) {
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir()}));
  sqlite3* other = nullptr;  // locks the database
  ASSERT_EQ(sqlite3_open((kymod_->state() + "/kymo.db").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const Outcome restored = kymod_->kymo({"restore", "process", dir()});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_NE(restored.err.find("kept only in memory"), std::string::npos) << restored.err;
  EXPECT_EQ(kymod_->job("work")["state"], "running");
  kymod_->stop(SIGKILL);
  sqlite3_close(other);
  kymod_->start();
  EXPECT_EQ(kymod_->job("work")["state"], "running") << kymod_->log();
  EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
}

TEST_F(CriuFaultsTest, ARestoreEndsAtItsDeadlineAndTheImagesCanBeRestored) {
  for (const char* compression : {"none", "zstd"}) {
    const std::string checkpoint = dir() + "-" + compression;
    static_cast<void>(kymod_->kymo_json(
        {"dump", "process", "work", "--dir", checkpoint, "--compression", compression}));
    criu_.break_at("post-restore", SIGSTOP);
    const Outcome failed = kymod_->kymo({"restore", checkpoint, "--deadline", "1s"});
    expect_failure(failed, "it did not end within its deadline of 1 s");
    expect_only_images();
    criu_.mend();
    static_cast<void>(kymod_->kymo_json({"restore", checkpoint, "--deadline", "1h"}));
    EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
  }
}

// CRIU works without its log. kymo must say what could not be stored, and the process must be restored.
TEST_F(CriuFaultsTest, ARestoreFromAFullDisk) {
  const SmallDisk disk(dir(), "size=64m");
  const std::string checkpoint = dir() + "/c";
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", checkpoint}));
  disk.fill();
  const Outcome restored = kymod_->kymo({"restore", "process", checkpoint});
  if (restored.exit_code != 0) {
    expect_failure(restored, checkpoint);
    expect_only_images();
    disk.empty();
    static_cast<void>(kymod_->kymo_json({"restore", "process", checkpoint}));
  }
  EXPECT_TRUE(kymod_->goes_on(job_)) << restored.err;
}

}  // namespace
}  // namespace kymo::test
