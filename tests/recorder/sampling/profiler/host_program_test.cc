// What the program around a recorder does: it blocks signals, limits the size of files, changes its
// working directory, or closes descriptors that it does not know.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "kymo/annotated_sink.h"
#include "kymo/flight_recorder.h"
#include "kymo/profiler.h"
#include "kymo/recover.h"
#include "kymo/registry.h"
#include "kymo/trouble.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

namespace fs = std::filesystem;

class HostProgramTest : public TemporaryFolderTest {
 protected:
  HostProgramTest() {
    EXPECT_TRUE(registry_.counter({"steps", "help", Kind::counter, Unit::count, {}}));
    EXPECT_TRUE(registry_.callback({"late", "help", Kind::gauge, Unit::count, {}}, [this] {
      while (hold_) {
        held_ = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return 0U;
    }));
    options_.flush = std::chrono::nanoseconds(1);  // each row is written before the next is taken
  }
  void SetUp() override {
    TemporaryFolderTest::SetUp();
    fs::create_directories(in_folder("old"));
    fs::create_directories(in_folder("new"));
  }
  void TearDown() override {
    fs::current_path(before_);
    TemporaryFolderTest::TearDown();
  }
  // Waits until the sink has written this many more rows.
  static void wait_for_rows(const Profiler& profiler, std::uint64_t rows) {
    const std::uint64_t before = profiler.stats().rows_written;
    while (profiler.stats().rows_written < before + rows) {
      std::this_thread::yield();
    }
  }
  // Does `change` in a gap of the recording: the sink has written all rows before, so it writes
  // nothing meanwhile. Waits until the gap and rows after it are written.
  void change_in_a_gap(const Profiler& profiler, const std::function<void()>& change) {
    hold_ = true;
    while (!held_ || profiler.stats().rows_written < profiler.stats().rows_captured) {
      std::this_thread::yield();
    }
    change();
    const std::uint64_t before = profiler.stats().missed();
    std::this_thread::sleep_for(5 * options_.interval);  // ticks that are missed
    hold_ = false;
    while (profiler.stats().missed() == before) {
      std::this_thread::yield();
    }
    wait_for_rows(profiler, 50);
  }
  // What stop() says if files may be no larger than this, so that rows were refused before.
  std::string stopped_with_small_files(rlim_t bytes) {
    options_.sink = make_tsv_sink(in_folder("run.tsv"));
    Profiler profiler(registry_, options_);
    EXPECT_TRUE(profiler.start());
    wait_for_rows(profiler, 5);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{bytes, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    while (profiler.stats().missed_sink_error == 0) {
      std::this_thread::yield();
    }
    const Result<void> stopped = profiler.stop();
    ::setrlimit(RLIMIT_FSIZE, &before);
    return stopped ? "stop() succeeded" : stopped.error().message;
  }
  // The descriptor with which this process has `path` open; -1: none.
  static int descriptor_of(const std::string& path) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      if (fs::read_symlink(entry.path(), ignored) == fs::path(path)) {
        return std::stoi(entry.path().filename());
      }
    }
    return -1;
  }

  std::atomic<bool> hold_{false};  // whether the next sample must wait
  std::atomic<bool> held_{false};  // whether one has waited
  Registry registry_;
  ProfilerOptions options_;

 private:
  const fs::path before_ = fs::current_path();
};

// The blocked signals of each thread of this process, by its name.
std::multimap<std::string, std::uint64_t> blocked_signals() {
  std::multimap<std::string, std::uint64_t> threads;
  for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
    std::ifstream status(entry.path() / "status");
    std::string name;
    for (std::string key, value; status >> key && std::getline(status, value);) {
      if (key == "Name:") {
        name = value.substr(1);
      } else if (key == "SigBlk:") {
        threads.emplace(name, std::stoull(value, nullptr, 16));
      }
    }
  }
  return threads;
}

bool has(std::uint64_t signals, int signal) {
  return ((signals >> (signal - 1)) & 1U) != 0;
}

