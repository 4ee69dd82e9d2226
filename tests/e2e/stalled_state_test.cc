// The disk of kymod's state stalls, while no request runs.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <filesystem>

#include "programs.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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

}  // namespace
}  // namespace kymo::test
