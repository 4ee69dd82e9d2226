// What kymod sees inside a dump and a restore of a container, whoever started its CRIU.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/proc/cgroup.h"
#include "moving.h"
#include "programs.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

// A program with 512 MiB of memory: dd fills its buffer, and then waits for ever, because nobody reads
// its output after the first byte.
std::vector<std::string> large_command() {
  return {"/bin/busybox", "sh", "-c",
          "busybox dd if=/dev/zero bs=512M count=1 2>/dev/null | "
          "{ busybox dd bs=1 count=1 of=/ready 2>/dev/null; sleep 1000; }"};
}

// Dumps the container and restores it. Expects that both recordings show what happened inside.
void expect_columns_that_move(const Kymod& kymod, const std::string& kind, const std::string& name,
                              const std::string& root) {
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(root + "/ready"); })) << root;
  const std::string dir = kymod.path("one");
  const nlohmann::json dumped = kymod.kymo_json({"dump", kind, name, "--dir", dir});
  const std::string dump = dumped["recording"];
  const nlohmann::json seen = ended_metadata(dump);
  const std::vector<std::string> moving = columns_that_move(dump, moves_of(seen));
  EXPECT_GE(moving.size(), 15U) << ::testing::PrintToString(moving) << seen["about"]["inside"];
  EXPECT_GT(read_recording(dump).at("criu_cpu_ns").back(), 1'000'000U)
      << "the recording has no CPU time of CRIU, so kymod did not find CRIU";
  tell_moving("dump of " + kind, dump, seen);

  const nlohmann::json reply = kymod.kymo_json({"restore", dir});
  const std::string restore = reply["recording"];
  const nlohmann::json after = ended_metadata(restore);
  const std::vector<std::string> back = columns_that_move(restore, moves_of(after));
  EXPECT_GE(back.size(), 12U) << ::testing::PrintToString(back) << after["about"]["inside"];
  tell_moving("restore of " + kind, restore, after);
  const auto columns = read_recording(restore);
  // kymod reads four tasks at a time, so the last values of the other tasks can be slightly older.
  EXPECT_GE(columns.at("target_resident_bytes").back(), 16U << 20U)
      << "its memory must be resident again";
  EXPECT_GT(columns.at("cgroup_memory_bytes").back(), 0U);
  EXPECT_EQ(after["about"]["inside"]["missing"].dump().find("not found"), std::string::npos)
      << after["about"]["inside"];
}

constexpr char kNoCpuCgroup[] = "no CPU cgroup of version 1";

// "Other programs used the CPUs", of a restore that the limit of the container had held up: its new cgroup was not looked
// at.
void expect_its_quota_to_be_named(const Kymod& kymod, const std::string& kind,
                                  const std::string& name) {
  const std::string dir = kymod.path("one");
  static_cast<void>(kymod.kymo_json({"dump", kind, name, "--dir", dir}));
  const nlohmann::json reply = kymod.kymo_json({"restore", dir});
  const auto group = probe::cgroup_path(reply["pid"].get<pid_t>(), "cpu");
  ASSERT_TRUE(group) << reply;
  const std::string folder = "/sys/fs/cgroup/cpu" + *group;
  const std::string stat = read_file(folder + "/cpu.stat");
  const std::string key = "throttled_time ";
  const std::uint64_t held_up_ns = std::stoull(stat.substr(stat.find(key) + key.size()));
  const std::string restore = reply["recording"];
  const nlohmann::json about = ended_metadata(restore)["about"];
  const std::uint64_t seen_ns = read_recording(restore).at("quota_target_wait_ns").back();
  EXPECT_GT(seen_ns, held_up_ns / 2);
  EXPECT_LE(seen_ns, held_up_ns);
  EXPECT_NE(about["verdict"].dump().find(folder + " may use 0.2 CPUs"), std::string::npos)
      << about["verdict"].dump(1);
}

std::vector<std::string> idle_command() {
  return {"/bin/busybox", "sleep", "1000"};
}

TEST(ContainerViewTest, TheQuotaOfRunc) {
  KYMO_NEEDS_RUNC();
  if (!probe::cgroup_path(::getpid(), "cpu")) GTEST_SKIP() << kNoCpuCgroup;
  const RuncFolder runc;
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const std::string bundle = make_bundle(runc.folder(), "bundle", idle_command());
  nlohmann::json spec = nlohmann::json::parse(read_file(bundle + "/config.json"));
  spec["linux"]["resources"]["cpu"] = {{"quota", 20'000}, {"period", 100'000}};
  std::ofstream(bundle + "/config.json") << spec.dump();
  static_cast<void>(kymod.kymo_json({"run", "runc", "--bundle", bundle, "--id", "kymo-web"}));
  expect_its_quota_to_be_named(kymod, "runc", "kymo-web");
}

TEST(ContainerViewTest, TheQuotaOfPodman) {
  KYMO_NEEDS_PODMAN();
  if (!probe::cgroup_path(::getpid(), "cpu")) GTEST_SKIP() << kNoCpuCgroup;
  PodmanContainers podman;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  std::vector<std::string> run{"run", "podman", "--name", "kymo-e2e", "--", "--cpus", "0.2"};
  for (const std::string& word : podman.arguments("kymo-e2e", idle_command())) run.push_back(word);
  static_cast<void>(kymod.kymo_json(run));
  expect_its_quota_to_be_named(kymod, "podman", "kymo-e2e");
}

std::string root_of(const nlohmann::json& job) {
  return "/proc/" + std::to_string(job["pid"].get<int>()) + "/root";
}

TEST(ContainerViewTest, OfRunc) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const std::string bundle = make_bundle(runc.folder(), "bundle", large_command());
  static_cast<void>(
      kymod.kymo_json({"run", "runc", "--bundle", bundle, "--id", "kymo-web", "--name", "web"}));
  expect_columns_that_move(kymod, "runc", "kymo-web", bundle + "/rootfs");
}

TEST(ContainerViewTest, OfPodman) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  std::vector<std::string> run{"run", "podman", "--name", "kymo-e2e", "--"};
  for (const std::string& word : podman.arguments("kymo-e2e", large_command())) run.push_back(word);
  static_cast<void>(kymod.kymo_json(run));
  expect_columns_that_move(kymod, "podman", "kymo-e2e", podman.root_of("kymo-e2e"));
}

TEST(ContainerViewTest, OfContainerd) {
  KYMO_NEEDS_CONTAINERD();
  const Containerd containerd(std::filesystem::path(criu_path()).parent_path());
  Kymod kymod;
  kymod.start();
  std::vector<std::string> run{"run",      "containerd", "--name",
                               "kymo-web", "--",         Containerd::image()};
  for (const std::string& word : large_command()) run.push_back(word);
  static_cast<void>(kymod.kymo_json(run));
  expect_columns_that_move(kymod, "containerd", "kymo-web", root_of(kymod.job("kymo-web")));
}

}  // namespace
}  // namespace kymo::test
