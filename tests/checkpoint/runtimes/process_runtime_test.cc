#include "checkpoint/runtimes/process/process_runtime.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "base/file.h"
#include "base/proc/directory_bytes.h"
#include "base/proc/process.h"
#include "checkpoint/criu/images/image_set.h"
#include "checkpoint/criu/images/memory.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "churn.h"
#include "support/real_criu.h"
#include "support/stop_points.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

using std::chrono::milliseconds;
using test::eventually;

// The timeouts with which a dump or restore is tried. If it has not reached the tested step within one, the next one is
// used.
constexpr std::array kEverLonger{milliseconds(1000), milliseconds(5000), milliseconds(25000)};

// What an observer was told.
struct Told {
  std::vector<std::string> notifications;
  std::vector<std::uint64_t> totals;

  Observer observer() {
    return {.notified = [this](std::string_view name) { notifications.emplace_back(name); },
            .image_bytes = [this](std::uint64_t total) { totals.push_back(total); }};
  }
  [[nodiscard]] bool has(const std::string& name) const {
    return std::find(notifications.begin(), notifications.end(), name) != notifications.end();
  }
};

class ProcessRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    use_criu(test::criu_path(), milliseconds(0));
  }

  void use_criu(const std::string& path, milliseconds timeout) {
    ProcessRuntimeOptions options;
    options.criu.path = path;
    options.criu.timeout = timeout;
    options.criu.called = [this](const criu::Call& call) { calls_.push_back(call); };
    options.exited = [this](const ProcessId& id, int status) {
      const std::lock_guard lock(mutex_);
      ended_[id.pid] = status;
    };
    if (runtime_) {
      // Still needed, because it reaps the processes that it has started.
      earlier_.push_back(std::move(runtime_));
    }
    runtime_ = make_process_runtime(std::move(options));
  }

  bool has_ended(pid_t pid) {
    const std::lock_guard lock(mutex_);
    return ended_.contains(pid);
  }

  DumpSpec dump_spec(const ProcessId& id, bool leave_running = false) {
    return {id, folder_.folder("images"), folder_.folder("work"), leave_running};
  }
  RestoreSpec restore_spec() { return {folder_.path() + "/images", folder_.folder("work")}; }

  // For the failure message of a test.
  std::string how_it_ended(pid_t pid) {
    const std::lock_guard lock(mutex_);
    return ended_.contains(pid) ? "it ended with wait status " + std::to_string(ended_[pid])
                                : std::string("it lives and does not count");
  }
  [[nodiscard]] std::string work_dir() const { return folder_.path() + "/work"; }
  std::string log_end() const {
    const Result<std::string> log = read_file(work_dir() + "/dump.log");
    return log ? log->substr(log->size() - std::min<std::size_t>(log->size(), 1500)) : "(none)";
  }

  // Those of a dump that failed are left to its caller.
  void remove_images() {
    for (const auto& image : std::filesystem::directory_iterator(folder_.path() + "/images")) {
      std::filesystem::remove_all(image.path());
    }
  }

  test::TemporaryDirectory folder_;
  std::mutex mutex_;
  std::map<pid_t, int> ended_;  // guarded by mutex_
  std::vector<criu::Call> calls_;
  std::vector<std::unique_ptr<Runtime>> earlier_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(ProcessRuntimeTest, DumpsAndRestoresAProcessThatGoesOnCounting) {
  Churn churn(*runtime_, folder_, 32);
  Told dumped;
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), dumped.observer());
  ASSERT_TRUE(dump.ok()) << dump.error().message;
  EXPECT_TRUE(has_ended(churn.id().pid)) << "a zombie would keep the pid, which the restore needs";
  EXPECT_TRUE(dump->warnings.empty()) << dump->warnings.front();
  ASSERT_TRUE(dump->stats.has_value());
  EXPECT_GE(dump->stats->pages_written, 32U * 256U);
  EXPECT_GT(dump->stats->frozen_time_us, 0U);
  EXPECT_GT(dump->criu_time_ns, std::uint64_t{dump->stats->frozen_time_us} * 1000);
  EXPECT_TRUE(dumped.has("pre-dump"));
  EXPECT_TRUE(dumped.has("post-dump"));
  const Result<std::uint64_t> bytes = probe::directory_bytes(folder_.path() + "/images");
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(dump->image_bytes, *bytes);
  EXPECT_EQ(dumped.totals.back(), *bytes);
  EXPECT_GE(*bytes, 32U << 20U);

  const long before = churn.count();
  Told restored;
  const Result<RestoreOutcome> restore = runtime_->restore(restore_spec(), restored.observer());
  ASSERT_TRUE(restore.ok()) << restore.error().message;
  const pid_t pid = churn.id().pid;
  churn.replace(restore->process);
  EXPECT_EQ(restore->process.pid, pid);
  EXPECT_TRUE(restore->warnings.empty()) << restore->warnings.front();
  ASSERT_TRUE(restore->stats.has_value());
  EXPECT_GT(restore->stats->restore_time_us, 0U);
  EXPECT_TRUE(restored.has("pre-restore"));
  EXPECT_TRUE(restored.has("post-restore"));
  EXPECT_TRUE(restored.has("pre-resume"));
  EXPECT_TRUE(restored.has("post-resume"));
  EXPECT_EQ(probe::read_process(pid)->parent, getpid());
  EXPECT_TRUE(eventually([&] { return churn.count() > before; }));
  EXPECT_EQ(churn.errors(), "");

  {
    const std::lock_guard lock(mutex_);
    ended_.clear();
  }
  kill(pid, SIGTERM);
  EXPECT_TRUE(eventually([&] { return has_ended(pid); }));
  EXPECT_FALSE(probe::read_process(pid).ok()) << "the process must have been reaped";

  ASSERT_EQ(calls_.size(), 2U);
  EXPECT_EQ(calls_[0].kind, criu::CallKind::dump);
  EXPECT_TRUE(calls_[0].ok);
  EXPECT_EQ(calls_[0].duration_ns, dump->criu_time_ns);
  EXPECT_EQ(calls_[1].kind, criu::CallKind::restore);
  EXPECT_TRUE(calls_[1].ok);
}

