// What is special about runc through the interface Runtime. The rest is in conformance_test.cc.

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/spawn.h"
#include "checkpoint/runtimes/runc/runc_runtime.h"
#include "support/containers.h"
#include "support/real_criu.h"

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

}  // namespace
}  // namespace kymo::runtime
