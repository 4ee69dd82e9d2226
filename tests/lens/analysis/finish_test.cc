#include "lens/analysis/finish.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <kymo/profiler.h>
#include <kymo/registry.h>
#include <kymo/sink.h>
#include <sched.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "base/json_text.h"
#include "base/proc/process.h"
#include "base/process_identity.h"
#include "lens/analysis/quality.h"
#include "lens/analysis/recording_diff.h"
#include "recorder/sampling/files/metadata.h"
#include "temp_folder.h"

namespace kymo::analysis {
namespace {

std::int64_t unix_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

std::string own_host() {
  utsname names{};
  ::uname(&names);
  return names.nodename;
}

// The metadata that a running recorder writes beside its rows.
Metadata running(std::uint64_t pid, const std::string& host, std::int64_t start_unix_ns) {
  Metadata metadata;
  metadata.state = "running";
  metadata.pid = pid;
  metadata.host = host;
  metadata.start_unix_ns = start_unix_ns;
  return metadata;
}

// Above the highest pid that the kernel gives out.
constexpr std::uint64_t kNoProcess = (1U << 22U) + 1;

TEST(Finish, ARecorderThatRunsIsToldFromOneThatIsGone) {
  const auto self = static_cast<std::uint64_t>(::getpid());
  EXPECT_EQ(finish_of(running(self, own_host(), unix_now())), Finish::writing);
  EXPECT_EQ(finish_of(running(kNoProcess, own_host(), unix_now())), Finish::cut_short);
  EXPECT_EQ(finish_of(running(self, "another-" + own_host(), unix_now())), Finish::unfinished);
  Metadata ended = running(self, own_host(), unix_now());
  ended.state = "ended";
  EXPECT_EQ(finish_of(ended), Finish::ended);
}

TEST(Finish, APidThatIsGivenToALaterProcessIsNotTheRecorder) {
  const auto self = static_cast<std::uint64_t>(::getpid());
  const std::int64_t an_hour_ago = unix_now() - 3'600'000'000'000;
  EXPECT_EQ(finish_of(running(self, own_host(), an_hour_ago)), Finish::cut_short);
}

// A process that is number 1 of its pid namespace, as the program of a container is. It runs `work`
// and then stands still until it is killed.
class ProcessOne {
 public:
  explicit ProcessOne(const std::function<void()>& work) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    middle_ = ::fork();
    if (middle_ == 0) {
      if (::unshare(CLONE_NEWPID) != 0) ::_exit(1);
      const pid_t one = ::fork();
      if (one != 0) ::_exit(::waitpid(one, nullptr, 0) == one ? 0 : 1);
      work();
      if (::write(ready[1], "r", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char is_ready = 0;
    EXPECT_EQ(::read(ready[0], &is_ready, 1), 1) << "only root may make a pid namespace";
    ::close(ready[0]);
    const auto children = probe::children_of(middle_);
    if (children.ok() && !children->empty()) one_ = children->front();
  }
  ~ProcessOne() { kill(); }
  ProcessOne(const ProcessOne&) = delete;
  ProcessOne& operator=(const ProcessOne&) = delete;

  // Returns when it is gone.
  void kill() {
    if (middle_ == 0) return;
    if (one_ != 0) ::kill(one_, SIGKILL);
    EXPECT_EQ(::waitpid(middle_, nullptr, 0), middle_);
    middle_ = 0;
  }

 private:
  pid_t middle_ = 0;
  pid_t one_ = 0;
};

// The metadata of this process, if it recorded.
nlohmann::json own_metadata() {
  nlohmann::json metadata = describe_machine();
  metadata.update({{"format_version", 1}, {"state", "running"}, {"start_unix_ns", unix_now()}});
  return metadata;
}

TEST(Finish, TheProcessOneOfAContainerIsNotThatOfTheHost) {
  const tests::TempFolder folder;
  const std::string path = folder / "run.meta.json";
  ProcessOne recorder([&] { std::ofstream(path) << json_text(own_metadata(), 1); });
  const Result<Metadata> metadata = read_metadata(path);
  ASSERT_TRUE(metadata.ok());
  EXPECT_EQ(metadata->pid, 1U);
  EXPECT_NE(metadata->process.pid_namespace, own_pid_namespace());
  EXPECT_EQ(finish_of(*metadata), Finish::writing);
  EXPECT_NE(sentence_of(Finish::writing, *metadata).find("process 1 of another pid namespace"),
            std::string::npos);
  recorder.kill();
  EXPECT_EQ(finish_of(*metadata), Finish::cut_short);
}

TEST(Finish, FromWithinAContainerNobodyKnowsWhetherARecorderOutsideRuns) {
  const tests::TempFolder folder;
  Metadata outside = parse_metadata(json_text(own_metadata(), 1), "own").value();
  ProcessOne reader([&] { std::ofstream(folder / "told") << to_string(finish_of(outside)); });
  std::string told;
  std::getline(std::ifstream(folder / "told"), told);
  // Here /proc is still that of the host: a container sees even less.
  EXPECT_EQ(told, "unfinished");
}

TEST(Finish, AnotherProcessWithThePidOfTheRecorderIsNotTheRecorder) {
  Metadata metadata = parse_metadata(json_text(own_metadata(), 1), "own").value();
  EXPECT_EQ(finish_of(metadata), Finish::writing);
  metadata.host = "another name of this machine";
  EXPECT_EQ(finish_of(metadata), Finish::writing) << "the boot says that it is this machine";
  Metadata later = metadata;
  later.process.start_ticks -= 100;
  EXPECT_EQ(finish_of(later), Finish::cut_short) << "it began before this process";
  metadata.process.boot_id = "of another boot";
  EXPECT_EQ(finish_of(metadata), Finish::unfinished) << "it is another machine";
  metadata.host = own_host();
  EXPECT_EQ(finish_of(metadata), Finish::cut_short) << "this machine has booted since";
}

// After execve(2) the program has the pid and the start time of the recorder. It was said to write the recording still.
TEST(Finish, AProgramThatTookThePlaceOfTheRecorderDoesNotWriteTheRecording) {
  const tests::TempFolder folder;
  const std::string path = folder / "run.tsv";
  int recorded[2];
  int ended[2];
  ASSERT_EQ(::pipe2(recorded, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(ended, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ended[1]);
    Registry registry;
    static_cast<void>(registry.counter({.name = "steps", .help = "Steps"}));
    Profiler profiler(registry, {.sink = make_tsv_sink(path)});
    if (!profiler.start() || ::write(recorded[1], "r", 1) != 1) ::_exit(1);
    char end = 0;
    if (::read(ended[0], &end, 1) != 0) ::_exit(1);
    ::execlp("sleep", "sleep", "infinity", nullptr);
    ::_exit(1);
  }
  ::close(recorded[1]);
  char is_recorded = 0;
  EXPECT_EQ(::read(recorded[0], &is_recorded, 1), 1);
  const auto running = open_recording(path);
  ASSERT_TRUE(running.ok());
  EXPECT_EQ(running->finish, Finish::writing);
  ::close(ended[1]);
  EXPECT_EQ(::read(recorded[0], &is_recorded, 1), 0);  // closed by execve(2)
  const auto replaced = open_recording(path);
  ASSERT_TRUE(replaced.ok());
  EXPECT_EQ(replaced->finish, Finish::cut_short);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

class UnfinishedRecording : public ::testing::Test {
 protected:
  // Writes 100 rows. If `frozen`, frozen_us grows only in the last rows, as in a dump that reached
  // its freeze.
  std::string record(const std::string& name, const std::string& state, std::uint64_t pid,
                     bool frozen = true) {
    std::string text = "Time (ns)\tbytes\tfrozen_us\n";
    for (std::uint64_t row = 0; row < 100; ++row) {
      text += std::to_string(row * 1'000'000) + "\t" + std::to_string(row * 1000 + row % 7) + "\t" +
              (frozen && row > 95 ? "500" : "0") + "\n";
    }
    describe(name, state, pid);
    return folder_.file(name + ".tsv", text);
  }

  void describe(const std::string& name, const std::string& state, std::uint64_t pid) {
    static_cast<void>(folder_.file(
        name + ".meta.json",
        R"({"format_version":1,"interval_ns":1000000,"about":{"request":"dump"},"state":")" +
            state + R"(","host":")" + own_host() + R"(","pid":)" + std::to_string(pid) +
            R"(,"start_unix_ns":)" + std::to_string(unix_now()) +
            R"(,"columns":[{"name":"bytes","metric":"bytes","kind":"counter","unit":"bytes"},
            {"name":"frozen_us","metric":"frozen_us","kind":"counter","unit":"microseconds"}]})"));
  }

  tests::TempFolder folder_;
};

TEST_F(UnfinishedRecording, ARunningOneIsNotJudgedGood) {
  const auto summary = summarize(record("run", "running", static_cast<std::uint64_t>(::getpid())));
  ASSERT_TRUE(summary.ok());
  const std::vector<Verdict> verdicts = judge(*summary);
  EXPECT_EQ(verdicts.front().level, Verdict::Level::warning);
  EXPECT_NE(verdicts.front().text.find("still writes it"), std::string::npos);
  for (const Verdict& verdict : verdicts) EXPECT_NE(verdict.level, Verdict::Level::good);
}

// Ticks that have neither a row nor a listed gap were missed, too.
TEST_F(UnfinishedRecording, TicksWithoutARowAreMissedAlthoughNoGapListsThem) {
  const std::string path = record("cut", "running", kNoProcess);
  std::string text = "Time (ns)\tbytes\tfrozen_us\n";
  for (std::uint64_t row = 0; row < 41; ++row) {
    text += std::to_string((row < 40 ? row : 99) * 1'000'000) + "\t1\t0\n";
  }
  static_cast<void>(folder_.file("cut.tsv", text));
  static_cast<void>(folder_.file("cut.gaps.tsv",
                                 "Start (ns)\tEnd (ns)\tTicks\tCause\n"
                                 "40000000\t42000000\t2\tlate\n"));
  const auto capture = capture_of(*summarize(path));
  ASSERT_TRUE(capture);
  EXPECT_EQ(capture->ticks_due, 100U);
  EXPECT_EQ(capture->rows, 41U);
  EXPECT_EQ(capture->missed[static_cast<std::size_t>(MissCause::late)], 59U);
}

TEST_F(UnfinishedRecording, OneWithARingSaysHowToRecoverIt) {
  const std::string cut = record("cut", "running", kNoProcess);
  EXPECT_EQ(judge(*summarize(cut)).front().text.find("recover"), std::string::npos);
  static_cast<void>(
      folder_.file("cut.meta.json", R"({"format_version":1,"state":"running","host":")" +
                                        own_host() + R"(","pid":)" + std::to_string(kNoProcess) +
                                        R"(,"ring":{"slots":2,"file":"/var/x.ring"}})"));
  EXPECT_TRUE(judge(*summarize(cut)).front().text.ends_with("use 'kymo recover /var/x.ring'"));
}

TEST_F(UnfinishedRecording, WhatComesAtTheEndOfADumpIsNotComparedBeforeItHasCome) {
  const std::string whole = record("whole", "ended", kNoProcess);
  const std::string cut = record("cut", "running", kNoProcess, false);
  const auto diff = diff_recordings({whole}, {cut}, {});
  ASSERT_TRUE(diff.ok()) << diff.error().message;
  EXPECT_TRUE(diff->unfinished);
  ASSERT_FALSE(diff->notes.empty());
  EXPECT_NE(diff->notes.front().find("cut short"), std::string::npos) << diff->notes.front();
  for (const MetricDiff& metric : diff->metrics) {
    if (metric.name != "frozen_us") continue;
    EXPECT_EQ(metric.verdict, MetricDiff::Verdict::not_told);
    EXPECT_TRUE(metric.not_known_yet);
  }
}

TEST_F(UnfinishedRecording, OnlyOneThatIsBeingWrittenIsWaitedForUntilItHasEnded) {
  const auto self = static_cast<std::uint64_t>(::getpid());
  const std::string cut = record("cut", "running", kNoProcess);
  const std::string live = record("live", "running", self);
  EXPECT_EQ(about_to_end({cut, live}), (std::vector<std::string>{live}));
  // The recorder has ended, so wait_until_ended() must not wait for its recording.
  EXPECT_TRUE(wait_until_ended({cut}, std::chrono::minutes(1)).empty());
  EXPECT_EQ(wait_until_ended({live}, std::chrono::milliseconds(1)),
            (std::vector<std::string>{live}));
  std::thread writer([&] { describe("live", "ended", self); });
  EXPECT_TRUE(wait_until_ended({live}, std::chrono::minutes(1)).empty());
  writer.join();
}

}  // namespace
}  // namespace kymo::analysis