TEST_F(ProcessRuntimeTest, EveryPageThatCriuWroteIsFoundWithItsMapping) {
  const Churn churn(*runtime_, folder_, 32);
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id(), true), {});
  ASSERT_TRUE(dump.ok()) << dump.error().message;
  const auto images = criu::ImageSet::open(folder_.path() + "/images");
  ASSERT_TRUE(images.ok()) << images.error().message;
  EXPECT_TRUE(images->has("stats-dump"))
      << "the statistics must be found in the work folder next to the images";
  const criu::CheckpointPages pages = criu::read_pages(*images);
  EXPECT_TRUE(pages.notes.empty()) << pages.notes.front();
  EXPECT_EQ(pages.pages.present,
            dump->stats->pages_written + dump->stats->shpages_written.value_or(0));
  ASSERT_EQ(pages.processes.size(), 1U);
  const criu::ProcessPages& process = pages.processes.front();
  EXPECT_EQ(process.pid, churn.id().pid);
  EXPECT_EQ(process.command, "kymo-churn");
  std::uint64_t sum = 0;
  bool named = false;
  for (const criu::MappingPages& mapping : process.mappings) {
    sum += mapping.pages.present;
    named = named || mapping.name.find("/kymo-churn") != std::string::npos;
    EXPECT_NE(mapping.name, "[unmapped]");
  }
  EXPECT_EQ(sum, process.pages.present);
  EXPECT_TRUE(named) << "the mapping of the program must have the name of its file";
  EXPECT_GE(process.mappings.front().pages.present, 32U * 256U)
      << "the mapping with the 32 MiB must come first";
}