TEST_F(HostProgramTest, ThreadsOfTheLibraryTakeOnlyTheSignalsOfTheirOwnFaults) {
  const auto recorder =
      std::make_shared<FlightRecorder>(FlightRecorderOptions{.directory = in_folder("new")});
  options_.sink = recorder;
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 5);
  // Until the end, a thread writes this snapshot.
  ASSERT_TRUE(recorder->snapshot({.after = std::chrono::minutes(10)}, false));
  const auto threads = blocked_signals();
  for (const char* name : {"kymo-collector", "kymo-writer", "kymo-cut"}) {
    const auto thread = threads.find(name);
    ASSERT_NE(thread, threads.end()) << name;
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE, SIGPROF,
                             SIGXFSZ, SIGQUIT, SIGRTMIN, SIGRTMAX}) {
      EXPECT_TRUE(has(thread->second, signal)) << name << ' ' << signal;
    }
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
      EXPECT_FALSE(has(thread->second, fault)) << name << ' ' << fault;
    }
  }
  sigset_t own;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0) << "the mask of the caller must not change";
  EXPECT_TRUE(profiler.stop());
}

TEST_F(HostProgramTest, ASignalThatTheProgramBlocksAfterTheStartStaysPending) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  sigset_t term;
  sigset_t before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, &before);
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(::sigwaitinfo(&term, nullptr), SIGTERM);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_TRUE(profiler.stop());
}

TEST_F(HostProgramTest, ALimitOnTheSizeOfFilesIsTold) {
  const std::string message = stopped_with_small_files(100);  // less than the metadata take
  // The list of gaps is written first. It has room for that of the refused rows, and for no other,
  // as of ticks that a busy machine makes late.
  EXPECT_TRUE(message.find("run.meta.json: File too large") != std::string::npos ||
              message.find("run.gaps.tsv: File too large") != std::string::npos)
      << message;
  for (const char* part : {"the recording lacks ", " rows could not be kept (cannot write ",
                           "run.tsv: File too large"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
}

TEST_F(HostProgramTest, GapsThatAreBeyondTheLimitOnTheSizeOfFilesAreTold) {
  const std::string message = stopped_with_small_files(1);
  EXPECT_NE(message.find(" of its gaps could not be written to " + in_folder("run.gaps.tsv") +
                         ": File too large"),
            std::string::npos)
      << message;
}

TEST_F(HostProgramTest, AStreamWithoutAReaderIsTold) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor to(ends[1]);
  options_.sink = make_annotated_sink(to.get(), AnnotatedFormat::plain);
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  ::close(ends[0]);
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().message.find("Broken pipe"), std::string::npos);
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

TEST_F(HostProgramTest, ARelativePathIsThatOfTheStart) {
  fs::current_path(in_folder("old"));
  options_.sink = make_tsv_sink("run.tsv", {.rotate_bytes = 1000});
  options_.interval =
      std::chrono::milliseconds(5);  // parts are begun more slowly than rows are taken
  options_.ring_file = "run.ring";
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  fs::current_path(in_folder("new"));
  while (!fs::exists(in_folder("old/run.1.tsv")) && !fs::exists(in_folder("new/run.1.tsv"))) {
    std::this_thread::yield();
  }
  ASSERT_TRUE(profiler.stop());
  EXPECT_TRUE(fs::is_empty(in_folder("new")));
  EXPECT_TRUE(fs::exists(in_folder("old/run.1.tsv")));
  EXPECT_FALSE(fs::exists(in_folder("old/run.ring")));
  EXPECT_EQ(nlohmann::json::parse(content(in_folder("old/run.meta.json")))["state"], "ended");
}

TEST_F(HostProgramTest, TheFolderOfSnapshotsIsThatOfTheStart) {
  for (const std::string folder : {"snapshots", ""}) {
    fs::current_path(in_folder("old"));
    const auto recorder =
        std::make_shared<FlightRecorder>(FlightRecorderOptions{.directory = folder});
    options_.sink = recorder;
    Profiler profiler(registry_, options_);
    ASSERT_TRUE(profiler.start());
    fs::current_path(in_folder("new"));
    const Result<std::string> path =
        recorder->snapshot({.after = std::chrono::nanoseconds(0)}, true);
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_TRUE(path->starts_with(in_folder("old") + '/' + folder)) << *path;
    EXPECT_TRUE(fs::exists(*path));
    ASSERT_TRUE(profiler.stop());
    EXPECT_TRUE(fs::is_empty(in_folder("new")));
  }
}

TEST_F(HostProgramTest, DescriptorsThatTheProgramHasTakenAreNotUsed) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  options_.ring_file = in_folder("run.ring");
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 5);
  const FileDescriptor own(
      ::open(in_folder("own.txt").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(own.valid());
  const int taken[] = {descriptor_of(in_folder("run.tsv")),
                       descriptor_of(in_folder("run.gaps.tsv")),
                       descriptor_of(in_folder("run.ring"))};
  change_in_a_gap(profiler, [&] {
    for (const int number : taken) {
      ASSERT_GE(number, 0);
      ASSERT_EQ(::dup2(own.get(), number), number);
    }
  });
  const Result<void> stopped = profiler.stop();
  EXPECT_TRUE(stopped) << stopped.error().message;
  EXPECT_EQ(content(in_folder("own.txt")), "");
  EXPECT_EQ(lines(in_folder("run.tsv")).size() - 1, profiler.stats().rows_written);
  EXPECT_GE(lines(in_folder("run.gaps.tsv")).size(), 2U);
  EXPECT_FALSE(fs::exists(in_folder("run.1.tsv")));
  EXPECT_FALSE(fs::exists(in_folder("run.ring")));
  for (const int number : taken) {
    EXPECT_EQ(::close(number), 0) << "it must stay open, because it is the program's";
  }
}

TEST_F(HostProgramTest, GapsThatReachNoFileAreTold) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  const int gaps = descriptor_of(in_folder("run.gaps.tsv"));
  ASSERT_GE(gaps, 0);
  const FileDescriptor own(::open("/dev/null", O_WRONLY | O_APPEND | O_CLOEXEC));
  TroubleWatch watch(profiler);
  change_in_a_gap(profiler, [&] {
    fs::rename(in_folder("run.gaps.tsv"), in_folder("moved.tsv"));
    ASSERT_EQ(::dup2(own.get(), gaps), gaps);
  });
  // Before, only stop() said it.
  const std::string lost = "gaps cannot be listed: the program has closed the descriptor of " +
                           in_folder("run.gaps.tsv") + ", and the file was moved or removed";
  std::vector<std::string> told;
  while (std::find(told.begin(), told.end(), lost) == told.end()) {
    for (const Trouble& trouble : watch.look()) told.push_back(trouble.text);
    std::this_thread::yield();
  }
  EXPECT_EQ(profiler.last_sink_error(), lost);
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::data_loss);
  EXPECT_NE(stopped.error().message.find(
                "of its gaps could not be written: the program has closed the descriptor of " +
                in_folder("run.gaps.tsv")),
            std::string::npos)
      << stopped.error().message;
  EXPECT_EQ(::close(gaps), 0);
}

