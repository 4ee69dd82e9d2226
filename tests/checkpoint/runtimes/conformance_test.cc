// What each container runtime promises by the interface Runtime, tried with the real ones.

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "checkpoint/runtimes/shared/freezer.h"
#include "engines.h"
#include "support/containers.h"
#include "support/stop_points.h"
#include "support/unix_proxy.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

constexpr char kName[] = "kymo-rt";

class ConformanceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_engine(GetParam()); !why.empty()) GTEST_SKIP() << why;
    engine_ = make_engine(GetParam(), criu_);
  }
  [[nodiscard]] Runtime& runtime() const { return engine_->runtime(); }
  [[nodiscard]] std::string status() const { return engine_->status(kName); }
  [[nodiscard]] std::optional<ProcessId> process_of(const std::string& id) const {
    const Result<std::optional<ProcessId>> told = runtime().process_of(id);
    return told ? *told : std::nullopt;
  }
  RunSpec run_spec(const std::vector<std::string>& further = {}) {
    RunSpec spec = engine_->run_spec(kName, further);
    spec.container = kName;
    spec.work_dir = folder_.path();
    return spec;
  }
  // Runs a container whose program counts.
  ProcessId start(const std::vector<std::string>& further = {}) {
    const RunSpec spec = run_spec(further);
    bundle_ = spec.bundle;
    const Result<ProcessId> process = runtime().run(spec);
    EXPECT_TRUE(process.ok()) << (process ? "" : process.error().message);
    EXPECT_TRUE(process && counts_on(*process));
    return process ? *process : ProcessId{};
  }
  static bool counts_on(const ProcessId& process) {
    return test::counts_on("/proc/" + std::to_string(process.pid) + "/root");
  }
  DumpSpec spec(bool leave_running = false) {
    const Result<Container> found = runtime().find(kName);
    EXPECT_TRUE(found.ok()) << (found ? "" : found.error().message);
    if (!found) return {};
    const std::string number = std::to_string(++dumps_);
    DumpSpec spec{found->process, folder_.folder(number + "-images"),
                  folder_.folder(number + "-work"), leave_running, found->id};
    spec.frozen = found->frozen;
    return spec;
  }
  [[nodiscard]] RestoreSpec restore_of(const DumpSpec& dump) const {
    return {dump.images_dir, dump.work_dir, dump.container, bundle_};
  }
  void expect_restored(const DumpSpec& dump) {
    const Result<RestoreOutcome> restored = runtime().restore(restore_of(dump), {});
    ASSERT_TRUE(restored.ok()) << restored.error().message;
    EXPECT_EQ(status(), "running");
    EXPECT_TRUE(counts_on(restored->process));
  }
  void expect_it_runs_on(const Result<DumpOutcome>& dumped, Code code, const ProcessId& process) {
    ASSERT_FALSE(dumped.ok());
    EXPECT_EQ(dumped.error().code, code) << dumped.error().message;
    EXPECT_NE(dumped.error().message.find("the container runs on"), std::string::npos)
        << dumped.error().message;
    EXPECT_EQ(status(), "running");
    ASSERT_TRUE(counts_on(process)) << dumped.error().message;
    EXPECT_FALSE(test::has_criu_code(process.pid));
  }
  // kymod finds a CRIU that a server has started only after that has written to its log.
  [[nodiscard]] std::span<const char* const> dump_steps() const {
    return engine_->is_server() ? test::kLoggedDumpSteps : std::span(test::kDumpSteps);
  }
  [[nodiscard]] std::span<const char* const> restore_steps() const {
    return engine_->is_server() ? test::kLoggedRestoreSteps : std::span(test::kRestoreSteps);
  }

  const test::BreakableCriu criu_;
  test::TemporaryDirectory folder_;
  std::unique_ptr<Engine> engine_;
  std::string bundle_;
  int dumps_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Of, ConformanceTest, testing::ValuesIn(kEngines),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(ConformanceTest, IsFoundDumpedAndRestored) {
  const ProcessId process = start();
  EXPECT_EQ(runtime().find(kName)->process.pid, process.pid);
  EXPECT_FALSE(runtime().find(kName)->frozen);
  const DumpSpec dump = spec();
  ASSERT_TRUE(process_of(dump.container).has_value());
  EXPECT_EQ(process_of(dump.container)->pid, process.pid);
  std::vector<std::string> seen;
  Observer observer;
  observer.notified = [&](std::string_view name) { seen.emplace_back(name); };
  const Result<DumpOutcome> dumped = runtime().dump(dump, observer);
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  EXPECT_EQ(dumped->warnings, std::vector<std::string>{});
  EXPECT_EQ(dumped->stats.has_value(), engine_->keeps_statistics);
  EXPECT_GT(dumped->image_bytes, 0U);
  EXPECT_FALSE(seen.empty()) << "kymod found no phase in CRIU's log";
  EXPECT_TRUE(fs::exists(dump.images_dir + "/inventory.img"));
  EXPECT_NE(status(), "running");
  EXPECT_FALSE(process_of(dump.container).has_value());

  const Result<RestoreOutcome> restored = runtime().restore(restore_of(dump), {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ(restored->warnings, std::vector<std::string>{});
  EXPECT_EQ(restored->stats.has_value(), engine_->keeps_statistics);
  EXPECT_EQ(status(), "running");
  EXPECT_TRUE(counts_on(restored->process));
  const Result<RestoreOutcome> again = runtime().restore(restore_of(dump), {});
  ASSERT_FALSE(again.ok());
  EXPECT_TRUE(counts_on(restored->process)) << again.error().message;

  // The same images once more, and an older checkpoint than the last one.
  const DumpSpec newer = spec();
  ASSERT_TRUE(runtime().dump(newer, {}).ok());
  expect_restored(dump);
}

TEST_P(ConformanceTest, LeftRunningItGoesOn) {
  const ProcessId process = start();
  const Result<DumpOutcome> dumped = runtime().dump(spec(true), {});
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  EXPECT_EQ(status(), "running");
  EXPECT_TRUE(counts_on(process));
}

TEST_P(ConformanceTest, IsFrozenAndLetGo) {
  const ProcessId process = start();
  const FreezeSpec freeze{process, runtime().find(kName)->id};
  const Result<std::string> frozen = runtime().freeze(freeze);
  ASSERT_TRUE(frozen.ok()) << frozen.error().message;
  EXPECT_EQ(status(), "paused");
  EXPECT_TRUE(runtime().find(kName)->frozen);
  EXPECT_EQ(runtime().freeze(freeze).error().code, Code::failed_precondition);
  if (engine_->dumps_frozen) {
    const Result<DumpOutcome> dumped = runtime().dump(spec(true), {});
    ASSERT_TRUE(dumped.ok()) << dumped.error().message;
    EXPECT_EQ(status(), "paused");
    EXPECT_TRUE(is_frozen(process.pid));
  }
  // If kymod had to unfreeze it without its server, that still takes it for paused.
  if (engine_->is_server()) {
    ASSERT_TRUE(Freezer::of(process.pid)->set(false).ok());
  }
  const Result<std::string> let_go = runtime().unfreeze(freeze);
  ASSERT_TRUE(let_go.ok()) << let_go.error().message;
  EXPECT_EQ(status(), "running");
  EXPECT_EQ(runtime().unfreeze(freeze).error().code, Code::failed_precondition);
  EXPECT_TRUE(counts_on(process));
}

TEST_P(ConformanceTest, AFailedDumpLeavesItRunning) {
  const ProcessId process = start();
  criu_.let_do("exit 3");
  const Result<DumpOutcome> dumped = runtime().dump(spec(), {});
  EXPECT_NE(dumped.error().message.find(" could not dump container "), std::string::npos);
  expect_it_runs_on(dumped, Code::failed_precondition, process);
  criu_.mend();
  EXPECT_TRUE(runtime().dump(spec(true), {}).ok());
}

// The images are made and can be written nowhere.
TEST_P(ConformanceTest, AFullDiskLosesNoContainer) {
  const ProcessId process = start();
  DumpSpec dump = spec();
  dump.images_dir = folder_.folder("disk");
  ASSERT_EQ(mount("none", dump.images_dir.c_str(), "tmpfs", 0, "size=64k"), 0);
  const Result<DumpOutcome> dumped = runtime().dump(dump, {});
  EXPECT_EQ(umount2(dump.images_dir.c_str(), MNT_DETACH), 0);
  ASSERT_FALSE(dumped.ok());
  EXPECT_EQ(status(), "running") << dumped.error().message;
  EXPECT_TRUE(counts_on(process));
}

TEST_P(ConformanceTest, AFailedRestoreLeavesNothingAndCanBeRepeated) {
  start();
  const DumpSpec dump = spec();
  ASSERT_TRUE(runtime().dump(dump, {}).ok());
  const fs::path image = fs::path(dump.images_dir) / "pages-1.img";
  fs::rename(image, folder_.path() + "/aside");
  const Result<RestoreOutcome> failed = runtime().restore(restore_of(dump), {});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(status(), "running");
  fs::rename(folder_.path() + "/aside", image);
  expect_restored(dump);
}

TEST_P(ConformanceTest, AtWhateverStepItsDumpIsEndedTheContainerRunsOn) {
  const ProcessId process = start();
  ASSERT_NO_FATAL_FAILURE(test::cancel_at_each(
      criu_, dump_steps(), [&] { return spec(true); },
      [&](const DumpSpec& dump) { return runtime().dump(dump, {}); },
      [&](const DumpSpec&, const Error& error) {
        expect_it_runs_on(error, Code::cancelled, process);
      }));
  test::late_at(
      criu_, "Dumping pages (type",
      [&](std::uint64_t deadline_ns) {
        DumpSpec dump = spec(true);
        dump.deadline_ns = deadline_ns;
        return runtime().dump(dump, {});
      },
      [&](const Result<DumpOutcome>& dumped) {
        expect_it_runs_on(dumped, Code::deadline_exceeded, process);
      });
}

TEST_P(ConformanceTest, AtWhateverStepARestoreIsCancelledItCanBeRestoredAgain) {
  start();
  const DumpSpec dump = spec();
  ASSERT_TRUE(runtime().dump(dump, {}).ok());
  ASSERT_NO_FATAL_FAILURE(test::cancel_at_each(
      criu_, restore_steps(), [&] { return restore_of(dump); },
      [&](const RestoreSpec& restore) { return runtime().restore(restore, {}); },
      [&](const RestoreSpec&, const Error&) {
        ASSERT_NE(status(), "running");
        ASSERT_TRUE(fs::exists(dump.images_dir + "/inventory.img"));
        EXPECT_EQ(read_file("/proc/self/mountinfo")->find("/.criu."), std::string::npos)
            << "a mount of CRIU is left";
      }));
  expect_restored(dump);
}

TEST_P(ConformanceTest, WhatIsNotProvedRunsOn) {
  const ProcessId process = start();
  DumpSpec dump = spec();
  dump.prove = [&](const std::string& images, std::chrono::milliseconds) -> Result<void> {
    EXPECT_TRUE(fs::exists(images + "/inventory.img"));
    return Error{Code::failed_precondition, "not proved"};
  };
  const Result<DumpOutcome> dumped = runtime().dump(dump, {});
  expect_it_runs_on(dumped, Code::failed_precondition, process);
  EXPECT_NE(dumped.error().message.find("not proved"), std::string::npos);
  dump = spec();
  dump.prove = [](const std::string&, std::chrono::milliseconds) { return Result<void>(); };
  ASSERT_TRUE(runtime().dump(dump, {}).ok());
  expect_restored(dump);
}

TEST_P(ConformanceTest, WhatItCannotFindOrDoIsOneClearLine) {
  EXPECT_EQ(runtime().find("kymo-nobody").error().code, Code::not_found);
  for (const char* name : {"", "a/b/c", "a\nb/web"}) {
    EXPECT_EQ(runtime().find(name).error().code, Code::invalid_argument) << name;
    EXPECT_FALSE(process_of(name).has_value()) << name;
  }
  const ProcessId process = start();
  EXPECT_FALSE(runtime().run(run_spec()).ok());
  EXPECT_TRUE(counts_on(process)) << "a name that is taken must not harm the other container";
  DumpSpec dump = spec();
  dump.options.log_level = 2;
  const Result<void> refused = runtime().may_dump(dump);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::invalid_argument);
  EXPECT_NE(refused.error().message.find("--log-level is for processes"), std::string::npos)
      << refused.error().message;
  const std::string id = dump.container;
  engine_->kill(kName);
  EXPECT_TRUE(test::eventually([&] { return !process_of(id).has_value(); }));
  const Result<Container> ended = runtime().find(kName);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::failed_precondition) << ended.error().message;
}