TEST_F(ProcessRuntimeTest, LeavesAProcessRunningWhereAsked) {
  Churn churn(*runtime_, folder_, 8);
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id(), true), {});
  ASSERT_TRUE(dump.ok()) << dump.error().message;
  EXPECT_TRUE(churn.goes_on());
  const Result<RestoreOutcome> restore = runtime_->restore(restore_spec(), {});
  ASSERT_FALSE(restore.ok());
  EXPECT_NE(
      restore.error().message.find("its pid " + std::to_string(churn.id().pid) + " is in use"),
      std::string::npos)
      << restore.error().message;
  EXPECT_TRUE(churn.goes_on());
}

TEST_F(ProcessRuntimeTest, DumpsAJobThatIsNoChildOfItsOwn) {
  Churn churn(*runtime_, folder_, 8);
  // A new runtime that did not start the process, as after a restart of the daemon.
  runtime_.reset();
  use_criu(test::criu_path(), milliseconds(0));
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), {});
  ASSERT_TRUE(dump.ok()) << dump.error().message;
  const Result<RestoreOutcome> early = runtime_->restore(restore_spec(), {});
  ASSERT_FALSE(early.ok());
  EXPECT_NE(early.error().message.find("held by a zombie"), std::string::npos)
      << early.error().message;
  ASSERT_EQ(waitpid(churn.id().pid, nullptr, 0), churn.id().pid);
  const Result<RestoreOutcome> restore = runtime_->restore(restore_spec(), {});
  ASSERT_TRUE(restore.ok()) << restore.error().message;
  churn.replace(restore->process);
  EXPECT_TRUE(churn.goes_on());
}

TEST_F(ProcessRuntimeTest, ARestoreWaitsForAParentThatTakesItsTimeToReap) {
  Churn churn(*runtime_, folder_, 8);
  runtime_.reset();
  use_criu(test::criu_path(), milliseconds(0));
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), {});
  ASSERT_TRUE(dump.ok()) << dump.error().message;
  // The parent reaps the process after the restore has begun.
  std::thread parent([&] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    EXPECT_EQ(waitpid(churn.id().pid, nullptr, 0), churn.id().pid);
  });
  const Result<RestoreOutcome> restore = runtime_->restore(restore_spec(), {});
  parent.join();
  ASSERT_TRUE(restore.ok()) << restore.error().message;
  churn.replace(restore->process);
  EXPECT_TRUE(churn.goes_on());
}

TEST_F(ProcessRuntimeTest, OfTwoRestoresOfCopiesAtOnceOneSucceedsAndItsProcessRunsOn) {
  Churn churn(*runtime_, folder_, 4);
  for (int round = 0; round < 4; ++round) {
    const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), {});
    ASSERT_TRUE(dump.ok()) << dump.error().message;
    const std::string copy = folder_.path() + "/copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(folder_.path() + "/images", copy);
    const std::array<RestoreSpec, 2> specs{restore_spec(),
                                           RestoreSpec{copy, folder_.folder("other-work")}};
    std::array<std::optional<Result<RestoreOutcome>>, 2> restored;
    std::vector<std::thread> both;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      both.emplace_back([&, i] { restored[i] = runtime_->restore(specs[i], {}); });
    }
    for (std::thread& one : both) one.join();
    ASSERT_NE(restored[0]->ok(), restored[1]->ok());
    churn.replace((restored[0]->ok() ? *restored[0] : *restored[1])->process);
    EXPECT_TRUE(churn.goes_on());
    std::filesystem::remove_all(folder_.path() + "/images");
  }
}

TEST_F(ProcessRuntimeTest, AFullDiskFailsTheDumpAndNotTheProcess) {
  Churn churn(*runtime_, folder_, 32);
  const std::string images = folder_.folder("images");
  ASSERT_EQ(mount("none", images.c_str(), "tmpfs", 0, "size=8m"), 0);
  Told told;
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), told.observer());
  EXPECT_EQ(umount(images.c_str()), 0);
  ASSERT_FALSE(dump.ok());
  EXPECT_NE(dump.error().message.find("the process runs on"), std::string::npos)
      << dump.error().message;
  EXPECT_EQ(dump.error().code, Code::resource_exhausted) << dump.error().message;
  EXPECT_EQ(dump.error().message.find('\n'), std::string::npos);
  EXPECT_TRUE(churn.goes_on());
  EXPECT_FALSE(calls_.back().ok);
}

