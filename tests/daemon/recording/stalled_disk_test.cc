// A real dump and restore whose images and recording are on a disk that stalls. CRIU itself waits
// for that disk. kymod must not wait for it while CRIU waits for kymod's answer. So the disk stalls
// until kymod has answered: a call that waited for the disk would never return.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/proc/process.h"
#include "checkpoint/runtimes/process/process_runtime.h"
#include "daemon/recording/recorder.h"
#include "daemon/request/running_request.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::daemon {
namespace {

struct StalledDiskTest : testing::Test {
  StalledDiskTest() {
    config.state_dir = folder.path();
    runtime::ProcessRuntimeOptions options;
    options.criu.path = test::criu_path();
    runtime = runtime::make_process_runtime(std::move(options));
  }
  ~StalledDiskTest() override {
    if (process.pid > 0 && probe::process_lives(process.pid, process.start_ticks)) {
      kill(process.pid, SIGKILL);
    }
  }
  // Starts the process that is dumped.
  void run() {
    process = runtime
                  ->run({{"sleep", "1000"},
                         {"PATH=/usr/bin:/bin"},
                         folder.path(),
                         folder.path() + "/out",
                         folder.path() + "/err"})
                  .value();
  }
  // Does what dump.cc and restore.cc do when CRIU waits for an answer. The disk stalls meanwhile.
  runtime::Observer observer(RequestRecording& recording, RunningRequest& running) {
    runtime::Observer observer;
    observer.notified = [&](std::string_view name) {
      while_it_stalls([&] {
        running.notified(name);
        recording.mark(name);
        running.progress().notified(name);
      });
      ++notifications;
    };
    observer.image_bytes = [&](std::uint64_t) {};
    return observer;
  }
  void while_it_stalls(const std::function<void()>& act) const {
    disk.be("stalls");
    act();
    disk.be("well");
  }
  // Begins the recording `name` on this disk.
  RequestRecording begin_recording(Recorder& recorder, const char* name, RunningRequest& running) {
    std::optional<RequestRecording> recording;
    while_it_stalls([&] {
      recording = recorder
                      .begin(disk.path() + name, monotonic_ns(), nlohmann::json::object(),
                             running.own_columns())
                      .value();
    });
    return *std::move(recording);
  }
  // Returns the metadata of a recording, and checks that it is complete.
  static nlohmann::json whole(const std::string& stem) {
    nlohmann::json metadata;
    EXPECT_TRUE(test::eventually(
        [&] {
          std::ifstream file(stem + ".meta.json");
          metadata = nlohmann::json::parse(file, nullptr, false);
          return metadata.is_object() && metadata["state"] == "ended";
        },
        std::chrono::seconds(60)))
        << stem;
    return metadata;
  }