TEST_P(ConformanceTest, OfAServerThatHangsItIsNotKnownWhetherItsContainerRuns) {
  if (!engine_->is_server()) return;
  start();
  const std::string id = runtime().find(kName)->id;
  engine_->stop_answering();
  EXPECT_EQ(runtime().process_of(id).error().code, Code::deadline_exceeded);
  engine_->answer_again();
}

// Somebody starts the container after kymod has seen that it does not run.
TEST_P(ConformanceTest, AContainerThatSomebodyElseStartsDuringARestoreRunsOn) {
  if (!engine_->is_server()) return;
  start();
  const DumpSpec dump = spec();
  ASSERT_TRUE(runtime().dump(dump, {}).ok());
  const std::string socket = folder_.path() + "/proxy.sock";
  const test::UnixProxy proxy(socket, engine_->socket(), engine_->restore_call(restore_of(dump)),
                              [&] { engine_->start_again(kName); });
  setenv(engine_->variable().c_str(), (engine_->scheme() + socket).c_str(), 1);
  engine_->make_runtime();
  const Result<RestoreOutcome> refused = runtime().restore(restore_of(dump), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::already_exists) << refused.error().message;
  EXPECT_EQ(status(), "running");
  const auto others = process_of(dump.container);
  ASSERT_TRUE(others.has_value());
  EXPECT_TRUE(counts_on(*others));
}

// Its end would lose what it has done since its images were made.
TEST_P(ConformanceTest, AContainerThatSomebodyElseLetsRunDuringItsDumpRunsOn) {
  if (!engine_->is_server()) return;
  const ProcessId process = start();
  DumpSpec dump = spec();
  dump.prove = [&](const std::string&, std::chrono::milliseconds) {
    engine_->unpause(kName);
    return Result<void>();
  };
  expect_it_runs_on(runtime().dump(dump, {}), Code::failed_precondition, process);
}

// A server's runtime would remove it when it ends.
TEST_P(ConformanceTest, AContainerThatItsRuntimeWouldRemoveIsRefused) {
  const std::string name = GetParam();
  if (name != "podman" && name != "docker") return;
  start({"--rm"});
  const Result<void> refused = runtime().may_dump(spec());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("--leave-running"), std::string::npos);
  EXPECT_TRUE(runtime().may_dump(spec(true)).ok());
}

}  // namespace
}  // namespace kymo::runtime
