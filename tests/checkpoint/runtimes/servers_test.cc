// What is special about containerd and Docker through the interface Runtime. The rest is in conformance_test.cc.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/proc/process.h"
#include "checkpoint/runtimes/containerd/containerd_runtime.h"
#include "checkpoint/runtimes/docker/docker_runtime.h"
#include "checkpoint/runtimes/shared/server.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/real_criu.h"
#include "support/shell.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Runtime> runtime() {
  return make_docker_runtime({.timeout = std::chrono::seconds(60)});
}

std::string criu_folder() {
  return fs::path(test::criu_path()).parent_path();
}

// containerd calls runc, which cannot restore a container with a terminal.
TEST(ContainerdTest, AContainerWithATerminalIsRefusedAndRunsOn) {
  KYMO_NEEDS_CONTAINERD();
  const test::Containerd containerd(criu_folder());
  const std::string command = "ctr --address " + containerd.socket() + " run -d -t " +
                              test::Containerd::image() + " web sleep 1000";
  // ctr needs a terminal itself, which script(1) gives it.
  const auto [said, good] = test::shell("script -qec \"" + command + "\" /dev/null 2>&1");
  ASSERT_EQ(containerd.status("web"), "RUNNING") << said;
  const auto kymods = make_containerd_runtime({.timeout = std::chrono::seconds(60)});
  const Result<Container> found = kymods->find("web");
  ASSERT_TRUE(found.ok()) << found.error().message;
  const auto dumped = kymods->dump({found->process, "/nowhere", "/nowhere", false, found->id}, {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_NE(dumped.error().message.find("it has a terminal"), std::string::npos)
      << dumped.error().message;
  EXPECT_EQ(containerd.status("web"), "RUNNING");
}

// With such a policy, Docker starts the container again when CRIU ends it.
TEST(DockerTest, ADumpedOneIsNotStartedAgainByItsRestartPolicy) {
  KYMO_NEEDS_DOCKER();
  const test::Docker docker(criu_folder());
  const test::TemporaryDirectory folder;
  RunSpec run;
  run.container = "web";
  run.work_dir = folder.path();
  run.command = test::Docker::arguments();
  run.command.insert(run.command.begin(), {"--restart", "always"});
  const Result<ProcessId> process = runtime()->run(run);
  ASSERT_TRUE(process.ok()) << process.error().message;
  const std::string id = runtime()->find("web")->id;
  const DumpSpec dump{*process, folder.folder("images"), folder.folder("work"), false, id};
  ASSERT_TRUE(runtime()->dump(dump, {}).ok());
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_EQ(docker.status("web"), "exited");
  const auto restored = runtime()->restore({dump.images_dir, dump.work_dir, id}, {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(test::counts_on("/proc/" + std::to_string(restored->process.pid) + "/root"));
  EXPECT_TRUE(fs::is_empty(docker.checkpoints_of("web"))) << "a copy of the images is left";
}

TEST(DockerTest, WithoutItsExperimentalFeaturesItIsRefusedWithTheRemedy) {
  KYMO_NEEDS_DOCKER();
  const test::Docker docker(criu_folder(), test::Docker::Features::usual);
  docker.start("web");
  const Result<Container> found = runtime()->find("web");
  ASSERT_TRUE(found.ok()) << found.error().message;
  const Result<void> refused =
      runtime()->may_dump({found->process, "/nowhere", "/nowhere", true, found->id});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("/etc/docker/daemon.json"), std::string::npos)
      << refused.error().message;
}

TEST(DockerTest, ADockerThatIsNotThereIsNamedWithTheRemedy) {
  setenv("DOCKER_HOST", "unix:///no/such/docker.sock", 1);
  const Result<Container> gone = runtime()->find("web");
  EXPECT_EQ(gone.error().code, Code::unavailable);
  EXPECT_NE(gone.error().message.find("start Docker"), std::string::npos) << gone.error().message;
  setenv("DOCKER_HOST", "tcp://127.0.0.1:2375", 1);
  const Result<Container> elsewhere = runtime()->find("web");
  EXPECT_NE(elsewhere.error().message.find("unix socket"), std::string::npos);
  unsetenv("DOCKER_HOST");
}

// Any user may name a process dockerd. kymod takes the PATH of Docker's process to find its criu, so
// it must not believe such a process.
TEST(DockerTest, OnlyTheProgramsOfRootOutsideOfContainersAreBelieved) {
  const test::TemporaryDirectory folder;
  fs::permissions(folder.path(), fs::perms::others_exec, fs::perm_options::add);
  const std::string real = folder.folder("real") + "/dockerd";
  fs::permissions(folder.path() + "/real", fs::perms::others_exec, fs::perm_options::add);
  fs::copy_file("/bin/sleep", real);
  const std::string renamed = folder.folder("renamed") + "/dockerd";
  fs::create_symlink("/bin/sleep", renamed);
  const auto believed = [&](const std::string& command) {
    const std::string file = folder.path() + "/pid";
    const int done = std::system((command + " 4711 2>/dev/null & echo $! >" + file).c_str());
    EXPECT_EQ(done, 0);
    pid_t pid = std::stoi(*read_file(file));
    Result<probe::Process> process = probe::read_process(pid);
    // unshare forks, and the child runs the program.
    EXPECT_TRUE(test::eventually([&] {
      if (const auto children = probe::children_of(pid).value(); !children.empty())
        pid = children.front();
      process = probe::read_process(pid);
      return process && process->name == "dockerd";
    })) << command;
    const bool of_root = process && is_of_root(*process, "dockerd");
    kill(pid, SIGKILL);
    return of_root;
  };
  EXPECT_TRUE(believed("'" + real + "'"));
  EXPECT_FALSE(believed("'" + renamed + "'"));
  EXPECT_FALSE(believed("setpriv --reuid 65534 --clear-groups '" + real + "'"));
  EXPECT_FALSE(believed("unshare --pid --fork '" + real + "'"));
}

}  // namespace
}  // namespace kymo::runtime
