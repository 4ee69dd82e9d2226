// Containers of runc and podman through the daemon, by the programs as a user has them.

#include "support/containers.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "programs.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

TEST(ContainersTest, ARuncContainerIsDumpedRestoredAndCountsOn) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();

  const nlohmann::json dump =
      kymod.kymo_json({"dump", "runc", "kymo-web", "--dir", kymod.path("one")});
  EXPECT_EQ(dump["runtime"], "runc");
  EXPECT_EQ(dump["container"], "kymo-web");
  EXPECT_GT(dump["stats"]["pages_written"].get<int>(), 0);
  EXPECT_GT(dump["stats"]["frozen_time_us"].get<int>(), 0);
  EXPECT_GT(dump["image_bytes"].get<int>(), 4096);
  EXPECT_EQ(dump["warnings"], nlohmann::json::array());
  const auto duration = dump["duration_ns"].get<std::uint64_t>();
  EXPECT_LT(dump["command_time_ns"].get<std::uint64_t>(), duration);
  EXPECT_LT(dump["criu_time_ns"].get<std::uint64_t>(),
            dump["command_time_ns"].get<std::uint64_t>());
  EXPECT_GT(dump["criu_time_ns"].get<std::uint64_t>(), 0U);
  EXPECT_EQ(runc.status("kymo-web"), "") << "runc forgets what it has dumped and ended";

  const std::string dir = kymod.path("one");
  EXPECT_TRUE(fs::exists(dir + "/images/inventory.img"));
  EXPECT_TRUE(fs::exists(dir + "/work/stats-dump"));
  const nlohmann::json record = nlohmann::json::parse(read_file(dir + "/checkpoint.json"));
  EXPECT_EQ(record["container"]["runtime"], "runc");
  EXPECT_EQ(record["container"]["bundle"], bundle);
  EXPECT_EQ(record["stats"], dump["stats"]);

  const std::string count = read_file(bundle + "/rootfs/count");
  const nlohmann::json restored = kymod.kymo_json({"restore", "runc", dir});
  EXPECT_EQ(restored["container"], "kymo-web");
  EXPECT_EQ(runc.status("kymo-web"), "running");
  EXPECT_GT(restored["stats"]["pages_restored"].get<int>(), 0);
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
  EXPECT_GE(std::stoi(read_file(bundle + "/rootfs/count")), std::stoi(count));
}

TEST(ContainersTest, ADumpOfARuncContainerHasItsRecordingAndItsTree) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  runc.start("kymo-web");
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  for (const std::vector<std::string>& asked :
       {std::vector<std::string>{"--stream"}, std::vector<std::string>{"--deadline", "30s"}}) {
    std::vector<std::string> command{"dump", "runc", "kymo-web"};
    command.insert(command.end(), asked.begin(), asked.end());
    const Outcome refused = kymod.kymo(command);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find(asked[0] + " is for plain processes"), std::string::npos)
        << refused.err;
  }
  const nlohmann::json dump =
      kymod.kymo_json({"dump", "runc", "kymo-web", "--leave-running", "--dir", kymod.path("one")});
  EXPECT_EQ(runc.status("kymo-web"), "running");

  const nlohmann::json metadata = ended_metadata(dump["recording"]);
  EXPECT_EQ(metadata["about"]["container"]["id"], "kymo-web");
  std::vector<std::string> marks;
  for (const auto& mark : metadata["marks"]) marks.push_back(mark["name"]);
  EXPECT_EQ(marks, (std::vector<std::string>{"pre-dump", "post-dump", "request ended"}));
  auto columns = read_recording(dump["recording"]);
  const auto& bytes = columns["image_written_bytes"];
  EXPECT_EQ(bytes.back() - bytes.front(), dump["image_bytes"].get<std::uint64_t>());

  const nlohmann::json record =
      nlohmann::json::parse(read_file(kymod.path("one") + "/checkpoint.json"));
  const std::string tree = record["timing"].dump();
  for (const char* scope : {"\"runc\"", "criu's log: freeze", "criu's log: memory, writing"}) {
    EXPECT_NE(tree.find(scope), std::string::npos) << scope << ": " << record["timing"].dump(1);
  }
  const Outcome stats = kymod.kymo({"stats", kymod.path("one")});
  EXPECT_EQ(stats.exit_code, 0) << stats.err;
  EXPECT_NE(stats.out.find("pages_written"), std::string::npos) << stats.out;
}

