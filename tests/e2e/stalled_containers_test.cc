// Dumps of a container to a disk that takes no pages. With a deadline, CRIU writes to memory, so the
// container goes on or its complete images are kept. Without a deadline, the container stands still,
// and kymod must say so.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "programs.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ContainerOnAStalledDisk : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here"; }

  // Dumps to the disk that takes no pages, and cancels the dump when it has begun to write them.
  // `words` name the container.
  Outcome dump_and_cancel(const std::vector<std::string>& words, std::vector<std::string> flags) {
    disk_.be("stalls-at-pages");
    flags.insert(flags.begin(), {"dump", words[0], words[1], "--dir", dir()});
    Outcome outcome;
    std::thread client([&] { outcome = kymod_->kymo(flags); });
    EXPECT_TRUE(eventually([&] { return disk_.holds_pages(); })) << kymod_->log();
    const auto pid = checkpoint()["pid"].get<pid_t>();
    static_cast<void>(kymod_->kymo({"cancel", std::to_string(pid)}));
    client.join();
    return outcome;
  }
  void expect_that_it_counts_during_the_stall(const std::vector<std::string>& words,
                                              const std::string& root);
  void expect_that_its_images_are_kept(const std::vector<std::string>& words,
                                       const std::string& root,
                                       const std::function<void()>& forget);
  [[nodiscard]] json checkpoint() const { return kymod_->kymo_json({"checkpoints"}).at(0); }
  [[nodiscard]] std::string dir() const { return disk_.path() + "/c"; }
  void start(std::vector<std::string> flags) {
    kymod_.emplace(std::move(flags));
    kymod_->start();
  }

  TemporaryDirectory folder_;
  MoodyDisk disk_{folder_};
  std::optional<Kymod> kymod_;
};

void ContainerOnAStalledDisk::expect_that_it_counts_during_the_stall(
    const std::vector<std::string>& words, const std::string& root) {
  const Outcome failed = dump_and_cancel(words, {"--leave-running", "--deadline", "1m"});
  EXPECT_EQ(failed.exit_code, 1) << failed.out;
  EXPECT_NE(failed.err.find("the container runs on"), std::string::npos) << failed.err;
  EXPECT_TRUE(counts_on(root)) << failed.err;
  EXPECT_EQ(checkpoint()["state"], "failed");
  disk_.be("well");
  EXPECT_TRUE(eventually([&] { return !fs::exists(dir() + "/images.partial"); })) << kymod_->log();
  EXPECT_TRUE(counts_on(root));
}

// kymod is killed while the images are only in memory.
void ContainerOnAStalledDisk::expect_that_its_images_are_kept(const std::vector<std::string>& words,
                                                              const std::string& root,
                                                              const std::function<void()>& forget) {
  const Outcome early = dump_and_cancel(words, {"--deadline", "1m"});
  EXPECT_EQ(early.exit_code, 1) << early.out;
  EXPECT_NE(early.err.find("its whole images are in memory, in "), std::string::npos) << early.err;
  EXPECT_EQ(checkpoint()["state"], "unconfirmed");
  kill(kymod_->pid(), SIGKILL);
  disk_.be("well");  // only now the kernel can end the thread that copies
  EXPECT_EQ(kymod_->stop(SIGKILL), -1);
  kymod_->start();
  EXPECT_TRUE(eventually([&] { return checkpoint()["state"] == "complete"; })) << kymod_->log();
  forget();
  const Outcome restored = kymod_->kymo({"restore", dir()});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(root));
}

TEST_F(ContainerOnAStalledDisk, OfRuncCountsDuringTheStall) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  start({"--runc-root", runc.path()});
  expect_that_it_counts_during_the_stall({"runc", "kymo-web"}, bundle + "/rootfs");
}

TEST_F(ContainerOnAStalledDisk, OfPodmanCountsDuringTheStall) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-e2e");
  start({"--podman-flags=" + PodmanContainers::flags()});
  expect_that_it_counts_during_the_stall({"podman", "kymo-e2e"}, root);
}

TEST_F(ContainerOnAStalledDisk, OfContainerdCountsDuringTheStall) {
  KYMO_NEEDS_CONTAINERD();
  const Containerd containerd(fs::path(criu_path()).parent_path());
  start({});
  std::vector<std::string> run{"run",      "containerd", "--name",
                               "kymo-web", "--",         Containerd::image()};
  for (const std::string& word : counting_command()) run.push_back(word);
  const auto pid = kymod_->kymo_json(run)["pid"].get<pid_t>();
  const std::string root = "/proc/" + std::to_string(pid) + "/root";
  ASSERT_TRUE(counts_on(root));
  expect_that_it_counts_during_the_stall({"containerd", "kymo-web"}, root);
}

TEST_F(ContainerOnAStalledDisk, OfDockerCountsDuringTheStall) {
  KYMO_NEEDS_DOCKER();
  const Docker docker(fs::path(criu_path()).parent_path());
  docker.start("kymo-web");
  const std::string root = docker.root_of("kymo-web");
  ASSERT_TRUE(counts_on(root));
  start({});
  expect_that_it_counts_during_the_stall({"docker", "kymo-web"}, root);
}

TEST_F(ContainerOnAStalledDisk, OfRuncIsDumpedToMemoryAndItsImagesFollow) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  start({"--runc-root", runc.path()});
  expect_that_its_images_are_kept({"runc", "kymo-web"}, bundle + "/rootfs",
                                  [&] { runc.runc("delete --force kymo-web"); });
}

TEST_F(ContainerOnAStalledDisk, OfPodmanIsDumpedToMemoryAndItsImagesFollow) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-e2e");
  start({"--podman-flags=" + PodmanContainers::flags()});
  expect_that_its_images_are_kept({"podman", "kymo-e2e"}, root, [] {});
}

// Without a deadline, CRIU writes directly to the disk.
TEST_F(ContainerOnAStalledDisk, OfRuncIsHeldAndKymodSaysSo) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  start({"--runc-root", runc.path()});
  const Outcome failed = dump_and_cancel({"runc", "kymo-web"}, {});
  EXPECT_EQ(failed.exit_code, 1) << failed.out;
  EXPECT_NE(failed.err.find(" is held by process "), std::string::npos) << failed.err;
  EXPECT_EQ(checkpoint()["state"], "unconfirmed");
  disk_.be("well");
  EXPECT_TRUE(eventually([&] {
    return checkpoint()["state"] == "failed" && !fs::exists(dir() + "/images.partial");
  })) << kymod_->log();
  EXPECT_TRUE(counts_on(bundle + "/rootfs")) << failed.err;
}

}  // namespace
}  // namespace kymo::test
