// Docker through the interface Runtime, with a real Docker.

#include "support/docker.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "probe/process.h"
#include "runtime/freezer.h"
#include "runtime/server.h"
#include "runtimes/docker/docker_runtime.h"
#include "runtimes/docker/docker_server.h"
#include "server_runtime.h"
#include "support/containers.h"
#include "support/shell.h"
#include "support/temporary_directory.h"
#include "support/unix_proxy.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class DockerTest : public ServerRuntimeTest<test::Docker> {
 protected:
  void SetUp() override {
    KYMO_NEEDS_DOCKER();
    server_.emplace(criu_.folder());
    runtime_ = make_docker_runtime({.timeout = seconds(60)});
  }
  // Starts a container whose program counts. `further` are more arguments of docker run.
  ProcessId start(const std::string& name, const std::vector<std::string>& further = {}) {
    RunSpec spec;
    spec.container = name;
    spec.work_dir = folder_.path();
    spec.command = further;
    return run(std::move(spec), test::Docker::arguments());
  }
  static RestoreSpec restore_of(const DumpSpec& dump) {
    return {dump.images_dir, dump.work_dir, dump.container};
  }
  // The number of files and folders below `folder` whose names have this text.
  static int count_names(const std::string& folder, const std::string& text) {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename().string().find(text) != std::string::npos) ++count;
    }
    return count;
  }
};

TEST_F(DockerTest, IsDumpedAndRestored) {
  const ProcessId process = start("web");
  ASSERT_TRUE(counts_on(process));
  EXPECT_EQ(runtime_->find("web")->process.pid, process.pid);
  const DumpSpec dump = spec("web");
  EXPECT_EQ(runtime_->find(dump.container.substr(0, 12))->id, dump.container);
  EXPECT_EQ(runtime_->process_of(dump.container)->pid, process.pid);
  EXPECT_FALSE(runtime_->process_of("web").has_value()) << "a name is not an id";
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
  EXPECT_EQ(server_->status("web"), "exited");
  EXPECT_FALSE(runtime_->process_of(dump.container).has_value());
  EXPECT_FALSE(fs::exists(dump.images_dir + "/docker"));

  seen.clear();
  const Result<RestoreOutcome> restored = runtime_->restore(restore_of(dump), observer);
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(restored->warnings.empty()) << restored->warnings.front();
  ASSERT_TRUE(restored->stats.has_value());
  EXPECT_FALSE(seen.empty()) << "kymod found no phase in CRIU's log";
  EXPECT_EQ(server_->status("web"), "running");
  EXPECT_TRUE(counts_on(restored->process));
  EXPECT_EQ(count_names(server_->temporary(), "checkpoint"), 0) << "a copy of the images is left";
  EXPECT_EQ(count_names(server_->checkpoints_of("web"), ""), 0);
  const Result<RestoreOutcome> again = runtime_->restore(restore_of(dump), {});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Code::already_exists) << again.error().message;
  EXPECT_TRUE(counts_on(restored->process));
}

// Somebody starts the container after kymod has seen that it does not run. Before the fix, kymod killed its processes.
TEST_F(DockerTest, AContainerThatSomebodyElseStartsDuringARestoreRunsOn) {
  start("web");
  const DumpSpec dump = spec("web");
  const Result<DumpOutcome> dumped = runtime_->dump(dump, {});
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  const std::string socket = folder_.path() + "/proxy.sock";
  const test::UnixProxy proxy(socket, server_->socket(), "/start?checkpoint=", [&] {
    EXPECT_EQ(server_->docker("start web"), "web\n");
  });
  setenv("DOCKER_HOST", ("unix://" + socket).c_str(), 1);
  const auto runtime = make_docker_runtime({.timeout = seconds(60)});
  const Result<RestoreOutcome> refused = runtime->restore(restore_of(dump), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::already_exists) << refused.error().message;
  EXPECT_EQ(server_->status("web"), "running");
  const auto others = runtime_->process_of(dump.container);
  ASSERT_TRUE(others.has_value());
  EXPECT_TRUE(counts_on(*others));
}

