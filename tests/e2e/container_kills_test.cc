// kymod is killed at many points of a container's dump or restore. The container must be neither lost nor left
// frozen, no incomplete checkpoint may be listed, no process may be left, and the next kymod must know what happened.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/memory_images.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "checkpoint/runtimes/shared/session.h"
#include "programs.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/real_criu.h"
#include "support/stop_points.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A container that is dumped, and how the tests look at it.
struct Counted {
  std::string kind;
  std::string name;
  std::string root;
  std::function<std::string()> status;
  // Makes the runtime forget a container that was dumped, so that it can be restored.
  std::function<void()> forget;
};

// The point at which CRIU is stopped when kymod is killed: the text that it is about to write to its log. nullptr:
// CRIU has not started.
constexpr const char* kDumpPoints[] = {nullptr,
                                       "Version: ",
                                       "freezing cgroup",
                                       "Seized task",
                                       "Dumping pages (type",
                                       "post-dump",
                                       "Dumping finished successfully"};
constexpr const char* kRestorePoints[] = {nullptr,
                                          "Version: ",
                                          "Running pre-restore scripts",
                                          "Running post-restore scripts",
                                          "Running pre-resume scripts",
                                          "Running post-resume scripts"};

class ContainerKillsTest : public ::testing::Test {
 protected:
  void kill_dumps_at_every_point(Kymod& kymod, const Counted& container);
  void kill_restores_at_every_point(Kymod& kymod, const Counted& container);
  pid_t kill_at(Kymod& kymod, const char* point, const std::vector<std::string>& command);
  void expect_nothing_lost_and_nothing_left(const Kymod& kymod, const Counted& container);

  const BreakableCriu criu_;
  std::string dir_;  // the directory of the last dump
};

// Makes the request, and kills kymod when CRIU is stopped at the point. Returns the pid of CRIU, which is still
// stopped.
pid_t ContainerKillsTest::kill_at(Kymod& kymod, const char* point,
                                  const std::vector<std::string>& command) {
  point == nullptr ? criu_.stop_at_once("runc") : criu_.break_at(point, SIGSTOP);
  std::thread client([&] { static_cast<void>(kymod.kymo(command)); });
  const pid_t criu = criu_.stopped();
  EXPECT_NE(criu, 0) << kymod.log();
  criu_.mend();
  EXPECT_EQ(kymod.stop(SIGKILL), -1);
  client.join();
  return criu;
}

void ContainerKillsTest::expect_nothing_lost_and_nothing_left(const Kymod& kymod,
                                                              const Counted& container) {
  EXPECT_TRUE(runtime::sessions_with("KYMO_DUMP=" + dir_ + "/images.partial").empty());
  const json checkpoints = kymod.kymo_json({"checkpoints"});
  ASSERT_FALSE(checkpoints.empty()) << kymod.log();
  const json& listed = checkpoints.back();
  ASSERT_EQ(listed["directory"], dir_) << kymod.log();
  const std::string id = listed["id"];
  EXPECT_EQ(runtime::find_memory_images(id), "");
  for (const std::string& base : runtime::scratch_bases()) {
    EXPECT_TRUE(runtime::sessions_with("KYMO_DUMP=" + base + "/images-" + id + "/images").empty());
  }
  const json record = json::parse(read_file(dir_ + "/checkpoint.json"));
  EXPECT_EQ(record["state"], listed["state"]);
  EXPECT_EQ(record["container"]["runtime"], container.kind) << record.dump(1);
  EXPECT_FALSE(fs::exists(dir_ + "/images.partial"));
  EXPECT_EQ(fs::exists(dir_ + "/images/inventory.img"), listed["state"] == "complete") << listed;
  const std::string text = container.kind + " container " + container.name;
  EXPECT_TRUE(kymod.logs("dump of " + text)) << kymod.log();
  if (container.status() == "running") {
    EXPECT_TRUE(counts_on(container.root));
    if (listed["state"] == "failed") {
      EXPECT_NE(listed["error"].get<std::string>().find(text + " runs on"), std::string::npos)
          << listed;
    }
  } else {
    EXPECT_EQ(listed["state"], "complete") << container.status() << kymod.log();
    container.forget();
    const Outcome restored = kymod.kymo({"restore", dir_});
    ASSERT_EQ(restored.exit_code, 0) << restored.err;
    EXPECT_TRUE(counts_on(container.root));
  }
}

// The next kymod is started alternately while CRIU still runs, and after CRIU has ended. KYMO_TEST_LONG=1: both at
// each point.
void ContainerKillsTest::kill_dumps_at_every_point(Kymod& kymod, const Counted& container) {
  const bool both = std::getenv("KYMO_TEST_LONG") != nullptr;
  int dumps = 0;
  for (const bool at_once : {true, false}) {
    bool turn = at_once;
    for (const char* const point : kDumpPoints) {
      turn = !turn;
      if (!both && turn) continue;
      SCOPED_TRACE(std::string("killed at ") + name_of_step(point) +
                   (at_once ? ", started anew at once" : ", started anew when CRIU has ended"));
      dir_ = kymod.path("checkpoint-" + std::to_string(++dumps));
      std::vector<std::string> command{"dump", container.kind, container.name, "--dir", dir_};
      if (!at_once) command.emplace_back("--leave-running");
      if (dumps % 2 == 0)
        command.insert(command.end(), {"--deadline", "10m"});  // CRIU writes to memory first
      const pid_t criu = kill_at(kymod, point, command);
      if (criu == 0) return;
      kill(criu, SIGCONT);
      if (!at_once) {
        EXPECT_TRUE(eventually([&] { return !probe::process_lives(criu, 0); }));
      }
      kymod.start();
      expect_nothing_lost_and_nothing_left(kymod, container);
      if (HasFatalFailure() || HasFailure()) return;
    }
  }
}