TEST_F(ProcessRuntimeTest, AHungCriuIsKilledAndTheProcessRunsOn) {
  Churn churn(*runtime_, folder_, 8);
  use_criu(folder_.file("hung", "#!/bin/sh\nsleep 300\n", 0755), milliseconds(200));
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), {});
  ASSERT_FALSE(dump.ok());
  EXPECT_EQ(dump.error().code, Code::deadline_exceeded) << dump.error().message;
  EXPECT_NE(dump.error().message.find("within 200 ms"), std::string::npos) << dump.error().message;
  EXPECT_TRUE(churn.goes_on());
}

// When the timeout is over, the process is frozen and CRIU waits for the answer of the test. On a slow machine, CRIU may
// not have reached this step. The dump is then tried again with a longer timeout.
TEST_F(ProcessRuntimeTest, ADumpCutShortWhileTheProcessIsFrozenLeavesItRunning) {
  Churn churn(*runtime_, folder_, 64);
  bool was_frozen = false;
  for (const milliseconds timeout : kEverLonger) {
    use_criu(test::criu_path(), timeout);
    Observer stuck;
    stuck.notified = [&](std::string_view name) {
      if (name == "post-dump") {
        was_frozen = !probe::stopped_threads(churn.id().pid).empty();
        std::this_thread::sleep_for(timeout);  // hangs until the timeout is over
      }
    };
    const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), stuck);
    ASSERT_FALSE(dump.ok());
    EXPECT_EQ(dump.error().code, Code::deadline_exceeded) << dump.error().message;
    EXPECT_NE(dump.error().message.find("the process runs on"), std::string::npos)
        << dump.error().message;
    EXPECT_TRUE(probe::stopped_threads(churn.id().pid).empty());
    EXPECT_EQ(probe::read_process(churn.id().pid)->tracer, 0);
    remove_images();
    EXPECT_TRUE(churn.goes_on());
    if (was_frozen) break;
  }
  EXPECT_TRUE(was_frozen) << "no dump reached this step within " << kEverLonger.back().count()
                          << " ms";
}

TEST_F(ProcessRuntimeTest, CriuKilledInAnyStepLeavesTheProcessRunning) {
  const Churn churn(*runtime_, folder_, 32);
  const test::BreakableCriu criu;
  use_criu(criu.path(), milliseconds(0));
  for (const char* const step : std::span(test::kDumpSteps).subspan(1)) {
    SCOPED_TRACE(step);
    criu.break_at(step, SIGKILL);
    const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id(), true), {});
    ASSERT_FALSE(dump.ok());
    EXPECT_NE(dump.error().message.find("was ended by signal 9 (SIGKILL)"), std::string::npos)
        << dump.error().message;
    EXPECT_TRUE(probe::stopped_threads(churn.id().pid).empty());
    remove_images();
    ASSERT_TRUE(churn.goes_on()) << churn.errors() << how_it_ended(churn.id().pid)
                                 << "\nCRIU's log: " << log_end();
    EXPECT_FALSE(test::has_criu_code(churn.id().pid));
  }
}

TEST_F(ProcessRuntimeTest, ImagesAreKeptWhenCriuDiesAfterItHasEndedTheProcess) {
  Churn churn(*runtime_, folder_, 8);
  const std::string pid = std::to_string(churn.id().pid);
  const std::string inventory = folder_.folder("images") + "/inventory.img";
  use_criu(
      folder_.file("late",
                   "#!/bin/sh\necho whole > '" + inventory + "'\nkill -KILL " + pid +
                       "\nwhile kill -0 " + pid + " 2>/dev/null; do sleep 0.01; done\nexit 1\n",
                   0755),
      milliseconds(0));
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), {});
  ASSERT_TRUE(dump.ok()) << dump.error().message;
  EXPECT_TRUE(std::filesystem::exists(inventory));
  EXPECT_FALSE(dump->stats.has_value());
  EXPECT_TRUE(dump->failure && dump->failure->ended);
}

