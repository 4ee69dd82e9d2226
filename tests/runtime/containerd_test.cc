// containerd behind the interface, with a real one.

#include "support/containerd.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/clock.h"
#include "runtimes/containerd/containerd_runtime.h"
#include "runtimes/table.h"
#include "support/containers.h"
#include "support/real_criu.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class ContainerdTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CONTAINERD();
    server_.emplace(fs::path(test::criu_path()).parent_path().string());
    runtime_ = make_containerd_runtime({.timeout = seconds(60)});
  }
  // Starts a container that counts.
  ProcessId start(const std::string& id) {
    RunSpec spec;
    spec.container = id;
    spec.command = {test::Containerd::image()};
    for (const std::string& word : test::counting_command()) spec.command.push_back(word);
    const Result<ProcessId> process = runtime_->run(spec);
    EXPECT_TRUE(process.ok()) << (process ? "" : process.error().message);
    return process ? *process : ProcessId{};
  }
  static bool counts_on(const ProcessId& process) {
    return test::counts_on("/proc/" + std::to_string(process.pid) + "/root");
  }
  DumpSpec spec(const std::string& id, bool leave_running = false) {
    const Result<Container> found = runtime_->find(id);
    EXPECT_TRUE(found.ok()) << (found ? "" : found.error().message);
    const std::string name = std::to_string(++dumps_);
    return {found->process, folder_.folder(name + "-images"), folder_.folder(name + "-work"),
            leave_running, found->id};
  }

  test::TemporaryDirectory folder_;
  std::optional<test::Containerd> server_;
  std::unique_ptr<Runtime> runtime_;
  int dumps_ = 0;
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
  EXPECT_FALSE(seen.empty()) << "no phase was seen in CRIU's log";
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
  ASSERT_TRUE(runtime_->freeze(freeze).ok());
  EXPECT_EQ(server_->status("web"), "PAUSED");
  EXPECT_TRUE(runtime_->find("web")->frozen);
  EXPECT_EQ(runtime_->freeze(freeze).error().code, Code::failed_precondition);
  ASSERT_TRUE(runtime_->unfreeze(freeze).ok());
  EXPECT_TRUE(counts_on(process));
}

// kymod asks every second, and holds up `kymo ps` meanwhile.
TEST_F(ContainerdTest, AContainerdThatHangsHoldsNobodyUp) {
  start("web");
  server_->stop_answering();
  const std::uint64_t began_ns = monotonic_ns();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(runtime_->process_of("default/web").has_value());
  EXPECT_LT(monotonic_ns() - began_ns, 2'000'000'000U);
  server_->answer_again();
}

// As the tests of runc and podman do it.
TEST_F(ContainerdTest, AtWhateverInstantADeadlineEndsItTheContainerRunsOn) {
  const ProcessId process = start("web");
  bool done = false;
  for (int ms = 1; !done && ms < 3000 && !HasFailure(); ms += 30) {
    SCOPED_TRACE(std::to_string(ms) + " ms");
    DumpSpec cut = spec("web", true);
    cut.deadline_ns = monotonic_ns() + static_cast<std::uint64_t>(ms) * 1'000'000;
    const Result<DumpOutcome> dumped = runtime_->dump(cut, {});
    done = dumped.ok();
    SCOPED_TRACE(done ? std::string("done") : dumped.error().message);
    EXPECT_EQ(server_->status("web"), "RUNNING") << server_->log();
    EXPECT_TRUE(counts_on(process));
    EXPECT_FALSE(test::has_criu_code(process.pid));
  }
  EXPECT_TRUE(done);
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
  // gRPC ends the program that gives it metadata with a line end.
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
