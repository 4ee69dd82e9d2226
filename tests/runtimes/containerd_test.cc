// containerd through the interface Runtime, with a real containerd.

#include "support/containerd.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtimes/containerd/containerd_runtime.h"
#include "runtimes/table.h"
#include "server_runtime.h"
#include "support/containers.h"
#include "support/shell.h"
#include "support/unix_proxy.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class ContainerdTest : public ServerRuntimeTest<test::Containerd> {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CONTAINERD();
    server_.emplace(criu_.folder());
    runtime_ = make_containerd_runtime({.timeout = seconds(60)});
  }
  // Starts a container whose program counts.
  ProcessId start(const std::string& id) {
    RunSpec spec;
    spec.container = id;
    spec.command = {test::Containerd::image()};
    return run(std::move(spec), test::counting_command());
  }
};

TEST_F(ContainerdTest, IsDumpedAndRestored) {
  const ProcessId process = start("web");
  ASSERT_TRUE(counts_on(process));
  EXPECT_EQ(runtime_->find("default/web")->process.pid, process.pid);
  EXPECT_EQ(runtime_->process_of("default/web")->pid, process.pid);
  const DumpSpec dump = spec("web");
  std::vector<std::string> seen;
  Observer observer;
  observer.notified = [&](std::string_view name) { seen.emplace_back(name); };
  const Result<DumpOutcome> dumped = runtime_->dump(dump, observer);
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  EXPECT_TRUE(dumped->warnings.empty()) << dumped->warnings.front();
  ASSERT_TRUE(dumped->stats.has_value());
  EXPECT_GT(dumped->stats->pages_written, 0U);
  EXPECT_GT(dumped->image_bytes, 0U);
  EXPECT_FALSE(seen.empty()) << "kymod found no phase in CRIU's log";
  EXPECT_EQ(server_->status("web"), "");
  EXPECT_FALSE(runtime_->process_of("default/web").has_value());

  const RestoreSpec restore{dump.images_dir, dump.work_dir, dump.container};
  const Result<RestoreOutcome> restored = runtime_->restore(restore, {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  ASSERT_TRUE(restored->stats.has_value());
  EXPECT_EQ(server_->status("web"), "RUNNING");
  EXPECT_TRUE(counts_on(restored->process));
  const Result<RestoreOutcome> again = runtime_->restore(restore, {});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Code::already_exists) << again.error().message;
  EXPECT_TRUE(counts_on(restored->process));
}

// Somebody starts the container after kymod has seen that it does not run. Before the fix, kymod killed its processes and
// deleted its task.
TEST_F(ContainerdTest, AContainerThatSomebodyElseStartsDuringARestoreRunsOn) {
  start("web");
  const DumpSpec dump = spec("web");
  const Result<DumpOutcome> dumped = runtime_->dump(dump, {});
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  const std::string socket = folder_.path() + "/proxy.sock";
  const test::UnixProxy proxy(socket, server_->socket(), dump.images_dir,
                              [&] { EXPECT_EQ(server_->ctr("tasks start -d web"), ""); });
  setenv("CONTAINERD_ADDRESS", socket.c_str(), 1);
  const auto runtime = make_containerd_runtime({.timeout = seconds(60)});
  const Result<RestoreOutcome> refused =
      runtime->restore({dump.images_dir, dump.work_dir, dump.container}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::already_exists) << refused.error().message;
  EXPECT_EQ(server_->status("web"), "RUNNING");
  const auto others = runtime_->process_of("default/web");
  ASSERT_TRUE(others.has_value());
  EXPECT_TRUE(counts_on(*others));
}

// containerd calls runc, which cannot restore a container with a terminal.
TEST_F(ContainerdTest, AContainerWithATerminalIsRefusedAndRunsOn) {
  const std::string command = "ctr --address " + server_->socket() + " run -d -t " +
                              test::Containerd::image() + " web sleep 1000";
  // ctr needs a terminal itself, which script(1) gives it.
  const auto [said, good] = test::shell("script -qec \"" + command + "\" /dev/null 2>&1");
  ASSERT_EQ(server_->status("web"), "RUNNING") << said;
  const Result<DumpOutcome> dumped = runtime_->dump(spec("web"), {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_NE(dumped.error().message.find("it has a terminal"), std::string::npos)
      << dumped.error().message;
  EXPECT_EQ(server_->status("web"), "RUNNING");
}

TEST_F(ContainerdTest, LeftRunningItGoesOn) {
  const ProcessId process = start("web");
  const Result<DumpOutcome> dumped = runtime_->dump(spec("web", true), {});
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  EXPECT_EQ(runtime_->process_of("default/web")->pid, process.pid);
  EXPECT_TRUE(counts_on(process));
}

TEST_F(ContainerdTest, IsFrozenAndLetGo) {
  const ProcessId process = start("web");
  const FreezeSpec freeze{process, "default/web"};
  const Result<std::string> frozen = runtime_->freeze(freeze);
  ASSERT_TRUE(frozen.ok()) << frozen.error().message;
  EXPECT_EQ(server_->status("web"), "PAUSED");
  EXPECT_TRUE(runtime_->find("web")->frozen);
  EXPECT_EQ(runtime_->freeze(freeze).error().code, Code::failed_precondition);
  ASSERT_TRUE(runtime_->unfreeze(freeze).ok());
  EXPECT_TRUE(counts_on(process));
}

TEST_F(ContainerdTest, AFailedRestoreLeavesNoTaskAndCanBeRepeated) {
  start("web");
  const DumpSpec dump = spec("web");
  ASSERT_TRUE(runtime_->dump(dump, {}).ok());
  const fs::path image = fs::path(dump.images_dir) / "pages-1.img";
  fs::rename(image, folder_.path() + "/aside");
  const RestoreSpec restore{dump.images_dir, dump.work_dir, dump.container};
  EXPECT_FALSE(runtime_->restore(restore, {}).ok());
  EXPECT_EQ(server_->status("web"), "");
  fs::rename(folder_.path() + "/aside", image);
  const Result<RestoreOutcome> restored = runtime_->restore(restore, {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(counts_on(restored->process));
}

TEST_F(ContainerdTest, AContainerdThatHangsHoldsNobodyUp) {
  start("web");
  expect_a_hanging_server_holds_nobody_up("default/web");
}

// The same test as for runc and podman.
TEST_F(ContainerdTest, AtWhateverStepItsDumpIsEndedTheContainerRunsOn) {
  expect_it_runs_on_at_whatever_step(start("web"), "RUNNING");
}

TEST_F(ContainerdTest, AFailedDumpLeavesItRunning) {
  const ProcessId process = start("web");
  DumpSpec dump = spec("web");
  dump.work_dir = "/proc/nowhere";
  const Result<DumpOutcome> dumped = runtime_->dump(dump, {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_TRUE(counts_on(process));
  EXPECT_EQ(server_->status("web"), "RUNNING");
}

TEST_F(ContainerdTest, WhatItCannotDoIsOneClearLine) {
  EXPECT_EQ(runtime_->find("nobody").error().code, Code::not_found);
  EXPECT_NE(runtime_->find("moby/nobody").error().message.find("namespace moby"),
            std::string::npos);
  // gRPC ends the program if metadata has a line end.
  for (const char* name : {"", "--all", "a/b/c", "a\nb/web", "/web", "web/"}) {
    EXPECT_EQ(runtime_->find(name).error().code, Code::invalid_argument) << name;
    EXPECT_FALSE(runtime_->process_of(name).has_value()) << name;
  }
  RunSpec run;
  run.container = "web";
  run.command = {"--privileged", test::Containerd::image()};
  EXPECT_EQ(runtime_->run(run).error().code, Code::invalid_argument);
  start("web");
  DumpSpec dump = spec("web");
  dump.pre_dumps = 1;
  EXPECT_EQ(runtime_->may_dump(dump).error().code, Code::invalid_argument);
  dump = spec("web");
  dump.options.external = {"mnt[/x]:y"};
  EXPECT_EQ(runtime_->may_dump(dump).error().code, Code::invalid_argument);
  static_cast<void>(server_->ctr("tasks kill -s SIGKILL web"));
  EXPECT_TRUE(test::eventually([&] { return server_->status("web") == "STOPPED"; }));
  EXPECT_EQ(runtime_->find("web").error().code, Code::failed_precondition);
  server_.reset();
  const Result<Container> gone = runtime_->find("web");
  EXPECT_EQ(gone.error().code, Code::unavailable);
  EXPECT_NE(gone.error().message.find("CONTAINERD_ADDRESS"), std::string::npos);
}

}  // namespace
}  // namespace kymo::runtime