  test::TemporaryDirectory folder;
  test::MoodyDisk disk{folder};
  Config config;
  std::unique_ptr<Metrics> metrics = Metrics::make().value();
  ProgressBoard board{metrics->progress()};
  std::unique_ptr<runtime::Runtime> runtime;
  runtime::ProcessId process;
  int notifications = 0;
};

TEST_F(StalledDiskTest, NoNotificationOfADumpOrRestoreWaitsForIt) {
  KYMO_NEEDS_CRIU();
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const auto recorder = Recorder::make(metrics->registry(), config).value();
  ASSERT_TRUE(recorder->start());
  run();
  const std::string images = disk.path() + "/images";
  std::filesystem::create_directory(images);
  // On another disk, because CRIU writes a thousand lines to its log.
  const std::string work = folder.folder("work");
  {
    RunningRequest running(board, *metrics, board.begin(v1::Progress::DUMP, "").value());
    RequestRecording recording = begin_recording(*recorder, "/dump.tsv", running);
    const auto dumped = runtime->dump({process, images, work, false}, observer(recording, running));
    ASSERT_TRUE(dumped.ok()) << dumped.error().message;
    while_it_stalls([&] {
      running.dump_ended(RequestResult::ok);
      running.ended({});
      recording.mark("request ended");
      EXPECT_TRUE(recording.end(nlohmann::json::object()));
    });
  }
  EXPECT_GE(notifications, 2);
  const int of_dump = notifications;
  {
    RunningRequest running(board, *metrics, board.begin(v1::Progress::RESTORE, "").value());
    RequestRecording recording = begin_recording(*recorder, "/restore.tsv", running);
    const auto restored = runtime->restore({images, work}, observer(recording, running));
    ASSERT_TRUE(restored.ok()) << restored.error().message;
    process = restored->process;
    while_it_stalls([&] { EXPECT_TRUE(recording.end(nlohmann::json::object())); });
  }
  EXPECT_GE(notifications - of_dump, 4);

  for (const char* name : {"/dump", "/restore"}) {
    const nlohmann::json metadata = whole(disk.path() + name);
    const nlohmann::json& stats = metadata["stats"];
    EXPECT_EQ(stats["missed_sink_error"], 0) << "the rows waited in memory";
    EXPECT_GT(stats["rows_written"], 0);
    EXPECT_GE(metadata["marks"].size(), 2U);
    std::ifstream rows(disk.path() + name + ".tsv");
    const auto lines = std::count(std::istreambuf_iterator<char>(rows), {}, '\n');
    EXPECT_EQ(stats["rows_written"], lines - 1);
  }
  EXPECT_TRUE(recorder->stop());
}

// Dumps a process to a disk that stalls at CRIU's first notification, when the process is already
// frozen.
struct StandingDiskTest : StalledDiskTest {
  // Starts the process. Returns false if the test cannot run here.
  bool begin() {
    EXPECT_TRUE(disk.mounted()) << "FUSE does not work here";
    run();
    spec = {process, disk.path() + "/images", disk.path() + "/work", false};
    std::filesystem::create_directory(spec.images_dir);
    std::filesystem::create_directory(spec.work_dir);
    return disk.mounted();
  }
  // Returns the error of a dump with a deadline of two seconds.
  Error dump_while(const std::function<void()>& stand_still) {
    spec.deadline_ns = monotonic_ns() + 2'000'000'000;
    runtime::Observer observer;
    observer.notified = [&](std::string_view) {
      if (notifications++ == 0) stand_still();
    };
    const auto dumped = runtime->dump(spec, observer);
    EXPECT_GE(notifications, 1);
    spec.deadline_ns = 0;
    if (!dumped) return dumped.error();
    if (!dumped->failure) return Error{Code::unknown, "it was dumped"};
    held = !dumped->failure->ended;
    return Error{dumped->failure->error.code, dumped->failure->why_unsure};
  }
  bool runs() const {
    return probe::process_lives(process.pid, process.start_ticks) &&
           probe::stopped_threads(process.pid).empty();
  }
  void expect_dumped_once_it_answers() {
    spec.images_dir = disk.path() + "/others";
    std::filesystem::create_directory(spec.images_dir);
    const auto dumped = runtime->dump(spec, {});
    EXPECT_TRUE(dumped.ok()) << dumped.error().message;
  }

