// kymod killed at every step of a container's dump or restore: the container is neither lost nor
// left frozen, nothing half-made is listed, nothing is left running, and the next kymod knows what
// happened.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/file.h"
#include "programs.h"
#include "runtime/memory_images.h"
#include "runtime/scratch.h"
#include "runtime/session.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// How a container that is to be dumped is looked at.
struct Counted {
  std::string kind;
  std::string name;
  std::string root;
  std::function<std::string()> status;
  std::function<void()> forget;  // what is left of one that was dumped, so that it can be restored
};

// A point of a dump, as it is seen from outside.
struct Instant {
  const char* name;
  const char* log_mark;  // in CRIU's log; nullptr: a file
};
constexpr Instant kInstants[] = {
    {"the entry is written", nullptr},
    {"the runtime has started a CRIU that has not begun", nullptr},
    {"CRIU begins", "Version: "},
    {"CRIU freezes", "freezing cgroup"},
    {"CRIU holds the processes", "Seized task"},
    {"CRIU writes pages", "Dumping pages (type"},
    {"all is written", "Running post-dump scripts"},
    {"CRIU has ended", "Dumping finished successfully"},
};

class ContainerKillsTest : public ::testing::Test {
 protected:
  // A criu that says when runc starts it, and then waits if it is told to. kymod, too, starts it, to
  // ask for its version.
  std::string slow_criu() const {
    std::string path = folder_.path() + "/criu";
    std::ofstream(path) << "#!/bin/sh\nif [ \"$(cat /proc/$PPID/comm)\" = runc ]; then\n: >"
                        << started() << "\n[ ! -e " << slow() << " ] || sleep 0.4\nfi\nexec "
                        << criu_path() << " \"$@\"\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  [[nodiscard]] std::string started() const { return folder_.path() + "/started"; }
  [[nodiscard]] std::string slow() const { return folder_.path() + "/slow"; }

  void kill_at_every_instant(Kymod& kymod, const Counted& container);
  void kill_restores_at_every_instant(Kymod& kymod, const Counted& container);
  void kill_at(Kymod& kymod, const Counted& container, const Instant& instant, bool leave_running);
  void expect_nothing_lost_and_nothing_left(const Kymod& kymod, const Counted& container);

  TemporaryDirectory folder_;
  std::string dir_;  // of the last dump
  std::string log_;  // CRIU's, of podman in its own folder
  int dumps_ = 0;
};

void ContainerKillsTest::kill_at(Kymod& kymod, const Counted& container, const Instant& instant,
                                 bool leave_running) {
  dir_ = kymod.path("checkpoint-" + std::to_string(++dumps_));
  fs::remove(started());
  const bool before_criu = &instant == &kInstants[1];
  if (before_criu) std::ofstream(slow()) << "x";
  std::vector<std::string> command{"dump", container.kind, container.name, "--dir", dir_};
  if (leave_running) command.emplace_back("--leave-running");
  if (dumps_ % 2 == 0)
    command.insert(command.end(), {"--deadline", "1m"});  // images in memory first
  std::atomic<bool> answered = false;
  std::thread client([&] {
    static_cast<void>(kymod.kymo(command));
    answered = true;
  });
  const std::string file = before_criu ? started() : dir_ + "/checkpoint.json";
  const auto there = [&] {
    if (instant.log_mark == nullptr) return fs::exists(file);
    const json record = json::parse(read_file(dir_ + "/checkpoint.json"), nullptr, false);
    return record.is_object() &&
           dump_log(dir_, record["pid"].get<pid_t>()).find(instant.log_mark) != std::string::npos;
  };
  while (!there() && !answered) std::this_thread::sleep_for(std::chrono::microseconds(300));
  EXPECT_EQ(kymod.stop(SIGKILL), -1);
  client.join();
  fs::remove(slow());
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

// KYMO_TEST_LONG=1: the next kymod is started both at once and a while after, not by turns.
void ContainerKillsTest::kill_at_every_instant(Kymod& kymod, const Counted& container) {
  const bool both = std::getenv("KYMO_TEST_LONG") != nullptr;
  for (const bool at_once : {true, false}) {
    bool turn = at_once;
    for (const Instant& instant : kInstants) {
      turn = !turn;
      if (!both && turn) continue;
      SCOPED_TRACE(std::string("killed when ") + instant.name +
                   (at_once ? ", started anew at once" : ", started anew a while after"));
      kill_at(kymod, container, instant, !at_once);
      if (!at_once) std::this_thread::sleep_for(std::chrono::milliseconds(700));
      kymod.start();
      expect_nothing_lost_and_nothing_left(kymod, container);
      if (HasFatalFailure() || HasFailure()) return;
    }
  }
}

constexpr Instant kRestoreInstants[] = {
    {"the runtime has started a CRIU that has not begun", nullptr},
    {"CRIU begins", "Version: "},
    {"CRIU makes namespaces", "Running pre-restore scripts"},
    {"all is restored and nothing runs", "Running post-restore scripts"},
    {"CRIU lets it go", "Running pre-resume scripts"},
    {"CRIU has ended", "Running post-resume scripts"},
};

// The runtime that a killed kymod leaves goes on alone, or fails by itself: in the end the
// container runs, or can be restored, and its job follows it.
void ContainerKillsTest::kill_restores_at_every_instant(Kymod& kymod, const Counted& container) {
  ASSERT_EQ(kymod.kymo({"adopt", container.kind, container.name, "--name", "job"}).exit_code, 0);
  for (const Instant& instant : kRestoreInstants) {
    SCOPED_TRACE(std::string("killed when ") + instant.name);
    const json dump = kymod.kymo_json({"dump", "process", "job"});
    const std::string dir = dump["directory"];
    const std::string log = log_.empty() ? dir + "/work/restore.log"
                                         : (fs::path(log_).parent_path() / "restore.log").string();
    fs::remove(log);
    fs::remove(started());
    if (instant.log_mark == nullptr) std::ofstream(slow()) << "x";
    std::atomic<bool> answered = false;
    std::thread client([&] {
      static_cast<void>(kymod.kymo({"restore", dir}));
      answered = true;
    });
    const auto there = [&] {
      if (instant.log_mark == nullptr) return fs::exists(started());
      const Result<std::string> text = kymo::read_file(log);
      return text && text->find(instant.log_mark) != std::string::npos;
    };
    while (!there() && !answered) std::this_thread::sleep_for(std::chrono::microseconds(300));
    EXPECT_EQ(kymod.stop(SIGKILL), -1);
    client.join();
    fs::remove(slow());
    kymod.start();
    Outcome restored;
    ASSERT_TRUE(eventually(
        [&] {
          if (container.status() == "running") return true;
          restored = kymod.kymo({"restore", dir});
          return restored.exit_code == 0;
        },
        std::chrono::seconds(30)))
        << container.status() << ' ' << restored.err << kymod.log();
    ASSERT_TRUE(counts_on(container.root)) << restored.err;
    ASSERT_TRUE(eventually([&] { return kymod.job("job")["state"] == "running"; })) << kymod.log();
    EXPECT_EQ(kymod.kymo_json({"ps"}).size(), 1U) << "one container is one job";
    EXPECT_EQ(kymod.kymo_json({"checkpoints"}).back()["state"], "complete");
    EXPECT_TRUE(fs::exists(dir + "/images/inventory.img"));
  }
}

TEST_F(ContainerKillsTest, ARestoreOfRuncIsNeitherLostNorLeftHalfDone) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  Kymod kymod({"--runc-root", runc.path(), "--criu", slow_criu()});
  kymod.start();
  kill_restores_at_every_instant(
      kymod, {"runc", "kymo-web", bundle + "/rootfs", [&] { return runc.status("kymo-web"); }, {}});
}

TEST_F(ContainerKillsTest, ARestoreOfPodmanIsNeitherLostNorLeftHalfDone) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-e2e");
  const std::string id = podman.podman("container inspect --format '{{.Id}}' kymo-e2e");
  log_ = "/var/lib/containers/storage/overlay-containers/" + id.substr(0, id.find('\n')) +
         "/userdata/dump.log";
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags(), "--criu", slow_criu()});
  kymod.start();
  kill_restores_at_every_instant(
      kymod, {"podman", "kymo-e2e", root, [&] { return podman.status("kymo-e2e"); }, {}});
}

