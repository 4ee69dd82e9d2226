// What kymod says while a disk does not take the images of a dump whose process has ended: about the process, its job
// and its checkpoint, before and after kymod is killed.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "programs.h"
#include "support/breakable_criu.h"
#include "support/containers.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class TruthOnAStalledDisk : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    KYMO_NEEDS_RUNC();
    ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here";
    kymod_.emplace(std::vector<std::string>{"--criu", criu_.path(), "--runc-root", runc_.path()});
    kymod_->start();
    const std::string bundle = make_bundle(runc_.folder(), "kymo-web", counting_command());
    static_cast<void>(kymod_->kymo_json({"run", "runc", "--bundle", bundle, "--id", "kymo-web"}));
    ASSERT_TRUE(counts_on(bundle + "/rootfs"));
    root_ = bundle + "/rootfs";
  }
  void TearDown() override {
    disk_.go_on();
    disk_.be("well");
    if (client_.joinable()) client_.join();
    if (kymod_) kymod_->stop(SIGTERM);
  }

  // Dumps the container to memory. Calls `stall` before the disk takes the images.
  template <class Stall>
  void dump_onto_a_disk_that(Stall stalls) {
    criu_.break_at("Dumping finished", SIGSTOP);
    client_ = std::thread([this] {
      answer_ = kymod_->kymo({"dump", "runc", "kymo-web", "--dir", dir(), "--deadline", "10m"});
    });
    const pid_t criu = criu_.stopped();
    ASSERT_NE(criu, 0) << kymod_->log();
    criu_.mend();
    stalls();
    kill(criu, SIGCONT);
    ASSERT_TRUE(eventually([&] { return job()["state"] == "dumping"; })) << job().dump(1);
  }
  [[nodiscard]] json job() const { return kymod_->job("kymo-web"); }
  [[nodiscard]] json checkpoint() const { return kymod_->kymo_json({"checkpoints"}).at(0); }
  [[nodiscard]] std::string dir() const { return disk_.path() + "/c"; }
  [[nodiscard]] static bool is_in_memory(const json& of_job) {
    return of_job["pending"].get<std::string>().find("its whole images are only in memory") !=
           std::string::npos;
  }
  void expect_that_it_is_restored() {
    runc_.runc("delete --force kymo-web");
    const Outcome restored = kymod_->kymo({"restore", dir()});
    ASSERT_EQ(restored.exit_code, 0) << restored.err;
    EXPECT_TRUE(counts_on(root_));
    EXPECT_EQ(job()["pending"], "");
  }

  TemporaryDirectory folder_;
  MoodyDisk disk_{folder_};
  RuncFolder runc_;
  const BreakableCriu criu_;
  std::optional<Kymod> kymod_;
  std::string root_;
  std::thread client_;
  Outcome answer_;
};

TEST_F(TruthOnAStalledDisk, AJobWhoseImagesAreInMemoryIsNotSaidToRun) {
  dump_onto_a_disk_that([this] { disk_.be("stalls"); });
  EXPECT_TRUE(is_in_memory(job())) << job().dump(1);
  const std::string listed = kymod_->kymo({"ps"}).out;
  EXPECT_NE(listed.find(" dumping  -  "), std::string::npos) << listed;
  EXPECT_EQ(kymod_->kymo({"kill", "kymo-web"}).exit_code, 1);
  static_cast<void>(kymod_->kymo({"cancel", "kymo-web"}));
  client_.join();
  EXPECT_EQ(checkpoint()["state"], "unconfirmed") << answer_.err;
  EXPECT_EQ(job()["state"], "dumped");
  EXPECT_TRUE(is_in_memory(job())) << job().dump(1);
  const Outcome refused = kymod_->kymo({"delete", dir()});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_EQ(checkpoint()["state"], "unconfirmed") << refused.err;
  disk_.be("well");
  EXPECT_TRUE(eventually([&] { return checkpoint()["state"] == "complete"; })) << kymod_->log();
  EXPECT_EQ(job()["state"], "dumped");
  expect_that_it_is_restored();
}

// Here, the program that serves the disk is stopped.
TEST_F(TruthOnAStalledDisk, AfterAKillOfKymodTheCheckpointSaysWhatIsKnown) {
  dump_onto_a_disk_that([this] { disk_.stop(); });
  // The kernel ends a killed kymod only when the disk has answered the one call that it may have taken.
  kill(kymod_->pid(), SIGKILL);
  disk_.go_on();
  kymod_->stop(SIGKILL);
  disk_.stop();
  client_.join();
  kymod_->start();
  const json seen = checkpoint();
  EXPECT_EQ(seen["state"], "unconfirmed") << seen.dump(1);
  EXPECT_NE(seen["error"].get<std::string>().find("the disk has not taken its images yet"),
            std::string::npos)
      << seen.dump(1);
  EXPECT_EQ(job()["state"], "dumped") << job().dump(1);
  EXPECT_TRUE(is_in_memory(job())) << job().dump(1);
  const Outcome refused = kymod_->kymo({"delete", dir()});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  disk_.go_on();
  EXPECT_TRUE(eventually([&] { return checkpoint()["state"] == "complete"; })) << kymod_->log();
  expect_that_it_is_restored();
}

}  // namespace
}  // namespace kymo::test