TEST(ContainersTest, APodmanContainerIsDumpedRestoredAndCountsOn) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-e2e");
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();

  const std::string dir = kymod.path("one");
  const Outcome streamed = kymod.kymo({"dump", "podman", "kymo-e2e", "--stream"});
  EXPECT_EQ(streamed.exit_code, 1);
  EXPECT_NE(streamed.err.find("--stream is for plain processes"), std::string::npos)
      << streamed.err;
  const nlohmann::json dump = kymod.kymo_json({"dump", "podman", "kymo-e2e", "--dir", dir});
  EXPECT_EQ(dump["runtime"], "podman");
  EXPECT_EQ(dump["container"].get<std::string>().size(), 64U);
  EXPECT_GT(dump["stats"]["pages_written"].get<int>(), 0);
  EXPECT_GT(dump["image_bytes"].get<int>(), 4096);
  EXPECT_EQ(dump["warnings"], nlohmann::json::array());
  EXPECT_LT(dump["command_time_ns"].get<std::uint64_t>(), dump["duration_ns"].get<std::uint64_t>());
  EXPECT_LT(dump["runtime_time_ns"].get<std::uint64_t>(),
            dump["command_time_ns"].get<std::uint64_t>());
  EXPECT_LT(dump["criu_time_ns"].get<std::uint64_t>(),
            dump["runtime_time_ns"].get<std::uint64_t>());
  EXPECT_EQ(podman.status("kymo-e2e"), "exited");
  for (const char* file : {"/images/inventory.img", "/work/stats-dump", "/work/dump.log"}) {
    EXPECT_TRUE(fs::exists(dir + file)) << file;
  }
  const nlohmann::json metadata = ended_metadata(dump["recording"]);
  EXPECT_EQ(metadata["about"]["container"]["name"], "kymo-e2e");
  EXPECT_EQ(metadata["marks"][0]["name"], "pre-dump");

  const nlohmann::json restored = kymod.kymo_json({"restore", dir});
  EXPECT_EQ(restored["container"], dump["container"]);
  EXPECT_GT(restored["stats"]["pages_restored"].get<int>(), 0);
  EXPECT_EQ(podman.status("kymo-e2e"), "running");
  EXPECT_TRUE(counts_on(root));
}

// What podman leaves out when it is 0 may be missing in one run and not in another.
TEST(ContainersTest, PrintStatsSaysWhatPodmansOwnSaysOfTheSameContainer) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  podman.start("kymo-e2e");
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  const Outcome printed = kymod.kymo({"dump", "podman", "kymo-e2e", "--leave-running",
                                      "--print-stats", "--dir", kymod.path("one")});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const auto ours = nlohmann::json::parse(printed.out);
  // Of the same dump: what podman printed to kymod.
  const auto same =
      nlohmann::json::parse(read_file(kymod.path("one") + "/work/podman-checkpoint.json"));
  // Of a dump of its own.
  const auto theirs = nlohmann::json::parse(
      podman.podman("container checkpoint --leave-running --print-stats kymo-e2e"));

  const auto names = [](const nlohmann::json& object) {
    std::vector<std::string> all;
    for (const auto& [name, value] : object.items()) all.push_back(name);
    return all;
  };
  EXPECT_EQ(names(ours), names(theirs));
  const auto& container = ours["container_statistics"][0];
  const auto& its = theirs["container_statistics"][0];
  EXPECT_EQ(names(container), names(its));
  EXPECT_EQ(names(container["criu_statistics"]), names(its["criu_statistics"]));
  EXPECT_EQ(container["Id"], its["Id"]);
  EXPECT_EQ(container["RawInput"], its["RawInput"]);

  const auto& told = same["container_statistics"][0];
  EXPECT_EQ(container["criu_statistics"], told["criu_statistics"]);
  EXPECT_EQ(container["runtime_checkpoint_duration"], told["runtime_checkpoint_duration"]);
  EXPECT_GE(ours["podman_checkpoint_duration"].get<std::uint64_t>(),
            same["podman_checkpoint_duration"].get<std::uint64_t>());
  // CRIU's freezing time on cgroup v1 is its freezer's poll: the same in both dumps.
  EXPECT_GT(its["criu_statistics"]["frozen_time"].get<std::uint64_t>(), 0U);
  EXPECT_LT(its["criu_statistics"]["pages_written"].get<std::uint64_t>(),
            container["criu_statistics"]["pages_written"].get<std::uint64_t>() * 2);
  EXPECT_GT(its["criu_statistics"]["pages_written"].get<std::uint64_t>() * 2,
            container["criu_statistics"]["pages_written"].get<std::uint64_t>());
}

}  // namespace
}  // namespace kymo::test