TEST_F(HostProgramTest, WithoutDescriptorsStopKeepsTheRingWithWhichTheRecordingCanBeFinished) {
  const std::string path = in_folder("run.tsv");
  options_.sink = make_tsv_sink(path);
  options_.ring_file = in_folder("run.ring");
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 20);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<void> stopped = profiler.stop();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(stopped);
  const std::string& message = stopped.error().message;
  EXPECT_NE(message.find("the recording was not finished: "), std::string::npos) << message;
  EXPECT_NE(message.find("Too many open files"), std::string::npos) << message;
  EXPECT_NE(message.find("RLIMIT_NOFILE"), std::string::npos) << message;
  EXPECT_EQ(message.find("free space"), std::string::npos) << message;
  EXPECT_NE(message.find("kymo recover " + options_.ring_file), std::string::npos) << message;
  const auto recovered = recover_ring(options_.ring_file);
  ASSERT_TRUE(recovered) << recovered.error().message;
  const auto meta = nlohmann::json::parse(content(in_folder("run.meta.json")));
  EXPECT_EQ(meta["state"], "recovered");
  EXPECT_EQ(lines(path).size(), profiler.stats().rows_written + 1);
  EXPECT_FALSE(fs::exists(options_.ring_file));
}

}  // namespace
}  // namespace kymo
