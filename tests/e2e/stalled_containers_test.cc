// A dump of a container onto a disk that takes no pages: whether it runs on or is held, kymod says so,
// and it counts on as soon as the disk answers.

#include <gtest/gtest.h>

#include <filesystem>

#include "programs.h"
#include "support/containers.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

// `words` name the container, whose root is the folder `root`.
void expect_the_truth(const Kymod& kymod, std::vector<std::string> words, const std::string& root) {
  const TemporaryDirectory folder;
  const MoodyDisk disk(folder);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const std::string dir = disk.path() + "/c";
  disk.be("stalls-at-pages");
  words.insert(words.begin(), "dump");
  words.insert(words.end(), {"--dir", dir, "--deadline", "4s"});
  const Outcome failed = kymod.kymo(words);
  EXPECT_EQ(failed.exit_code, 1) << failed.out;
  const bool held = failed.err.find(" is held by process ") != std::string::npos;
  const bool runs_on = failed.err.find("runs on") != std::string::npos && !held;
  EXPECT_TRUE(held || runs_on) << failed.err;
  EXPECT_TRUE(held || counts_on(root)) << failed.err;
  EXPECT_EQ(kymod.kymo_json({"checkpoints"}).at(0).at("state"), held ? "unconfirmed" : "failed");
  disk.be("well");
  EXPECT_TRUE(eventually([&] {
    return kymod.kymo_json({"checkpoints"}).at(0).at("state") == "failed" &&
           !fs::exists(dir + "/images.partial");
  })) << kymod.log();
  EXPECT_TRUE(counts_on(root)) << failed.err;
  words = {words.begin(), words.begin() + 3};
  static_cast<void>(kymod.kymo_json(words));
}

TEST(ContainerOnAStalledDisk, OfRunc) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  expect_the_truth(kymod, {"runc", "kymo-web"}, bundle + "/rootfs");
}

TEST(ContainerOnAStalledDisk, OfPodman) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-e2e");
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  expect_the_truth(kymod, {"podman", "kymo-e2e"}, root);
}

}  // namespace
}  // namespace kymo::test