// The runtime that a killed kymod leaves either finishes by itself or fails. Either way, the container must run in
// the end, or be restorable, and its job must follow it.
void ContainerKillsTest::kill_restores_at_every_point(Kymod& kymod, const Counted& container) {
  ASSERT_EQ(kymod.kymo({"adopt", container.kind, container.name, "--name", "job"}).exit_code, 0);
  for (const char* const point : kRestorePoints) {
    SCOPED_TRACE(std::string("killed at ") + name_of_step(point));
    const json dump = kymod.kymo_json({"dump", "process", "job"});
    const std::string dir = dump["directory"];
    const pid_t criu = kill_at(kymod, point, {"restore", dir});
    ASSERT_NE(criu, 0);
    kill(criu, SIGCONT);
    kymod.start();
    Outcome restored;
    ASSERT_TRUE(eventually([&] {
      if (container.status() == "running") return true;
      restored = kymod.kymo({"restore", dir});
      return restored.exit_code == 0;
    })) << container.status()
        << ' ' << restored.err << kymod.log();
    ASSERT_TRUE(counts_on(container.root)) << restored.err;
    ASSERT_TRUE(eventually([&] { return kymod.job("job")["state"] == "running"; })) << kymod.log();
    EXPECT_EQ(kymod.kymo_json({"ps"}).size(), 1U) << "the container must not have two jobs";
    EXPECT_EQ(kymod.kymo_json({"checkpoints"}).back()["state"], "complete");
    EXPECT_TRUE(fs::exists(dir + "/images/inventory.img"));
  }
}

TEST_F(ContainerKillsTest, ARestoreOfRuncIsNeitherLostNorLeftHalfDone) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  Kymod kymod({"--runc-root", runc.path(), "--criu", criu_.path()});
  kymod.start();
  kill_restores_at_every_point(
      kymod, {"runc", "kymo-web", bundle + "/rootfs", [&] { return runc.status("kymo-web"); }, {}});
}

TEST_F(ContainerKillsTest, ARestoreOfPodmanIsNeitherLostNorLeftHalfDone) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-e2e");
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags(), "--criu", criu_.path()});
  kymod.start();
  kill_restores_at_every_point(
      kymod, {"podman", "kymo-e2e", root, [&] { return podman.status("kymo-e2e"); }, {}});
}

TEST_F(ContainerKillsTest, ARestoreOfDockerIsNeitherLostNorLeftHalfDone) {
  KYMO_NEEDS_DOCKER();
  const Docker docker(criu_.folder());
  docker.start("kymo-web");
  Kymod kymod;
  kymod.start();
  kill_restores_at_every_point(kymod, {"docker",
                                       "kymo-web",
                                       docker.root_of("kymo-web"),
                                       [&] { return docker.status("kymo-web"); },
                                       {}});
}

TEST_F(ContainerKillsTest, OfRuncNothingIsLostAndNothingIsLeft) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  Kymod kymod({"--runc-root", runc.path(), "--criu", criu_.path()});
  kymod.start();
  kill_dumps_at_every_point(
      kymod, {"runc", "kymo-web", bundle + "/rootfs", [&] { return runc.status("kymo-web"); },
              [&] { runc.runc("delete --force kymo-web"); }});
}

TEST_F(ContainerKillsTest, OfPodmanNothingIsLostAndNothingIsLeft) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-e2e");
  const std::string id = podman.podman("container inspect --format '{{.Id}}' kymo-e2e");
  const std::string userdata =
      "/var/lib/containers/storage/overlay-containers/" + id.substr(0, id.find('\n')) + "/userdata";
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags(), "--criu", criu_.path()});
  kymod.start();
  kill_dumps_at_every_point(
      kymod, {"podman", "kymo-e2e", root, [&] { return podman.status("kymo-e2e"); }, [] {}});
  for (const char* const path : {"/checkpoint", "/dump.log", "/stats-dump"}) {
    EXPECT_FALSE(fs::is_symlink(userdata + path)) << "podman's folder must be unchanged";
  }
}

TEST_F(ContainerKillsTest, OfDockerNothingIsLostAndNothingIsLeft) {
  KYMO_NEEDS_DOCKER();
  const Docker docker(criu_.folder());
  docker.start("kymo-web");
  Kymod kymod;
  kymod.start();
  kill_dumps_at_every_point(kymod, {"docker", "kymo-web", docker.root_of("kymo-web"),
                                    [&] { return docker.status("kymo-web"); }, [] {}});
}

}  // namespace
}  // namespace kymo::test
