// runc and podman through the interface Runtime: what is refused, and what a failure leaves.

#include "support/containers.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/spawn.h"
#include "runtimes/podman/podman_runtime.h"
#include "runtimes/runc/runc_runtime.h"
#include "support/real_criu.h"
#include "support/stop_points.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

// Makes a folder whose criu is this shell script.
std::string folder_with(const test::TemporaryDirectory& parent, const std::string& script) {
  std::string folder = parent.folder("criu-folder");
  std::ofstream(folder + "/criu") << "#!/bin/sh\n" << script << "\n";
  chmod((folder + "/criu").c_str(), 0755);
  return folder;
}

// runc leaves a file of its own in the folder, which does not count.
bool has_images(const std::string& folder) {
  return std::any_of(fs::directory_iterator(folder), fs::directory_iterator(),
                     [](const auto& entry) { return entry.path().extension() == ".img"; });
}

// The mounts of the machine's cgroups below this folder that CRIU left when its restore was ended.
std::string left_of_criu(const std::string& folder) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string left;
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(folder + "/.criu.") != std::string::npos) left += line + "\n";
  }
  return left;
}

class RuncTest : public testing::Test {
 protected:
  std::unique_ptr<Runtime> runtime(const std::string& criu_folder = {}) const {
    RuncRuntimeOptions options;
    options.root = runc_.path();
    options.criu_folder =
        criu_folder.empty() ? fs::path(test::criu_path()).parent_path().string() : criu_folder;
    options.timeout = timeout_;
    return make_runc_runtime(options);
  }
  DumpSpec spec(Runtime& runtime, const std::string& id, bool leave_running = false) {
    const Result<Container> found = runtime.find(id);
    EXPECT_TRUE(found.ok()) << found.error().message;
    ++dumps_;
    const std::string name = std::to_string(dumps_);
    return {found->process, runc_.folder().folder(name + "-images"),
            runc_.folder().folder(name + "-work"), leave_running, id};
  }
  RestoreSpec restore_of(const DumpSpec& dump, const std::string& bundle) {
    return {dump.images_dir, dump.work_dir, dump.container, bundle};
  }

  test::RuncFolder runc_;
  seconds timeout_{60};
  int dumps_ = 0;
};

TEST_F(RuncTest, FindsARunningContainerAndItsBundle) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  const Result<Container> found = runtime()->find("web");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->bundle, bundle);
  EXPECT_GT(found->process.pid, 0);
  EXPECT_GT(found->process.start_ticks, 0U);
  EXPECT_EQ(found->command, test::counting_command());
  EXPECT_FALSE(found->frozen);
}

TEST_F(RuncTest, NamesWhatItCannotFind) {
  KYMO_NEEDS_RUNC();
  const auto runtime = this->runtime();
  Result<Container> found = runtime->find("nobody");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::not_found);
  EXPECT_NE(found.error().message.find("has no such container in " + runc_.path()),
            std::string::npos);
  for (const char* id : {"", "..", "a/b", "../web", "a b"}) {
    found = runtime->find(id);
    ASSERT_FALSE(found.ok()) << id;
    EXPECT_EQ(found.error().code, Code::invalid_argument) << id;
  }
  runc_.start("web");
  EXPECT_TRUE(runc_.runc("kill web KILL"));
  EXPECT_TRUE(test::eventually([&] { return runc_.status("web") == "stopped"; }));
  found = runtime->find("web");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::failed_precondition);
  EXPECT_NE(found.error().message.find("it has stopped"), std::string::npos);
}

