// Two kymods on one machine, and one process that both know.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/runtimes/shared/command.h"
#include "counted_job.h"
#include "counting.h"
#include "programs.h"
#include "support/containers.h"
#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

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

// Another container's cgroup may have the same name in another place, as with containerd.
TEST(ContainersOfTwoTest, AFailedOneEndsItsProcessesBesideAnotherContainerOfTheName) {
  KYMO_NEEDS(Kind::runc);
  CountedJob job(Kind::runc);
  const RuncFolder another;
  const std::string bundle = make_bundle(another.folder(), "another", counting_command());
  nlohmann::json spec = nlohmann::json::parse(read_file(bundle + "/config.json"));
  spec["linux"]["cgroupsPath"] = "/kymo-another/" + job.counting->name();
  std::ofstream(bundle + "/config.json") << spec;
  ASSERT_TRUE(another.runc("run -d --bundle '" + bundle + "' kymo-another"));
  ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  const std::uint64_t number = job.counting->number();
  job.dump();
  if (testing::Test::HasFailure()) return;
  job.criu.break_at("post-resume", SIGKILL);
  const Outcome answer = job.kymod->kymo({"restore", job.dir()});
  job.criu.mend();
  EXPECT_NE(answer.exit_code, 0) << answer.out;
  EXPECT_TRUE(job.counting->copies().empty()) << answer.err;
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
  const Outcome restored = job.kymod->kymo({"restore", job.dir()});
  EXPECT_EQ(restored.exit_code, 0) << restored.err << job.kymod->log();
  EXPECT_TRUE(job.counting->counts());
  EXPECT_GT(job.counting->number(), number);
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

}  // namespace
}  // namespace kymo::test