// containerd may still have the tar file of the same images, and refuses to store it a second time.
TEST_F(DockerTest, IsRestoredAtOnceAndAgainAndAgain) {
  start("web");
  const std::string id = runtime_->find("web")->id;
  // Asks for the container's process all the time, as kymod does. Docker does not answer while it
  // restores the container.
  std::atomic<bool> over = false;
  std::thread asks([&] {
    for (; !over; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
      static_cast<void>(runtime_->process_of(id).has_value());
    }
  });
  for (int i = 0; i < 4 && !HasFailure(); ++i) {
    const DumpSpec dump = spec("web");
    const Result<DumpOutcome> dumped = runtime_->dump(dump, {});
    EXPECT_TRUE(dumped.ok()) << (dumped ? "" : dumped.error().message);
    Result<RestoreOutcome> restored = runtime_->restore(restore_of(dump), {});
    EXPECT_TRUE(restored.ok()) << (restored ? "" : restored.error().message);
    static_cast<void>(server_->docker("kill web"));
    restored = runtime_->restore(restore_of(dump), {});
    EXPECT_TRUE(restored.ok() && counts_on(restored->process))
        << (restored ? "" : restored.error().message);
  }
  over = true;
  asks.join();
}

TEST_F(DockerTest, LeftRunningItGoesOn) {
  const ProcessId process = start("web");
  const DumpSpec dump = spec("web", true);
  const Result<DumpOutcome> dumped = runtime_->dump(dump, {});
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  EXPECT_EQ(runtime_->process_of(dump.container)->pid, process.pid);
  EXPECT_EQ(server_->status("web"), "running");
  EXPECT_TRUE(counts_on(process));
}

// Before the fix, a dump failed if containerd had not yet removed what it had stored for the dump
// before. The test keeps containerd from removing it until the second dump was refused once.
TEST_F(DockerTest, TheNextDumpWaitsUntilContainerdHasForgottenTheLastOne) {
  const ProcessId process = start("web");
  const std::string ctr = "ctr --namespace moby content ";
  const std::string all = "$(" + ctr + "ls --quiet 2>/dev/null)";
  std::atomic<bool> over = false;
  std::thread holder([&] {
    while (!over) {
      test::shell("for each in " + all + "; do " + ctr +
                  "label $each containerd.io/gc.root=held; done >/dev/null 2>&1");
    }
  });
  const Result<DumpOutcome> first = runtime_->dump(spec("web", true), {});
  over = true;
  holder.join();
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_NE(test::shell("echo " + all).first, "\n")
      << "the test kept nothing in containerd's store";
  std::thread collector([&] {
    EXPECT_TRUE(test::eventually([&] {
      return server_->log().find(": already exists") != std::string::npos;
    })) << "containerd did not refuse the dump, so the test has tested nothing";
    test::shell("for each in " + all + "; do " + ctr + "rm $each; done >/dev/null 2>&1");
  });
  const Result<DumpOutcome> second = runtime_->dump(spec("web", true), {});
  collector.join();
  EXPECT_TRUE(second.ok()) << second.error().message;
  EXPECT_TRUE(counts_on(process));
}

TEST_F(DockerTest, IsFrozenAndLetGo) {
  const ProcessId process = start("web");
  const FreezeSpec freeze{process, "web"};
  ASSERT_TRUE(runtime_->freeze(freeze).ok());
  EXPECT_EQ(server_->status("web"), "paused");
  EXPECT_TRUE(runtime_->find("web")->frozen);
  EXPECT_EQ(runtime_->freeze(freeze).error().code, Code::failed_precondition);
  ASSERT_TRUE(runtime_->unfreeze(freeze).ok());
  EXPECT_EQ(server_->status("web"), "running");
  EXPECT_TRUE(counts_on(process));
}