TEST_F(ProcessRuntimeTest, ACrashedCriuIsNamedWithItsSignal) {
  Churn churn(*runtime_, folder_, 8);
  use_criu(folder_.file("crashing", "#!/bin/sh\nkill -SEGV $$\n", 0755), milliseconds(0));
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), {});
  ASSERT_FALSE(dump.ok());
  EXPECT_NE(dump.error().message.find("was ended by signal 11 (SIGSEGV)"), std::string::npos)
      << dump.error().message;
  EXPECT_TRUE(churn.goes_on());
}

TEST_F(ProcessRuntimeTest, AMissingCriuIsNamed) {
  Churn churn(*runtime_, folder_, 8);
  use_criu(folder_.path() + "/no-such-criu", milliseconds(0));
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), {});
  ASSERT_FALSE(dump.ok());
  EXPECT_EQ(dump.error().code, Code::not_found);
  EXPECT_NE(dump.error().message.find("no-such-criu"), std::string::npos) << dump.error().message;
  EXPECT_TRUE(churn.goes_on());
  ASSERT_FALSE(calls_.empty());
  EXPECT_FALSE(calls_.back().ok);
}

TEST_F(ProcessRuntimeTest, AProcessStoppedBeforeAFailedDumpStaysStopped) {
  Churn churn(*runtime_, folder_, 8);
  ASSERT_EQ(kill(churn.id().pid, SIGSTOP), 0);
  ASSERT_TRUE(eventually([&] { return probe::read_process(churn.id().pid)->state == 'T'; }));
  use_criu("/bin/false", milliseconds(0));
  const Result<DumpOutcome> dump = runtime_->dump(dump_spec(churn.id()), {});
  ASSERT_FALSE(dump.ok());
  EXPECT_EQ(probe::read_process(churn.id().pid)->state, 'T');
}

TEST_F(ProcessRuntimeTest, AFailedRestoreLeavesNothingBehindAndCanBeRepeated) {
  Churn churn(*runtime_, folder_, 8);
  ASSERT_TRUE(runtime_->dump(dump_spec(churn.id()), {}).ok());
  const std::string out = folder_.path() + "/churn.out";
  std::filesystem::rename(out, out + ".away");
  const Result<RestoreOutcome> failed = runtime_->restore(restore_spec(), {});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("churn.out"), std::string::npos) << failed.error().message;
  EXPECT_FALSE(probe::read_process(churn.id().pid).ok());
  std::filesystem::rename(out + ".away", out);
  const Result<RestoreOutcome> restore = runtime_->restore(restore_spec(), {});
  ASSERT_TRUE(restore.ok()) << restore.error().message;
  churn.replace(restore->process);
  EXPECT_TRUE(churn.goes_on());
}

TEST_F(ProcessRuntimeTest, InWhateverStepADumpIsCancelledTheProcessRunsOn) {
  const Churn churn(*runtime_, folder_, 32);
  const test::BreakableCriu criu;
  use_criu(criu.path(), milliseconds(0));
  ASSERT_NO_FATAL_FAILURE(test::cancel_at_each(
      criu, test::kDumpSteps, [&] { return dump_spec(churn.id(), true); },
      [&](const DumpSpec& dump) { return runtime_->dump(dump, {}); },
      [&](const DumpSpec&, const Error& error) {
        EXPECT_NE(error.message.find("the request was cancelled; the process runs on"),
                  std::string::npos)
            << error.message;
        remove_images();
        ASSERT_TRUE(churn.goes_on()) << how_it_ended(churn.id().pid);
        EXPECT_FALSE(test::has_criu_code(churn.id().pid));
      }));
  EXPECT_TRUE(runtime_->dump(dump_spec(churn.id(), true), {}).ok());
}

