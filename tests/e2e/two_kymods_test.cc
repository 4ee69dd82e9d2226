// Two kymods on one machine, and one process that both know.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint/runtimes/shared/command.h"
#include "counted_job.h"
#include "counting.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/containers.h"
#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

// `--force` is needed because the check before a dump would refuse a traced process.
TEST(TwoKymodsTest, TheSecondOneChangesNothingInAProcessThatTheFirstOneDumps) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  const std::unique_ptr<Counting> counting = Counting::make(Kind::connected, criu);
  Kymod first({"--criu", criu.path()});
  Kymod second;
  first.start();
  second.start();
  static_cast<void>(first.kymo_json(counting->run()));
  ASSERT_TRUE(eventually([&] { return counting->counts(); }));
  const std::string pid = first.job(counting->name())["pid"].dump();
  criu.break_at("Dumping pages (type", SIGSTOP);
  Outcome dumped;
  std::thread client([&] {
    dumped = first.kymo({"dump", "process", pid, "--tcp-established", "--dir", first.path("c")});
  });
  const pid_t stopped = criu.stopped();
  EXPECT_NE(stopped, 0) << first.log();
  criu.mend();
  const Outcome refused = second.kymo({"dump", "process", pid, "--tcp-established", "--force"});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("it is being dumped by another kymod"), std::string::npos)
      << refused.err;
  EXPECT_TRUE(second.kymo_json({"checkpoints"}).empty());
  if (stopped != 0) kill(stopped, SIGCONT);
  client.join();
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const Outcome restored = first.kymo({"restore", first.path("c")});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counting->counts());
  EXPECT_EQ(counting->connections(), 1);
}

// A kymod that has dumped a process, and another one that restores the images.
class ImagesOfTwoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    dumper_.start();
    restorer_.start();
    job_ = dumper_.churn(8, "work");
  }
  void TearDown() override {
    if (job_.is_object()) kill(job_["pid"].get<pid_t>(), SIGKILL);
  }

  // Restores this directory, and calls `during` while CRIU has not read the memory of the process yet.
  void restore(const std::string& directory, const std::function<void()>& during) {
    criu_.break_at("Running pre-restore scripts", SIGSTOP);
    Outcome restored;
    std::thread client([&] { restored = restorer_.kymo({"restore", directory}); });
    const pid_t stopped = criu_.stopped();
    EXPECT_NE(stopped, 0) << restorer_.log();
    during();
    criu_.mend();
    if (stopped != 0) kill(stopped, SIGCONT);
    client.join();
    EXPECT_EQ(restored.exit_code, 0) << restored.err;
  }

  const BreakableCriu criu_;
  Kymod dumper_;
  Kymod restorer_{std::vector<std::string>{"--criu", criu_.path()}};
  nlohmann::json job_;
};

TEST_F(ImagesOfTwoTest, ADeletionOfWhatTheOtherRestoresIsRefused) {
  const std::string directory = dumper_.path("c");
  static_cast<void>(dumper_.kymo_json({"dump", "process", "work", "--dir", directory}));
  for (const std::string& restored : {directory, directory + "/images"}) {
    restore(restored, [&] {
      for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
               {"delete", directory}, {"delete", "work", "--all"}}) {
        const Outcome deleted = dumper_.kymo(words);
        EXPECT_EQ(deleted.exit_code, 1) << deleted.out;
        EXPECT_NE(deleted.err.find("another kymod"), std::string::npos) << deleted.err;
      }
      EXPECT_TRUE(std::filesystem::exists(directory + "/images/inventory.img"));
    });
    const auto pid = job_["pid"].get<pid_t>();
    EXPECT_EQ(kill(pid, SIGKILL), 0) << restorer_.log();
    EXPECT_TRUE(eventually([&] { return kill(pid, 0) != 0; }));
  }
}

