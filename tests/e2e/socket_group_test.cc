// What members of --socket-group can see: they may not enter the state directory, which belongs to root.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

class SocketGroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    kymod_.start();
    // The folder of the build may be closed to others.
    fs::copy_file(KYMO_PROGRAM, kymod_.path("kymo"));
    ASSERT_EQ(chmod(kymod_.path("kymo").c_str(), 0755), 0);
    ASSERT_EQ(chmod(kymod_.folder().path().c_str(), 0755), 0);
    // Copies are made here.
    fs::create_directory(kymod_.path("tmp"));
    ASSERT_EQ(chmod(kymod_.path("tmp").c_str(), 0777), 0);
    struct stat info {};
    ASSERT_EQ(stat(kymod_.socket().c_str(), &info), 0);
    group_ = std::to_string(info.st_gid);
  }

  [[nodiscard]] Outcome member(std::vector<std::string> words) const {
    words.insert(words.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--groups=" + group_,
                                 "env", "TMPDIR=" + kymod_.path("tmp"), kymod_.path("kymo"),
                                 "--socket", kymod_.socket()});
    return run(words);
  }

  Kymod kymod_{{"--socket-group", "daemon"}};
  std::string group_;
};

// Before, all of these failed with "Permission denied", or said that the folder does not exist.
TEST_F(SocketGroupTest, AMemberSeesWhyADumpTookSoLongWithoutItsImages) {
  ASSERT_TRUE(kymod_.churn(8, "churn").contains("pid"));
  const Outcome dumped = member({"dump", "process", "churn", "--leave-running"});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const std::string directory =
      kymod_.kymo_json({"checkpoints"})[0]["directory"].get<std::string>();
  wait_until_recorded(directory, {"dump"});
  const std::string id = kymod_.kymo_json({"checkpoints"})[0]["id"];
  for (const std::string& name : {std::string("churn"), id, directory}) {
    const Outcome explained = member({"explain", name});
    EXPECT_EQ(explained.exit_code, 0) << name << explained.err;
    EXPECT_NE(explained.out.find("memory: writing pages"), std::string::npos) << explained.out;
    EXPECT_NE(explained.err.find("only root may read it"), std::string::npos) << explained.err;
    EXPECT_EQ(explained.out, kymod_.kymo({"explain", name}).out) << "root sees the same";
  }
  // Before, a recording in the checkpoint could not be opened.
  const std::string recording = directory + "/recordings/dump.tsv";
  for (const char* verb : {"explain", "report"}) {
    const Outcome of_recording = member({verb, recording});
    EXPECT_EQ(of_recording.exit_code, 0) << verb << of_recording.err;
    EXPECT_NE(of_recording.out.find("memory: writing pages"), std::string::npos) << verb;
  }
  const Outcome reported = member({"report", "churn"});
  EXPECT_EQ(reported.exit_code, 0) << reported.err;
  EXPECT_NE(reported.out.find("image_written_bytes"), std::string::npos) << reported.out;
  const Outcome exported = member({"export", "churn", "--format", "csv", "-o", "-"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_NE(exported.out.find("image_written_bytes"), std::string::npos);
  for (const char* verb : {"stats", "inspect"}) {
    const Outcome shown = member({verb, id});
    EXPECT_EQ(shown.exit_code, 0) << verb << shown.err;
    EXPECT_NE(shown.out.find("memwrite"), std::string::npos) << verb << shown.out;
  }
  EXPECT_TRUE(fs::is_empty(kymod_.path("tmp"))) << "copies must be removed";
  // Who needs the images must be root.
  EXPECT_EQ(member({"verify", id}).exit_code, 1);
}

// Before, it said that the file cannot be opened.
TEST_F(SocketGroupTest, AMemberFollowsTheOutputOfAJob) {
  const auto job = kymod_.kymo_json({"run", "process", "--name", "talker", "--", "/bin/sh", "-c",
                                     "echo one; echo two; echo three >&2; exec sleep 0"});
  ASSERT_TRUE(job.contains("pid")) << job;
  const Outcome all = member({"attach", "talker"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_EQ(all.out, "one\ntwo\n");
  EXPECT_NE(all.err.find("three\n"), std::string::npos) << all.err;
  EXPECT_EQ(member({"attach", "talker", "--tail", "1"}).out, "two\n");
  EXPECT_EQ(member({"attach", "talker", "--tail", "0"}).out, "");
}

}  // namespace
}  // namespace kymo::test