TEST_F(ContainerKillsTest, ARestoreOfDockerIsNeitherLostNorLeftHalfDone) {
  KYMO_NEEDS_DOCKER();
  slow_criu();
  const Docker docker(folder_.path());
  docker.start("kymo-web");
  log_ = docker.checkpoints_of("kymo-web") + "/kymo-restore/dump.log";
  Kymod kymod;
  kymod.start();
  kill_restores_at_every_instant(kymod, {"docker",
                                         "kymo-web",
                                         docker.root_of("kymo-web"),
                                         [&] { return docker.status("kymo-web"); },
                                         {}});
}

TEST_F(ContainerKillsTest, OfRuncNothingIsLostAndNothingIsLeft) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  Kymod kymod({"--runc-root", runc.path(), "--criu", slow_criu()});
  kymod.start();
  kill_at_every_instant(
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
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags(), "--criu", slow_criu()});
  kymod.start();
  kill_at_every_instant(
      kymod, {"podman", "kymo-e2e", root, [&] { return podman.status("kymo-e2e"); }, [] {}});
  for (const char* const path : {"/checkpoint", "/dump.log", "/stats-dump"}) {
    EXPECT_FALSE(fs::is_symlink(userdata + path)) << "podman's own folder is as it was";
  }
}

TEST_F(ContainerKillsTest, OfDockerNothingIsLostAndNothingIsLeft) {
  KYMO_NEEDS_DOCKER();
  slow_criu();
  const Docker docker(folder_.path());
  docker.start("kymo-web");
  Kymod kymod;
  kymod.start();
  kill_at_every_instant(kymod, {"docker", "kymo-web", docker.root_of("kymo-web"),
                                [&] { return docker.status("kymo-web"); }, [] {}});
}

}  // namespace
}  // namespace kymo::test
