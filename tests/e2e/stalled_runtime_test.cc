// The disk of runc's own folder does not answer: what runc knows of its containers, not their images.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "programs.h"
#include "support/containers.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"
#include "support/shell.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ContainerRuntimeStalls : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    KYMO_NEEDS_RUNC();
    ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here";
    fs::create_directory(root());
    kymod_.emplace(std::vector<std::string>{"--runc-root", root()});
    kymod_->start();
    const std::string bundle = make_bundle(folder_, "kymo-web", counting_command());
    static_cast<void>(kymod_->kymo_json({"run", "runc", "--bundle", bundle, "--id", "kymo-web"}));
    ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  }
  void TearDown() override {
    disk_.be("well");
    runc("delete --force kymo-web");
    if (kymod_ && kymod_->running()) kymod_->stop(SIGTERM);
    if (sleeper_ > 0) kill(sleeper_, SIGKILL);
  }

  void runc(const std::string& words) const {
    static_cast<void>(
        shell("runc --root '" + root() + "' " + words + " </dev/null >/dev/null 2>&1"));
  }
  [[nodiscard]] std::string root() const { return disk_.path() + "/runc"; }
  [[nodiscard]] json job(const std::string& name) const { return kymod_->job(name); }

  TemporaryDirectory folder_;
  MoodyDisk disk_{folder_};
  std::optional<Kymod> kymod_;
  pid_t sleeper_ = 0;  // a job that outlives kymod
};

TEST_F(ContainerRuntimeStalls, TheListOfJobsIsAnsweredAndSaysWhatIsNotKnown) {
  const json sleeper =
      kymod_->kymo_json({"run", "process", "--name", "sleeper", "--", "sleep", "1000"});
  sleeper_ = sleeper["pid"].get<pid_t>();
  ASSERT_EQ(kymod_->kymo({"kill", "kymo-web", "--signal", "KILL", "--wait"}).exit_code, 0);
  ASSERT_TRUE(eventually([&] { return job("kymo-web")["state"] == "exited"; }));
  disk_.be("is-silent");
  const std::string why = "runc's folder " + root() + " does not answer";
  for (int i = 0; i < 3; ++i) {
    const Outcome listed = kymod_->kymo({"ps"});
    ASSERT_EQ(listed.exit_code, 0) << listed.err;
    EXPECT_NE(listed.out.find(why), std::string::npos) << listed.out;
  }
  EXPECT_EQ(job("sleeper")["state"], "running");
  EXPECT_EQ(job("sleeper")["pending"], "");
  EXPECT_EQ(kymod_->kymo({"status"}).exit_code, 0);
  EXPECT_EQ(kymod_->kymo({"checkpoints"}).exit_code, 0);
  EXPECT_EQ(ask(*kymod_, "/metrics").status, 200);
  disk_.be("well");
  EXPECT_TRUE(eventually([&] { return job("kymo-web")["pending"] == ""; })) << kymod_->log();
  disk_.be("is-silent");
  ASSERT_TRUE(eventually([&] { return job("kymo-web")["pending"] != ""; })) << kymod_->log();
  kill(kymod_->pid(), SIGTERM);
  EXPECT_TRUE(kymod_->logs("stopped, although a container runtime does not answer"))
      << kymod_->log();
  disk_.be("well");  // only now the kernel can end the thread that asked
  EXPECT_EQ(kymod_->stop(SIGTERM), 0);
}

}  // namespace
}  // namespace kymo::test