TEST_F(ProcessRuntimeTest, InWhateverStepARestoreIsCancelledNothingOfItIsLeft) {
  Churn churn(*runtime_, folder_, 32);
  const pid_t pid = churn.id().pid;
  ASSERT_TRUE(runtime_->dump(dump_spec(churn.id()), {}).ok());
  const Result<std::uint64_t> bytes = probe::directory_bytes(folder_.path() + "/images");
  const test::BreakableCriu criu;
  use_criu(criu.path(), milliseconds(0));
  std::vector<const char*> steps(std::begin(test::kRestoreSteps), std::end(test::kRestoreSteps));
  // Two more steps, which the tests of containers leave out. At the first one, the runtime of a container already has its
  // answer. At the second one, CRIU has not started.
  steps.insert(steps.end(), {"Running post-resume scripts", nullptr});
  ASSERT_NO_FATAL_FAILURE(test::cancel_at_each(
      criu, steps, [&] { return restore_spec(); },
      [&](const RestoreSpec& restore) { return runtime_->restore(restore, {}); },
      [&](const RestoreSpec&, const Error&) {
        ASSERT_FALSE(probe::read_process(pid).ok()) << "a process of the restore is left";
        EXPECT_EQ(*probe::directory_bytes(folder_.path() + "/images"), *bytes);
      }));
  const Result<RestoreOutcome> restored = runtime_->restore(restore_spec(), {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  churn.replace(restored->process);
  EXPECT_TRUE(churn.goes_on());
}

// An older checkpoint of a process was being restored, with the same pid, while the outcome of its newest dump was not
// known. kymod then took the connections of the restore out of repair mode.
TEST_F(ProcessRuntimeTest, WhatADumpLeftIsRepairedInNoOtherProcessWithItsPid) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (::setsockopt(socket.get(), IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) != 0) {
    GTEST_SKIP() << "no right to administer the network";
  }
  const auto is_repaired = [&] {
    int repairing = 0;
    socklen_t size = sizeof repairing;
    EXPECT_EQ(::getsockopt(socket.get(), IPPROTO_TCP, TCP_REPAIR, &repairing, &size), 0);
    return repairing == 0;
  };
  DumpSpec spec;
  spec.process = {::getpid(), probe::read_process(::getpid())->start_ticks + 1};
  EXPECT_TRUE(runtime_->settle_dump(spec).ok());
  EXPECT_FALSE(is_repaired());
  --spec.process.start_ticks;
  EXPECT_TRUE(runtime_->settle_dump(spec).ok());
  EXPECT_TRUE(is_repaired());
}

TEST_F(ProcessRuntimeTest, ARestoreCutShortLeavesNoProcess) {
  Churn churn(*runtime_, folder_, 32);
  const ProcessId id = churn.id();
  ASSERT_TRUE(runtime_->dump(dump_spec(id), {}).ok());
  bool was_restored = false;
  for (const milliseconds timeout : kEverLonger) {
    use_criu(test::criu_path(), timeout);
    Observer stuck;
    stuck.notified = [&](std::string_view name) {
      if (name == "post-restore") {
        was_restored = probe::read_process(id.pid).ok();
        std::this_thread::sleep_for(timeout);  // hangs until the timeout is over
      }
    };
    const Result<RestoreOutcome> restore = runtime_->restore(restore_spec(), stuck);
    ASSERT_FALSE(restore.ok());
    EXPECT_EQ(restore.error().code, Code::deadline_exceeded) << restore.error().message;
    EXPECT_FALSE(probe::read_process(id.pid).ok()) << "a process of the restore is left";
    if (was_restored) break;
  }
  EXPECT_TRUE(was_restored) << "no restore reached this step within " << kEverLonger.back().count()
                            << " ms";
}

}  // namespace
}  // namespace kymo::runtime