TEST(ContainersOfTwoTest, ASecondRestoreChangesNothingOfAContainerThatIsBeingRestored) {
  KYMO_NEEDS(Kind::runc);
  CountedJob job(Kind::runc);
  Kymod second(job.counting->flags());
  second.start();
  const std::string checkpoint = job.dir();
  const std::string copy = job.kymod->path("copy");
  ASSERT_NO_FATAL_FAILURE(job.dump());
  std::filesystem::copy(checkpoint, copy, std::filesystem::copy_options::recursive);
  job.criu.break_at("Running pre-restore scripts", SIGSTOP);
  Outcome restored;
  std::thread client([&] { restored = job.kymod->kymo({"restore", checkpoint}); });
  const pid_t stopped = job.criu.stopped();
  EXPECT_NE(stopped, 0) << job.kymod->log();
  job.criu.mend();
  const std::vector<std::pair<Kymod*, std::string>> others{
      {&second, checkpoint}, {&second, copy}, {job.kymod.get(), copy}};
  for (const auto& [kymod, from] : others) {
    const Outcome refused = kymod->kymo({"restore", from});
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find("is under way, here or by another kymod"), std::string::npos)
        << refused.err;
  }
  if (stopped != 0) kill(stopped, SIGCONT);
  client.join();
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(eventually([&] { return job.counting->counts(); }));
}

TEST(ContainersOfTwoTest, AContainerThatSomebodyElseStartsDuringARestoreRunsOn) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  const std::string real = runtime::on_path("runc");
  ASSERT_NE(real, "");
  // A runc that is overtaken: before it restores, somebody starts the same container.
  const TemporaryDirectory programs;
  std::ofstream(programs.path() + "/runc")
      << "#!/bin/sh\ncase \" $* \" in *\" restore \"*) " + real + " --root " + runc.path() +
             " run --detach --bundle " + bundle +
             " kymo-web </dev/null >/dev/null 2>&1;; esac\nexec " + real + " \"$@\"\n";
  std::filesystem::permissions(programs.path() + "/runc", std::filesystem::perms::owner_all);
  Kymod kymod({"--runc-root", runc.path()});
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (programs.path() + ":" + path).c_str(), 1);
  kymod.start();
  ::setenv("PATH", path.c_str(), 1);
  const Outcome dumped = kymod.kymo({"dump", "runc", "kymo-web", "--dir", kymod.path("c")});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  ASSERT_EQ(runc.status("kymo-web"), "");
  const Outcome refused = kymod.kymo({"restore", kymod.path("c")});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("already exists"), std::string::npos) << refused.err;
  EXPECT_EQ(runc.status("kymo-web"), "running");
  EXPECT_TRUE(std::filesystem::exists(bundle + "/rootfs/bin"));
}

// A podman that is overtaken: before it restores, somebody starts the same container.
TEST(ContainersOfTwoTest, APodmanContainerThatSomebodyElseStartsDuringARestoreRunsOn) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-two");
  const std::string real = runtime::on_path("podman");
  ASSERT_NE(real, "");
  const TemporaryDirectory programs;
  std::ofstream(programs.path() + "/podman")
      << "#!/bin/sh\ncase \" $* \" in *\" container restore \"*) " + real + " " +
             PodmanContainers::flags() +
             " start kymo-two </dev/null >/dev/null 2>&1;; esac\nexec " + real + " \"$@\"\n";
  std::filesystem::permissions(programs.path() + "/podman", std::filesystem::perms::owner_all);
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (programs.path() + ":" + path).c_str(), 1);
  kymod.start();
  ::setenv("PATH", path.c_str(), 1);
  const Outcome dumped = kymod.kymo({"dump", "podman", "kymo-two", "--dir", kymod.path("c")});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  ASSERT_NE(podman.status("kymo-two"), "running");
  const Outcome refused = kymod.kymo({"restore", kymod.path("c")});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("container state improper"), std::string::npos) << refused.err;
  EXPECT_EQ(podman.status("kymo-two"), "running");
  EXPECT_TRUE(counts_on(root));
  EXPECT_TRUE(std::filesystem::exists(root + "/bin"));
}

}  // namespace
}  // namespace kymo::test