TEST_F(DockerTest, AFrozenOneIsDumpedAndStaysFrozen) {
  const ProcessId process = start("web");
  ASSERT_TRUE(runtime_->freeze({process, "web"}).ok());
  const Result<DumpOutcome> dumped = runtime_->dump(spec("web", true), {});
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  EXPECT_EQ(server_->status("web"), "paused");
  EXPECT_TRUE(is_frozen(process.pid));
  DumpSpec late = spec("web");
  late.deadline_ns = monotonic_ns() + 200'000'000;
  const Result<DumpOutcome> cut = runtime_->dump(late, {});
  if (!cut.ok()) {
    EXPECT_EQ(server_->status("web"), "paused");
    EXPECT_TRUE(is_frozen(process.pid));
    const DumpSpec last = spec("web");
    ASSERT_TRUE(runtime_->dump(last, {}).ok());
    late = last;
  }
  EXPECT_EQ(server_->status("web"), "exited");
  const Result<RestoreOutcome> restored = runtime_->restore(restore_of(late), {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(counts_on(restored->process));
}

// If kymod had to unfreeze the container without Docker, Docker still believes that it is paused.
TEST_F(DockerTest, UnfreezeMendsWhatDockerTakesForPaused) {
  const ProcessId process = start("web");
  ASSERT_TRUE(runtime_->freeze({process, "web"}).ok());
  ASSERT_TRUE(Freezer::of(process.pid)->set(false).ok());
  EXPECT_EQ(server_->status("web"), "paused");
  const Result<std::string> done = runtime_->unfreeze({process, "web"});
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(server_->status("web"), "running");
  EXPECT_TRUE(counts_on(process));
}

// With such a policy, Docker starts the container again when CRIU ends it.
TEST_F(DockerTest, ADumpedOneIsNotStartedAgainByItsRestartPolicy) {
  start("web", {"--restart", "always"});
  const DumpSpec dump = spec("web");
  ASSERT_TRUE(runtime_->dump(dump, {}).ok());
  std::this_thread::sleep_for(seconds(1));
  EXPECT_EQ(server_->status("web"), "exited");
  const Result<RestoreOutcome> restored = runtime_->restore(restore_of(dump), {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(counts_on(restored->process));
}

TEST_F(DockerTest, AFailedRestoreCanBeRepeated) {
  start("web");
  const DumpSpec dump = spec("web");
  ASSERT_TRUE(runtime_->dump(dump, {}).ok());
  const fs::path image = fs::path(dump.images_dir) / "pages-1.img";
  fs::rename(image, folder_.path() + "/aside");
  const Result<RestoreOutcome> failed = runtime_->restore(restore_of(dump), {});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("CRIU: "), std::string::npos) << failed.error().message;
  EXPECT_EQ(server_->status("web"), "exited");
  EXPECT_EQ(count_names(server_->temporary(), "checkpoint"), 0) << "a copy of the images is left";
  fs::rename(folder_.path() + "/aside", image);
  const Result<RestoreOutcome> restored = runtime_->restore(restore_of(dump), {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(counts_on(restored->process));
}

TEST_F(DockerTest, ADockerThatHangsHoldsNobodyUp) {
  start("web");
  const std::string id = runtime_->find("web")->id;
  expect_a_hanging_server_holds_nobody_up(id);
}

// The same test as for runc, podman and containerd.
TEST_F(DockerTest, AtWhateverStepItsDumpIsEndedTheContainerRunsOn) {
  expect_it_runs_on_at_whatever_step(start("web"), "running");
}

TEST_F(DockerTest, AtWhateverStepADumpIsCancelledItIsDumpedOrRunsOn) {
  ProcessId process = start("web");
  for (const char* const step : test::kLoggedDumpSteps) {
    SCOPED_TRACE(test::name_of_step(step));
    DumpSpec dump = spec("web");
    const Result<DumpOutcome> dumped =
        test::cancelled_at(criu_, step, [&](const Cancellation* cancel) {
          dump.cancel = cancel;
          return runtime_->dump(dump, {});
        });
    if (dumped.ok()) {
      EXPECT_EQ(server_->status("web"), "exited");
      const Result<RestoreOutcome> restored = runtime_->restore(restore_of(dump), {});
      ASSERT_TRUE(restored.ok()) << restored.error().message;
      process = restored->process;
    } else {
      EXPECT_NE(dumped.error().message.find("the container runs on"), std::string::npos)
          << dumped.error().message;
    }
    EXPECT_EQ(server_->status("web"), "running") << server_->log();
    ASSERT_TRUE(counts_on(process));
  }
}

TEST_F(DockerTest, AtWhateverStepARestoreIsCancelledNothingOfItIsLeft) {
  start("web");
  const DumpSpec dump = spec("web");
  ASSERT_TRUE(runtime_->dump(dump, {}).ok());
  ASSERT_NO_FATAL_FAILURE(test::cancel_at_each(
      criu_, test::kLoggedRestoreSteps, [&] { return restore_of(dump); },
      [&](const RestoreSpec& restore) { return runtime_->restore(restore, {}); },
      [&](const RestoreSpec&, const Error&) {
        EXPECT_EQ(server_->status("web"), "exited");
        EXPECT_EQ(count_names(server_->temporary(), "checkpoint"), 0)
            << "a copy of the images is left";
        const std::string folder = fs::path(server_->temporary()).parent_path();
        EXPECT_EQ(read_file("/proc/self/mountinfo")->find(folder + "/root/io.containerd.runtime"),
                  std::string::npos)
            << "a mount of CRIU is left";
      }));
  const Result<RestoreOutcome> restored = runtime_->restore(restore_of(dump), {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(counts_on(restored->process));
}

// kymod takes a folder for a copy of these images if both have the same inventory. A link could make
// any folder look like a copy.
TEST_F(DockerTest, ALinkInPlaceOfAnInventoryIsNotFollowed) {
  static_cast<void>(folder_.folder("images"));
  const std::string inventory = folder_.file("images/inventory.img", "inventory");
  const std::string copy = server_->temporary() + "/ctrd-checkpoint1";
  fs::create_directory(copy);
  fs::create_symlink(inventory, copy + "/inventory.img");
  const DockerClient client;
  remove_copies(client, folder_.path() + "/images");
  EXPECT_TRUE(fs::exists(copy)) << "the link in the copy was followed";

  fs::remove(copy + "/inventory.img");
  fs::copy_file(inventory, copy + "/inventory.img");
  fs::create_symlink(inventory, folder_.folder("others") + "/inventory.img");
  remove_copies(client, folder_.path() + "/others");
  EXPECT_TRUE(fs::exists(copy)) << "the link in the images was followed";

  remove_copies(client, folder_.path() + "/images");
  EXPECT_FALSE(fs::exists(copy));
}

TEST_F(DockerTest, AFailedDumpLeavesItRunning) {
  const ProcessId process = start("web");
  DumpSpec dump = spec("web");
  dump.work_dir = "/proc/nowhere";
  const Result<DumpOutcome> dumped = runtime_->dump(dump, {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_EQ(server_->status("web"), "running");
  EXPECT_TRUE(counts_on(process));
}

// If CRIU had ended the container before, it would be lost, because Docker removes images that it
// cannot unpack.
TEST_F(DockerTest, ADiskThatIsFullWhenDockerUnpacksLosesNoContainer) {
  const ProcessId process = start("web");
  const std::string disk = folder_.folder("disk");
  ASSERT_EQ(std::system(("mount -t tmpfs -o size=64k none '" + disk + "'").c_str()), 0);
  DumpSpec dump = spec("web");
  dump.images_dir = disk;
  const Result<DumpOutcome> dumped = runtime_->dump(dump, {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_NE(dumped.error().message.find("no space left"), std::string::npos)
      << dumped.error().message;
  EXPECT_EQ(server_->status("web"), "running");
  EXPECT_TRUE(counts_on(process));
  EXPECT_EQ(count_names(disk, ""), 0);
  EXPECT_EQ(std::system(("umount '" + disk + "'").c_str()), 0);
}

TEST_F(DockerTest, WhatItCannotDoIsOneClearLine) {
  EXPECT_EQ(runtime_->find("nobody").error().code, Code::not_found);
  for (const char* name : {"", "--all", "a/b", "a\nb", "a?b", ".."}) {
    EXPECT_EQ(runtime_->find(name).error().code, Code::invalid_argument) << name;
    EXPECT_FALSE(runtime_->process_of(name).has_value()) << name;
  }
  start("gone", {"--rm"});
  const Result<void> removed = runtime_->may_dump(spec("gone"));
  ASSERT_FALSE(removed.ok());
  EXPECT_NE(removed.error().message.find("--leave-running"), std::string::npos);
  EXPECT_TRUE(runtime_->may_dump(spec("gone", true)).ok());
  start("web");
  RunSpec taken;
  taken.container = "web";
  taken.work_dir = folder_.path();
  taken.command = test::Docker::arguments();
  EXPECT_EQ(runtime_->run(taken).error().code, Code::already_exists);
  EXPECT_EQ(server_->status("web"), "running");
  RunSpec bad = taken;
  bad.container = "other";
  bad.command.back() = "-c";
  bad.command[bad.command.size() - 3] = "/bin/none";
  const Result<ProcessId> none = runtime_->run(bad);
  EXPECT_NE(none.error().message.find("\"/bin/none\""), std::string::npos) << none.error().message;
  EXPECT_EQ(server_->status("other"), "") << "the container that could not start must be removed";
  bad.command = {"--no-such-flag"};
  EXPECT_NE(runtime_->run(bad).error().message.find("unknown flag"), std::string::npos);
  DumpSpec dump = spec("web");
  dump.pre_dumps = 1;
  EXPECT_EQ(runtime_->may_dump(dump).error().code, Code::invalid_argument);
  dump = spec("web");
  dump.options.tcp_established = true;
  EXPECT_EQ(runtime_->may_dump(dump).error().code, Code::invalid_argument);
  static_cast<void>(server_->docker("kill web"));
  EXPECT_EQ(runtime_->find("web").error().code, Code::failed_precondition);
  RestoreSpec restore = restore_of(dump);
  static_cast<void>(server_->docker("rm web"));
  EXPECT_EQ(runtime_->may_restore(restore).error().code, Code::not_found);
  server_.reset();
  const Result<Container> gone = runtime_->find("web");
  EXPECT_EQ(gone.error().code, Code::unavailable);
  EXPECT_NE(gone.error().message.find("start Docker"), std::string::npos) << gone.error().message;
  setenv("DOCKER_HOST", "tcp://127.0.0.1:2375", 1);
  const Result<Container> elsewhere = make_docker_runtime({})->find("web");
  EXPECT_NE(elsewhere.error().message.find("unix socket"), std::string::npos);
  unsetenv("DOCKER_HOST");
}

// Any user may name a process dockerd. kymod takes the PATH of Docker's process to find its criu, so
// it must not believe such a process.
TEST_F(DockerTest, OnlyTheProgramsOfRootOutsideOfContainersAreBelieved) {
  fs::permissions(folder_.path(), fs::perms::others_exec, fs::perm_options::add);
  const std::string real = folder_.folder("real") + "/dockerd";
  fs::permissions(folder_.path() + "/real", fs::perms::others_exec, fs::perm_options::add);
  fs::copy_file("/bin/sleep", real);
  const std::string renamed = folder_.folder("renamed") + "/dockerd";
  fs::create_symlink("/bin/sleep", renamed);
  const auto believed = [&](const std::string& command) {
    const std::string file = folder_.path() + "/pid";
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

TEST_F(DockerTest, WithoutItsExperimentalFeaturesItIsRefusedWithTheRemedy) {
  server_.reset();
  server_.emplace(criu_.folder(), test::Docker::Features::usual);
  runtime_ = make_docker_runtime({.timeout = seconds(60)});
  start("web");
  const Result<void> refused = runtime_->may_dump(spec("web"));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("/etc/docker/daemon.json"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace kymo::runtime