  runtime::DumpSpec spec;
  bool held = false;  // the process was not seen running
};

// CRIU cannot stop while it waits for its disk.
TEST_F(StandingDiskTest, ADeadlineEndsTheDumpAndTheProcessRunsOn) {
  KYMO_NEEDS_CRIU();
  ASSERT_TRUE(begin());
  const Error error = dump_while([&] { disk.stop(); });
  EXPECT_EQ(error.code, Code::deadline_exceeded) << error.message;
  EXPECT_NE(error.message.find("the process runs on"), std::string::npos) << error.message;
  EXPECT_TRUE(runs());
  disk.go_on();
  expect_dumped_once_it_answers();
}

TEST_F(StandingDiskTest, ADeadlineEndsAStreamedDumpToo) {
  KYMO_NEEDS_CRIU();
  ASSERT_TRUE(begin());
  spec.stream = criu::Encoding{};
  const Error error = dump_while([&] { disk.stop(); });
  EXPECT_NE(error.message.find("the process runs on"), std::string::npos) << error.message;
  EXPECT_TRUE(runs());
  disk.go_on();
  expect_dumped_once_it_answers();
}

// The kernel does not even let a killed CRIU end while the disk has taken a call and has not
// answered it.
TEST_F(StandingDiskTest, WhereNoKillEndsCriuThatIsSaidAndTheProcessRunsOnOnceTheDiskAnswers) {
  KYMO_NEEDS_CRIU();
  ASSERT_TRUE(begin());
  spec.work_dir =
      // The log is on another disk: otherwise CRIU would wait for it before the freeze.
      folder.folder("work");
  const Error error = dump_while([&] { disk.be("stalls"); });
  EXPECT_EQ(error.code, Code::deadline_exceeded) << error.message;
  EXPECT_NE(error.message.find("cannot end before its disk answers"), std::string::npos)
      << error.message;
  EXPECT_TRUE(held);
  EXPECT_TRUE(probe::process_lives(process.pid, process.start_ticks));
  EXPECT_FALSE(probe::halted_threads(process.pid).empty());
  disk.be("well");
  EXPECT_TRUE(test::eventually([&] { return probe::halted_threads(process.pid).empty(); }));
  EXPECT_TRUE(runs());
  expect_dumped_once_it_answers();
}

TEST_F(StandingDiskTest, WithSyncTheImagesAreDurableBeforeTheProcessEnds) {
  KYMO_NEEDS_CRIU();
  ASSERT_TRUE(begin());
  spec.sync = true;
  std::string before_the_end;
  runtime::Observer observer;
  observer.notified = [&](std::string_view) { before_the_end = disk.synced(); };
  const auto dumped = runtime->dump(spec, observer);
  ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  EXPECT_EQ(before_the_end, "") << "nothing is synced before all images are written";
  for (const auto& image : std::filesystem::directory_iterator(spec.images_dir)) {
    const std::string line = "/images/" + image.path().filename().string() + "\n";
    EXPECT_NE(disk.synced().find(line), std::string::npos) << line;
  }
  EXPECT_NE(disk.synced().find("/images\n"), std::string::npos) << "the folder must be synced, too";
}

// The process stood still until the disk had answered: 30 s after the cancellation, and 10 s after CRIU was killed.
TEST_F(StandingDiskTest, ASyncEndsWithTheRequestAndWithItsCriuAndTheProcessRunsOn) {
  KYMO_NEEDS_CRIU();
  ASSERT_TRUE(begin());
  const std::string script = folder.path() + "/criu";
  const std::string pid_file = folder.path() + "/pid";
  std::ofstream(script) << "#!/bin/sh\necho $$ > " << pid_file << "\nexec " << test::criu_path()
                        << " \"$@\"\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  runtime::ProcessRuntimeOptions options;
  options.criu.path = script;
  const auto with_pid = runtime::make_process_runtime(std::move(options));
  for (const bool cancelled : {true, false}) {
    SCOPED_TRACE(cancelled);
    Cancellation cancel;
    spec.cancel = &cancel;
    spec.sync = true;
    spec.stream = criu::Encoding{};
    spec.images_dir = disk.path() + (cancelled ? "/cancelled" : "/killed");
    spec.work_dir = folder.folder(cancelled ? "cancelled" : "killed");
    std::filesystem::create_directory(spec.images_dir);
    runtime::Observer observer;
    observer.working = [&](std::string_view what) {
      if (what.empty()) return;
      disk.be("stalls");
      pid_t criu = 0;
      std::ifstream(pid_file) >> criu;
      if (cancelled) {
        cancel.ask();
      } else {
        kill(criu, SIGKILL);
      }
    };
    const auto dumped = with_pid->dump(spec, observer);
    ASSERT_FALSE(dumped.ok());
    EXPECT_NE(dumped.error().message.find(cancelled ? "cancelled" : "signal 9"), std::string::npos)
        << dumped.error().message;
    EXPECT_TRUE(runs()) << "before the disk answers";
    disk.be("well");
  }
  spec.cancel = nullptr;
  spec.stream.reset();
  expect_dumped_once_it_answers();
}

TEST_F(StandingDiskTest, WhereTheDiskCannotKeepTheImagesADumpWithSyncFailsAndTheProcessRunsOn) {
  KYMO_NEEDS_CRIU();
  ASSERT_TRUE(begin());
  for (const bool stream : {false, true}) {
    SCOPED_TRACE(stream);
    spec.sync = true;
    if (stream) spec.stream = criu::Encoding{};
    disk.be("well");
    spec.images_dir = disk.path() + (stream ? "/streamed" : "/direct");
    std::filesystem::create_directory(spec.images_dir);
    disk.be("forgets");
    const auto dumped = runtime->dump(spec, {});
    ASSERT_FALSE(dumped.ok());
    EXPECT_NE(dumped.error().message.find("the images are not durable"), std::string::npos)
        << dumped.error().message;
    EXPECT_NE(dumped.error().message.find("the process runs on"), std::string::npos)
        << dumped.error().message;
    EXPECT_TRUE(runs());
  }
  disk.be("well");
  expect_dumped_once_it_answers();
}

}  // namespace
}  // namespace kymo::daemon
