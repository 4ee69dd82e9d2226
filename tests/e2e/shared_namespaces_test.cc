// Containers and processes that share what they have with others: the others must not see that one is dumped or restored.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs.h"
#include "support/containers.h"
#include "support/real_criu.h"
#include "support/shell.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

Outcome run_podman(const Kymod& kymod, PodmanContainers& podman, const std::string& name,
                   const std::vector<std::string>& flags, const std::string& program) {
  std::vector<std::string> words{"run", "podman", "--name", name, "--"};
  words.insert(words.end(), flags.begin(), flags.end());
  const std::vector<std::string> usual = podman.arguments(name, {"/bin/sh", "-c", program});
  const bool has_network = flags.front() == "--network";  // the usual ones begin with another
  words.insert(words.end(), usual.begin() + (has_network ? 2 : 0), usual.end());
  return kymod.kymo(words);
}

class SharedMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    KYMO_NEEDS_PODMAN();
    kymod_.start();
  }
  // The file of the first container in the /dev/shm that the second has, too.
  [[nodiscard]] std::string file() const {
    return "/proc/" + kymod_.job("kymo-first")["pid"].dump() + "/root/dev/shm/state";
  }
  [[nodiscard]] bool has_archive(const std::string& dir) const {
    return fs::exists(dir + "/work/devshm-checkpoint.tar");
  }

  PodmanContainers podman_;
  Kymod kymod_{{"--podman-flags=" + PodmanContainers::flags()}};
};

TEST_F(SharedMemoryTest, OfAnotherContainerIsLeftAsItIs) {
  const Outcome first = run_podman(kymod_, podman_, "kymo-first", {"--ipc", "shareable"},
                                   "echo first >/dev/shm/state; " + counting_loop());
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Outcome second = run_podman(kymod_, podman_, "kymo-second",
                                    {"--ipc", "container:kymo-first"}, counting_loop());
  ASSERT_EQ(second.exit_code, 0) << second.err;
  ASSERT_TRUE(counts_on(podman_.root_of("kymo-first")));
  const std::string dir = kymod_.path("one");
  const Outcome dumped = kymod_.kymo({"dump", "podman", "kymo-second", "--dir", dir});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_FALSE(has_archive(dir));
  // As an earlier kymod left it.
  ASSERT_TRUE(shell("tar -C $(dirname " + file() + ") -cf " + dir +
                    "/work/devshm-checkpoint.tar . && echo second >" + file())
                  .second);
  const Outcome restored = kymod_.kymo({"restore", dir});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_NE((restored.out + restored.err).find("its /dev/shm is that of the host or of another"),
            std::string::npos)
      << restored.out << restored.err;
  EXPECT_EQ(read_file(file()), "second\n");
  EXPECT_TRUE(counts_on(podman_.root_of("kymo-second")));
}

// The host's /dev/shm has podman's own locks: one that was held at the dump was held for ever after the restore.
TEST_F(SharedMemoryTest, OfTheHostIsNotArchived) {
  const Outcome ran = run_podman(kymod_, podman_, "kymo-first", {"--ipc", "host"}, counting_loop());
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string dir = kymod_.path("one");
  const Outcome dumped = kymod_.kymo({"dump", "podman", "kymo-first", "--dir", dir});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const std::string id = podman_.podman("container inspect --format '{{.StaticDir}}' kymo-first");
  const std::string podmans = id.substr(0, id.find('\n')) + "/devshm-checkpoint.tar";
  // A restore would do harm to this machine.
  ASSERT_FALSE(has_archive(dir) || fs::exists(podmans)) << podmans;
  const Outcome restored = kymod_.kymo({"restore", dir});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(podman_.root_of("kymo-first")));
}

constexpr char kServe[] = "exec /bin/busybox nc -ll -p 8080 -e /bin/busybox echo served";

// What somebody in the network namespace of this process gets from the server there.
std::string answer_in_network_of(const nlohmann::json& pid) {
  return shell("nsenter -n -t " + pid.dump() + " busybox nc -w 3 127.0.0.1 8080 </dev/null").first;
}

void expect_served_while_dumped(const Kymod& kymod, const std::vector<std::string>& target) {
  const nlohmann::json server = kymod.job("kymo-first")["pid"];
  ASSERT_TRUE(eventually([&] { return answer_in_network_of(server) == "served\n"; }));
  const std::string dir = kymod.path("one");
  std::vector<std::string> words{"dump"};
  words.insert(words.end(), target.begin(), target.end());
  words.insert(words.end(), {"--dir", dir});
  const Outcome dumped = kymod.kymo(words);
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_EQ(answer_in_network_of(server), "served\n");
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_EQ(answer_in_network_of(server), "served\n");
}

TEST(SharedNetworkTest, AContainerServesOnWhileAnotherOneIsDumped) {
  KYMO_NEEDS_CRIU();
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  const Outcome first = run_podman(kymod, podman, "kymo-first", {"--network", "none"}, kServe);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Outcome second = run_podman(kymod, podman, "kymo-second",
                                    {"--network", "container:kymo-first"}, counting_loop());
  ASSERT_EQ(second.exit_code, 0) << second.err;
  ASSERT_NO_FATAL_FAILURE(expect_served_while_dumped(kymod, {"podman", "kymo-second"}));
  EXPECT_TRUE(counts_on(podman.root_of("kymo-second")));
}

TEST(SharedNetworkTest, AProcessServesOnWhileAnotherOneIsDumped) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const Outcome first =
      kymod.kymo({"run", "process", "--name", "kymo-first", "--", "/usr/bin/unshare", "-n",
                  "/bin/sh", "-c", std::string("ip link set lo up; ") + kServe});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string pid = kymod.job("kymo-first")["pid"].dump();
  ASSERT_TRUE(eventually(
      [&] { return answer_in_network_of(kymod.job("kymo-first")["pid"]) == "served\n"; }));
  const Outcome second =
      kymod.kymo({"run", "process", "--name", "kymo-second", "--", "/usr/bin/nsenter",
                  "--net=/proc/" + pid + "/ns/net", "/bin/sleep", "1000"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const std::string other = kymod.job("kymo-second")["pid"].dump();
  ASSERT_TRUE(eventually([&] { return read_file("/proc/" + other + "/comm") == "sleep\n"; }));
  expect_served_while_dumped(kymod, {"process", "kymo-second"});
}

}  // namespace
}  // namespace kymo::test