TEST_F(RuncTest, IsDumpedAndRestoredUnderAnotherIdToo) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  const auto runtime = this->runtime();
  DumpSpec dump = spec(*runtime, "web");
  const Result<DumpOutcome> dumped = runtime->dump(dump, {});
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  EXPECT_TRUE(dumped->stats.has_value());
  EXPECT_EQ(dumped->warnings, std::vector<std::string>{});
  dump.container = "web-2";
  const Result<RestoreOutcome> restored = runtime->restore(restore_of(dump, bundle), {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ(runc_.status("web-2"), "running");
  EXPECT_EQ(runc_.status("web"), "");
  EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
}

TEST_F(RuncTest, AFailedDumpLeavesItRunning) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  // A criu that ends too early. It has not frozen anything, but runc does not know that.
  const auto runtime = this->runtime(folder_with(runc_.folder(), "sleep 0.1; exit 3"));
  const DumpSpec dump = spec(*runtime, "web");
  const Result<DumpOutcome> dumped = runtime->dump(dump, {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_NE(dumped.error().message.find("runc could not dump container web: "), std::string::npos);
  EXPECT_NE(dumped.error().message.find("; the container runs on"), std::string::npos)
      << dumped.error().message;
  EXPECT_EQ(runc_.status("web"), "running");
  EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
}

TEST_F(RuncTest, ADumpThatTakesTooLongIsEndedAndTheContainerRunsOn) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  timeout_ = seconds(1);
  const auto runtime = this->runtime(folder_with(runc_.folder(), "exec sleep 50"));
  const Result<DumpOutcome> dumped = runtime->dump(spec(*runtime, "web"), {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_EQ(dumped.error().code, Code::deadline_exceeded) << dumped.error().message;
  EXPECT_EQ(runc_.status("web"), "running");
  EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
}

TEST_F(RuncTest, ADeadlineEndsItAndTheContainerRunsOn) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  const test::BreakableCriu criu;
  const auto runtime = this->runtime(criu.folder());
  DumpSpec dump;
  test::late_at(
      criu, "Dumping pages (type",
      [&](std::uint64_t deadline_ns) {
        dump = spec(*runtime, "web", true);
        dump.deadline_ns = deadline_ns;
        return runtime->dump(dump, {});
      },
      [&](const Result<DumpOutcome>& dumped) {
        ASSERT_FALSE(dumped.ok());
        EXPECT_EQ(dumped.error().code, Code::deadline_exceeded) << dumped.error().message;
        EXPECT_NE(dumped.error().message.find("; the container runs on"), std::string::npos)
            << dumped.error().message;
        EXPECT_EQ(runc_.status("web"), "running");
        EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
        EXPECT_FALSE(test::has_criu_code(dump.process.pid));
      });
}

TEST_F(RuncTest, AtWhateverStepADumpIsCancelledTheContainerRunsOn) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  const test::BreakableCriu criu;
  const auto runtime = this->runtime(criu.folder());
  test::cancel_at_each(
      criu, test::kDumpSteps, [&] { return spec(*runtime, "web", true); },
      [&](const DumpSpec& dump) { return runtime->dump(dump, {}); },
      [&](const DumpSpec& dump, const Error&) {
        ASSERT_EQ(runc_.status("web"), "running");
        ASSERT_TRUE(test::counts_on(bundle + "/rootfs"));
        EXPECT_FALSE(test::has_criu_code(dump.process.pid));
      });
}

TEST_F(RuncTest, AtWhateverStepARestoreIsCancelledNothingOfItIsLeft) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  const test::BreakableCriu criu;
  const auto runtime = this->runtime(criu.folder());
  const DumpSpec dump = spec(*runtime, "web");
  ASSERT_TRUE(runtime->dump(dump, {}).ok());
  ASSERT_NO_FATAL_FAILURE(test::cancel_at_each(
      criu, test::kRestoreSteps, [&] { return restore_of(dump, bundle); },
      [&](const RestoreSpec& restore) { return runtime->restore(restore, {}); },
      [&](const RestoreSpec&, const Error&) {
        ASSERT_EQ(runc_.status("web"), "");
        ASSERT_TRUE(has_images(dump.images_dir));
        ASSERT_TRUE(fs::exists(bundle + "/rootfs/bin")) << "its root was emptied";
        ASSERT_EQ(left_of_criu(dump.work_dir), "");
      }));
  const Result<RestoreOutcome> restored = runtime->restore(restore_of(dump, bundle), {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
}

TEST_F(RuncTest, RoundsOfPreDumpAreMadeAndRestoredFromOrRefused) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  const auto runtime = this->runtime();
  DumpSpec dump = spec(*runtime, "web");
  dump.pre_dumps = 2;
  const Result<DumpOutcome> dumped = runtime->dump(dump, {});
  if (!dumped && dumped.error().code == Code::failed_precondition) {
    EXPECT_NE(dumped.error().message.find("does not track which pages are written"),
              std::string::npos)
        << dumped.error().message;
    EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
    GTEST_SKIP() << "this kernel does not track which pages are written: refused, as it must be";
  }
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  ASSERT_FALSE(dumped->pre_dumps.empty());
  EXPECT_GT(dumped->pre_dumps[0].pages_written, 0U);
  ASSERT_TRUE(dumped->stats.has_value());
  EXPECT_GT(dumped->stats->pages_skipped_parent, 0U);
  EXPECT_TRUE(fs::exists(dump.images_dir + "/pre-1/pages-1.img"));
  EXPECT_TRUE(fs::exists(dump.work_dir + "/pre-1-dump.log"));
  const Result<RestoreOutcome> restored = runtime->restore(restore_of(dump, bundle), {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
}

// If runc is killed while a container is frozen, the container stays frozen. A script stands in for
// criu, and freezes the container itself.
TEST_F(RuncTest, WhatAFailedDumpLeavesFrozenIsThawed) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  timeout_ = seconds(2);
  const auto runtime = this->runtime(
      folder_with(runc_.folder(), "runc --root '" + runc_.path() + "' pause web; exec sleep 50"));
  const Result<DumpOutcome> dumped = runtime->dump(spec(*runtime, "web"), {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_EQ(runc_.status("web"), "running") << dumped.error().message;
  EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
}

TEST_F(RuncTest, AFailedRestoreLeavesNoContainer) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  const auto runtime = this->runtime();
  const DumpSpec dump = spec(*runtime, "web");
  ASSERT_TRUE(runtime->dump(dump, {}).ok());
  fs::resize_file(dump.images_dir + "/core-1.img", 20);
  const Result<RestoreOutcome> restored = runtime->restore(restore_of(dump, bundle), {});
  ASSERT_FALSE(restored.ok());
  EXPECT_NE(restored.error().message.find("(failure images-broken; CRIU: "), std::string::npos)
      << restored.error().message;
  EXPECT_EQ(runc_.status("web"), "");
  EXPECT_FALSE(fs::exists(runc_.path() + "/web"));
}

// `runc delete --force` would also delete the files of the container's root.
TEST_F(RuncTest, WhatAKilledRestoreHasLeftIsRemovedByTheNextAndItsRootStays) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  const auto runtime = this->runtime();
  const DumpSpec dump = spec(*runtime, "web");
  ASSERT_TRUE(runtime->dump(dump, {}).ok());
  const std::string left = runc_.path() + "/web/criu-root";
  fs::create_directories(left);
  ASSERT_EQ(mount((bundle + "/rootfs").c_str(), left.c_str(), nullptr, MS_BIND, nullptr), 0);
  const Result<pid_t> client =
      spawn({.file = "perl", .words = {"kymo", "-e", "sleep", "restore", "web"}});
  ASSERT_TRUE(client.ok());
  const Result<RestoreOutcome> restored = runtime->restore(restore_of(dump, bundle), {});
  kill(*client, SIGKILL);
  EXPECT_EQ(waitpid(*client, nullptr, 0), *client);
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
  EXPECT_TRUE(fs::exists(bundle + "/rootfs/bin/busybox"));
}

TEST_F(RuncTest, RefusesWhatItCannotDoBeforeItStarts) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  const auto runtime = this->runtime();
  DumpSpec dump = spec(*runtime, "web", true);
  dump.options.external = {"mnt[/data]:data"};
  Result<DumpOutcome> dumped = runtime->dump(dump, {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_NE(dumped.error().message.find("--external is for processes"), std::string::npos);
  dump.options = {};
  dump.options.log_level = 2;
  dumped = runtime->dump(dump, {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_NE(dumped.error().message.find("--log-level is for processes"), std::string::npos);
  dump.options = {};
  ASSERT_TRUE(runtime->dump(dump, {}).ok());

  RestoreSpec restore = restore_of(dump, bundle);
  Result<RestoreOutcome> restored = runtime->restore(restore, {});
  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().code, Code::already_exists);
  restore.container = "web-2";
  restore.bundle = runc_.folder().folder("no-bundle");
  restored = runtime->restore(restore, {});
  ASSERT_FALSE(restored.ok());
  EXPECT_NE(restored.error().message.find("it has no config.json"), std::string::npos);
}

TEST_F(RuncTest, ARuntimeThatIsMissingIsNamed) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  RuncRuntimeOptions options;
  options.root = runc_.path();
  options.program = "no-such-runc";
  options.timeout = timeout_;
  const auto runtime = make_runc_runtime(options);
  const Result<DumpOutcome> dumped = runtime->dump(spec(*runtime, "web"), {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_EQ(dumped.error().code, Code::not_found);
  EXPECT_NE(dumped.error().message.find("no such program on PATH"), std::string::npos);
  EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
}

TEST_F(RuncTest, IsRunAndAFailedRunLeavesNothing) {
  KYMO_NEEDS_RUNC();
  const auto runtime = this->runtime();
  RunSpec run;
  run.container = "web";
  run.bundle = test::make_bundle(runc_.folder(), "bundle", test::counting_command());
  run.work_dir = runc_.folder().folder("run");
  const Result<ProcessId> process = runtime->run(run);
  ASSERT_TRUE(process.ok()) << process.error().message;
  EXPECT_TRUE(test::counts_on(run.bundle + "/rootfs"));
  const Result<ProcessId> again = runtime->run(run);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Code::already_exists);
  EXPECT_EQ(runc_.status("web"), "running");
  run.container = "bad";
  run.bundle = test::make_bundle(runc_.folder(), "bad-bundle", {"/no/such/program"});
  const Result<ProcessId> bad = runtime->run(run);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find("/no/such/program"), std::string::npos) << bad.error().message;
  EXPECT_FALSE(fs::exists(runc_.path() + "/bad"));
}

TEST_F(RuncTest, IsFrozenAndGoesOn) {
  KYMO_NEEDS_RUNC();
  const std::string bundle = runc_.start("web");
  const auto runtime = this->runtime();
  const FreezeSpec spec{runtime->find("web")->process, "web"};
  const Result<std::string> frozen = runtime->freeze(spec);
  ASSERT_TRUE(frozen.ok()) << frozen.error().message;
  EXPECT_NE(frozen->find("runc pause"), std::string::npos) << *frozen;
  EXPECT_EQ(runc_.status("web"), "paused");
  EXPECT_TRUE(runtime->find("web")->frozen);
  EXPECT_EQ(runtime->freeze(spec).error().code, Code::failed_precondition);
  ASSERT_TRUE(runtime->unfreeze(spec).ok());
  EXPECT_EQ(runtime->unfreeze(spec).error().code, Code::failed_precondition);
  EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
}

class PodmanTest : public testing::Test {
 protected:
  static std::unique_ptr<Runtime> runtime(const std::string& criu_folder = {}) {
    PodmanRuntimeOptions options;
    options.flags = {"--cgroup-manager=cgroupfs", "--runtime", "runc"};
    options.criu_folder =
        criu_folder.empty() ? fs::path(test::criu_path()).parent_path().string() : criu_folder;
    options.timeout = seconds(60);
    return make_podman_runtime(options);
  }

  test::PodmanContainers podman_;
  test::TemporaryDirectory folder_;
};

TEST_F(PodmanTest, NamesWhatItCannotFind) {
  KYMO_NEEDS_PODMAN();
  const auto runtime = PodmanTest::runtime();
  Result<Container> found = runtime->find("kymo-nobody");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::not_found) << found.error().message;
  for (const char* name : {"", "--all", "a/b"}) {
    EXPECT_EQ(runtime->find(name).error().code, Code::invalid_argument) << name;
  }
  podman_.start("kymo-rt");
  static_cast<void>(podman_.podman("kill kymo-rt"));
  EXPECT_TRUE(test::eventually([&] { return podman_.status("kymo-rt") == "exited"; }));
  found = runtime->find("kymo-rt");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::failed_precondition) << found.error().message;
}

TEST_F(PodmanTest, AFailedDumpLeavesItRunningAndPodmansFolderAsItWas) {
  KYMO_NEEDS_PODMAN();
  const std::string root = podman_.start("kymo-rt");
  const std::string criu = folder_with(folder_, "sleep 0.1; exit 3");
  const auto runtime = PodmanTest::runtime(criu);
  const Result<Container> found = runtime->find("kymo-rt");
  ASSERT_TRUE(found.ok()) << found.error().message;
  const DumpSpec dump{found->process, folder_.folder("images"), folder_.folder("work"), false,
                      found->id};
  const Result<DumpOutcome> dumped = runtime->dump(dump, {});
  ASSERT_FALSE(dumped.ok());
  EXPECT_NE(dumped.error().message.find("podman could not dump container"), std::string::npos)
      << dumped.error().message;
  EXPECT_EQ(podman_.status("kymo-rt"), "running");
  EXPECT_TRUE(test::counts_on(root));
  const std::string link =
      "/var/lib/containers/storage/overlay-containers/" + found->id + "/userdata/checkpoint";
  EXPECT_FALSE(fs::is_symlink(link));
}

// Dumps of a container. Each is ended at another step.
class PodmanCutShortTest : public PodmanTest {
 protected:
  void begin() {
    root_ = podman_.start("kymo-rt");
    const Result<Container> found = runtime_->find("kymo-rt");
    ASSERT_TRUE(found.ok()) << found.error().message;
    container_ = *found;
  }
  // A dump into new folders after which the container must run on.
  [[nodiscard]] DumpSpec spec() {
    const std::string name = std::to_string(++dumps_);
    return {container_.process, folder_.folder(name + "-images"), folder_.folder(name + "-work"),
            true, container_.id};
  }
  // Checks what is left by a dump that was ended with this code.
  void expect_it_runs_on(const Result<DumpOutcome>& dumped, Code code) {
    ASSERT_FALSE(dumped.ok());
    EXPECT_EQ(dumped.error().code, code) << dumped.error().message;
    EXPECT_EQ(podman_.status("kymo-rt"), "running");
    ASSERT_TRUE(test::counts_on(root_));
    EXPECT_FALSE(test::has_criu_code(container_.process.pid));
  }

  const test::BreakableCriu criu_;
  std::unique_ptr<Runtime> runtime_ = PodmanTest::runtime(criu_.folder());
  Container container_;
  std::string root_;
  int dumps_ = 0;
};

TEST_F(PodmanCutShortTest, ADeadlineEndsItAndTheContainerRunsOn) {
  KYMO_NEEDS_PODMAN();
  ASSERT_NO_FATAL_FAILURE(begin());
  test::late_at(
      criu_, "Dumping pages (type",
      [&](std::uint64_t deadline_ns) {
        DumpSpec dump = spec();
        dump.deadline_ns = deadline_ns;
        return runtime_->dump(dump, {});
      },
      [&](const Result<DumpOutcome>& dumped) {
        expect_it_runs_on(dumped, Code::deadline_exceeded);
      });
}

TEST_F(PodmanCutShortTest, AtWhateverStepItIsCancelledTheContainerRunsOn) {
  KYMO_NEEDS_PODMAN();
  ASSERT_NO_FATAL_FAILURE(begin());
  for (const char* const step : test::kDumpSteps) {
    SCOPED_TRACE(test::name_of_step(step));
    const Result<DumpOutcome> dumped =
        test::cancelled_at(criu_, step, [&](const Cancellation* cancel) {
          DumpSpec dump = spec();
          dump.cancel = cancel;
          return runtime_->dump(dump, {});
        });
    ASSERT_NO_FATAL_FAILURE(expect_it_runs_on(dumped, Code::cancelled));
  }
}

TEST_F(PodmanTest, AtWhateverStepARestoreIsCancelledItCanBeRestoredAgain) {
  KYMO_NEEDS_PODMAN();
  const std::string root = podman_.start("kymo-rt");
  const test::BreakableCriu criu;
  const auto runtime = PodmanTest::runtime(criu.folder());
  const Result<Container> found = runtime->find("kymo-rt");
  ASSERT_TRUE(found.ok()) << found.error().message;
  const DumpSpec dump{found->process, folder_.folder("images"), folder_.folder("work"), false,
                      found->id};
  ASSERT_TRUE(runtime->dump(dump, {}).ok());
  const RestoreSpec restore{dump.images_dir, dump.work_dir, found->id};
  ASSERT_NO_FATAL_FAILURE(test::cancel_at_each(
      criu, test::kRestoreSteps, [&] { return restore; },
      [&](const RestoreSpec& one) { return runtime->restore(one, {}); },
      [&](const RestoreSpec&, const Error&) {
        ASSERT_NE(podman_.status("kymo-rt"), "running");
        ASSERT_TRUE(has_images(dump.images_dir));
        ASSERT_EQ(left_of_criu("/" + found->id + "/userdata"), "");
      }));
  const Result<RestoreOutcome> restored = runtime->restore(restore, {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ(podman_.status("kymo-rt"), "running");
  EXPECT_TRUE(test::counts_on(root));
}

TEST_F(PodmanTest, IsRunFrozenAndGoesOn) {
  KYMO_NEEDS_PODMAN();
  const auto runtime = PodmanTest::runtime();
  RunSpec run;
  run.container = "kymo-rt";
  run.command = podman_.arguments("kymo-rt");
  run.work_dir = folder_.folder("run");
  const Result<ProcessId> process = runtime->run(run);
  ASSERT_TRUE(process.ok()) << process.error().message;
  EXPECT_TRUE(test::counts_on(podman_.root_of("kymo-rt")));
  EXPECT_EQ(runtime->run(run).error().code, Code::already_exists);
  EXPECT_EQ(podman_.status("kymo-rt"), "running")
      << "a name that is already used must not affect the other container";

  const Result<Container> found = runtime->find("kymo-rt");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->process.pid, process->pid);
  const FreezeSpec spec{found->process, found->id};
  ASSERT_TRUE(runtime->freeze(spec).ok());
  EXPECT_EQ(podman_.status("kymo-rt"), "paused");
  const DumpSpec dump{found->process, folder_.folder("images"), folder_.folder("work"), false,
                      found->id};
  EXPECT_EQ(runtime->dump(dump, {}).error().code, Code::failed_precondition);
  ASSERT_TRUE(runtime->unfreeze(spec).ok());
  EXPECT_TRUE(test::counts_on(podman_.root_of("kymo-rt")));
}

TEST_F(PodmanTest, RefusesWhatPodmanHasNoFlagFor) {
  KYMO_NEEDS_PODMAN();
  const auto runtime = PodmanTest::runtime();
  DumpSpec dump{{1, 0}, "/nowhere", "/nowhere", false, "kymo-rt"};
  dump.options.shell_job = true;
  EXPECT_NE(runtime->dump(dump, {}).error().message.find(
                "--shell-job is for processes: podman has no flag"),
            std::string::npos);
}

// Before the fix, podman refused it in the middle of the dump, and the error said nothing that helps.
TEST_F(PodmanTest, AContainerThatPodmanWouldRemoveIsRefusedBefore) {
  KYMO_NEEDS_PODMAN();
  std::string words;
  for (const std::string& word : podman_.arguments("kymo-gone")) words += " '" + word + "'";
  static_cast<void>(podman_.podman("run --rm -d --replace --name kymo-gone" + words));
  const auto runtime = PodmanTest::runtime();
  const Result<Container> found = runtime->find("kymo-gone");
  ASSERT_TRUE(found.ok()) << found.error().message;
  DumpSpec dump{found->process, "/nowhere", "/nowhere", false, found->id};
  const Result<void> refused = runtime->may_dump(dump);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("started with --rm"), std::string::npos)
      << refused.error().message;
  dump.leave_running = true;
  const Result<void> good = runtime->may_dump(dump);
  EXPECT_TRUE(good.ok()) << good.error().message;
}

}  // namespace
}  // namespace kymo::runtime
