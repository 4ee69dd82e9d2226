// A recorder whose disk is full, stalls or fails, whose system calls fail once each, which is
// stopped, or which forks. expect_whole() checks what must hold each time.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/sanitizers.h"
#include "support/moody_disk.h"
#include "support/stop_child.h"
#include "support/temporary_directory.h"

namespace kymo {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using test::eventually;

constexpr std::uint64_t kIntervalNs = 1'000'000;

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::vector<std::uint64_t>> rows_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "Time (ns)\tsteps") << path;
  std::vector<std::vector<std::uint64_t>> rows;
  for (std::uint64_t time = 0, steps = 0; file >> time >> steps;) {
    rows.push_back({time, steps});
  }
  EXPECT_TRUE(file.eof()) << path << " does not parse after row " << rows.size();
  return rows;
}

struct GapLine {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t ticks = 0;
  std::string cause;
};

std::vector<GapLine> gaps_of(const std::string& tsv) {
  std::ifstream file(tsv.substr(0, tsv.size() - 4) + ".gaps.tsv");
  std::string line;
  std::getline(file, line);
  std::vector<GapLine> gaps;
  for (GapLine gap; file >> gap.start >> gap.end >> gap.ticks >> gap.cause;) {
    gaps.push_back(gap);
  }
  return gaps;
}

std::uint64_t ticks_of(const std::vector<GapLine>& gaps, const std::string& cause) {
  std::uint64_t ticks = 0;
  for (const GapLine& gap : gaps) {
    ticks += gap.cause == cause ? gap.ticks : 0;
  }
  return ticks;
}

// ThreadSanitizer replaces the system calls itself, so a program cannot replace them.
#if KYMO_THREAD_SANITIZER
#define KYMO_NEEDS_FAILING_CALLS() \
  GTEST_SKIP() << "calls cannot be made to fail under ThreadSanitizer"
#else
#define KYMO_NEEDS_FAILING_CALLS() static_cast<void>(0)
#endif

// A running kymo-test-recorder. If calls are to fail, it is the version that is linked with
// fail_once.cc.
class Recorder {
 public:
  Recorder(const test::TemporaryDirectory& folder, std::vector<std::string> arguments,
           const std::vector<std::string>& more_environment = {})
      : out_(folder.path() + "/recorder.out"), err_(folder.path() + "/recorder.err") {
    arguments.insert(arguments.begin(),
                     more_environment.empty() ? KYMO_TEST_RECORDER : KYMO_TEST_FAILING_RECORDER);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND;
    posix_spawn_file_actions_addopen(&actions, 1, out_.c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), flags, 0600);
    const auto pointers = [](const std::vector<std::string>& words) {
      std::vector<char*> all;
      for (const std::string& word : words) {
        all.push_back(const_cast<char*>(word.c_str()));
      }
      all.push_back(nullptr);
      return all;
    };
    const int error = ::posix_spawn(&pid_, arguments[0].c_str(), &actions, nullptr,
                                    pointers(arguments).data(), pointers(more_environment).data());
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(error, 0);
  }
  ~Recorder() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  [[nodiscard]] std::string said() const { return content(err_); }
  [[nodiscard]] bool says(const std::string& text,
                          milliseconds within = milliseconds(60'000)) const {
    return eventually([&] { return said().find(text) != std::string::npos; }, within);
  }
  void signal(int number) const { ::kill(pid_, number); }
  // Stops it with SIGSTOP, and returns when it has stopped.
  [[nodiscard]] bool stop_running() const { return test::stop_child(pid_); }
  // Waits for its end and returns its exit code. Its output is then in result().
  int wait() {
    int status = -1;
    EXPECT_TRUE(
        eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, milliseconds(60'000)))
        << said();
    if (status == -1) {
      return -1;  // the destructor kills it
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  json stop() {
    signal(SIGTERM);
    EXPECT_EQ(wait(), 0) << said();
    return result();
  }
  [[nodiscard]] json result() const { return json::parse(content(out_), nullptr, false); }

 private:
  std::string out_;
  std::string err_;
  pid_t pid_ = 0;
};

// Expects that every tick is a row in the file or counted as missed. Missed ticks must also be
// listed, unless `listed` is false because the list could not be written at the end.
void expect_whole(const std::string& tsv, const json& result, bool listed = true) {
  ASSERT_TRUE(result.is_object());
  const auto rows = rows_of(tsv);
  const auto due = result["ticks_due"].get<std::uint64_t>();
  const auto missed = result["missed"].get<std::uint64_t>();
  EXPECT_EQ(rows.size(), result["rows_written"].get<std::uint64_t>());
  EXPECT_EQ(rows.size() + missed, due);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    ASSERT_LT(rows[i - 1][0], rows[i][0]) << "row " << i;
    ASSERT_LE(rows[i - 1][1], rows[i][1]) << "a counter went back at row " << i;
  }
  if (listed) {
    std::uint64_t ticks = 0;
    for (const GapLine& gap : gaps_of(tsv)) {
      ticks += gap.ticks;
    }
    EXPECT_EQ(ticks, missed) << content(tsv.substr(0, tsv.size() - 4) + ".gaps.tsv");
  }
}

class FaultsTest : public ::testing::Test {
 protected:
  test::TemporaryDirectory folder_;
};

TEST_F(FaultsTest, ADiskThatFillsCostsRowsThatAreCountedAndListedAndRecordingResumes) {
  const std::string disk = folder_.folder("disk");
  ASSERT_EQ(::mount("none", disk.c_str(), "tmpfs", 0, "size=256k"), 0) << "needs root";
  const std::string tsv = disk + "/run.tsv";
  json result;
  std::string said;
  {
    Recorder recorder(folder_, {tsv});
    ASSERT_TRUE(recorder.says("started"));
    std::ofstream(disk + "/filler") << std::string(1 << 20, 'x');  // writes as much as fits
    ASSERT_TRUE(recorder.says("begun: the recording loses rows: cannot write"));
    EXPECT_NE(recorder.said().find("No space left"), std::string::npos) << recorder.said();
    std::this_thread::sleep_for(milliseconds(100));  // some more rows are lost meanwhile
    std::filesystem::remove(disk + "/filler");
    EXPECT_TRUE(recorder.says("over: the recording goes on"));
    result = recorder.stop();
    said = recorder.said();
  }
  const std::string what = "begun: the recording loses rows: cannot write";
  EXPECT_EQ(said.find(what, said.find(what) + 1), std::string::npos) << "said once: " << said;
  EXPECT_GT(result["missed_sink_error"], 0);
  expect_whole(tsv, result);
  EXPECT_EQ(ticks_of(gaps_of(tsv), "sink_error"), result["missed_sink_error"]);
  EXPECT_EQ(json::parse(content(disk + "/run.meta.json"))["state"], "ended");
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST_F(FaultsTest, ADiskThatStallsNeverHoldsUpTheProgram) {
  const test::MoodyDisk disk(folder_);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const std::string tsv = disk.path() + "/run.tsv";
  Recorder recorder(folder_, {tsv});
  ASSERT_TRUE(recorder.says("started"));
  disk.be("stalls");
  ASSERT_TRUE(recorder.says("begun: the recording loses rows: the ring is full"));
  const std::uint64_t stalls_ns = monotonic_ns();
  std::this_thread::sleep_for(milliseconds(1500));  // how long the disk stalls
  const std::uint64_t stalled_ns = monotonic_ns() - stalls_ns;
  disk.be("well");
  EXPECT_TRUE(recorder.says("over: the recording goes on"));
  const json result = recorder.stop();
  EXPECT_GT(result["missed_ring_full"], 0);
  EXPECT_LT(result["longest_add_ns"], stalled_ns) << "an add waited for the disk";
  expect_whole(tsv, result);
  EXPECT_EQ(ticks_of(gaps_of(tsv), "ring_full"), result["missed_ring_full"]);
}

TEST_F(FaultsTest, ADiskThatFailsIsSaidOnceAndRecordingResumes) {
  const test::MoodyDisk disk(folder_);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const std::string tsv = disk.path() + "/run.tsv";
  Recorder recorder(folder_, {tsv});
  ASSERT_TRUE(recorder.says("started"));
  disk.be("fails");
  ASSERT_TRUE(recorder.says("begun: the recording loses rows: cannot write"));
  EXPECT_NE(recorder.said().find("Input/output error"), std::string::npos) << recorder.said();
  // Long enough that writing the metadata fails, too.
  std::this_thread::sleep_for(milliseconds(700));
  disk.be("well");
  EXPECT_TRUE(recorder.says("over: the recording goes on"));
  const json result = recorder.stop();
  EXPECT_GT(result["missed_sink_error"], 0);
  expect_whole(tsv, result);
}

struct Failure {
  const char* call;
  int error;  // 0 means a short write
  friend std::ostream& operator<<(std::ostream& out, const Failure& failure) {
    return out << failure.call << " with errno " << failure.error;
  }
};

// Each system call on the path to the file fails once: the first one in one run, the second one in
// the next, and so on, until a run has no such call left.
class EachCallTest : public FaultsTest, public ::testing::WithParamInterface<Failure> {};

TEST_P(EachCallTest, FailsOnceAndNothingIsLostInSilence) {
  KYMO_NEEDS_FAILING_CALLS();
  constexpr int kMax = 12;
  const Failure failure = GetParam();
  int struck = 0;
  for (int nth = 1; nth <= kMax; ++nth) {
    const std::string here = folder_.folder("run-" + std::to_string(nth));
    const std::string tsv = here + "/run.tsv";
    const std::string ring = here + "/ring";
    Recorder recorder(
        folder_, {tsv, ring},
        {"KYMO_RUN_MS=120", "KYMO_FAIL=" + std::string(failure.call) + ":" + std::to_string(nth) +
                                ":" + std::to_string(failure.error)});
    const int code = recorder.wait();
    const std::string said = recorder.said();
    const bool injected = said.find("injected") != std::string::npos;
    struck += injected ? 1 : 0;
    SCOPED_TRACE(std::string(failure.call) + " " + std::to_string(nth) + ": " + said);
    if (said.find("started") == std::string::npos) {
      EXPECT_EQ(code, 1) << "if the start fails, the program must say why and exit with 1";
      EXPECT_NE(said.find("start: "), std::string::npos);
      EXPECT_FALSE(std::filesystem::exists(tsv)) << "a start that fails must leave no recording";
      EXPECT_FALSE(std::filesystem::exists(ring));
    } else {
      ASSERT_EQ(code, 0);
      const json result = recorder.result();
      // If the last write of the list of gaps fails, stop() reports it.
      expect_whole(tsv, result, result["stopped"].get<bool>());
    }
    if (!injected) {
      break;
    }
  }
  EXPECT_GT(struck, 0) << failure.call << " was not called, so the test has tested nothing";
}

INSTANTIATE_TEST_SUITE_P(
    All, EachCallTest,
    ::testing::Values(Failure{"open", EMFILE}, Failure{"open", ENOSPC}, Failure{"write", 0},
                      Failure{"write", EINTR}, Failure{"write", ENOSPC}, Failure{"write", EIO},
                      Failure{"rename", EIO}, Failure{"posix_fallocate", ENOSPC},
                      Failure{"mmap", ENOMEM}, Failure{"flock", ENOLCK},
                      Failure{"renameat2", EPERM}, Failure{"unlink", EIO}),
    [](const auto& one) {
      return std::string(one.param.call) + "_" + std::to_string(one.param.error);
    });

// A write that writes only a half and then fails. The half cannot be cut off at once, because
// ftruncate fails, too.
TEST_F(FaultsTest, AnAppendThatIsTornIsCutOffBeforeTheNext) {
  KYMO_NEEDS_FAILING_CALLS();
  int torn = 0;
  for (int nth = 1; nth <= 12; ++nth) {
    const std::string tsv = folder_.folder("run-" + std::to_string(nth)) + "/run.tsv";
    const std::string at = std::to_string(nth);
    Recorder recorder(folder_, {tsv},
                      {"KYMO_RUN_MS=120", "KYMO_FAIL=write:" + at + ":0,write:" +
                                              std::to_string(nth + 1) + ":28,ftruncate:1:5"});
    const int code = recorder.wait();
    const std::string said = recorder.said();
    SCOPED_TRACE(at + ": " + said);
    if (said.find("started") == std::string::npos) {
      EXPECT_EQ(code, 1);
      continue;
    }
    ASSERT_EQ(code, 0);
    const json result = recorder.result();
    expect_whole(tsv, result, result["stopped"].get<bool>());
    const std::size_t first = said.find("injected");
    const std::size_t second = said.find("injected", first + 1);
    torn += second != std::string::npos && said.find("injected", second + 1) != std::string::npos;
  }
  EXPECT_GT(torn, 0) << "ftruncate was not called, so the test has tested nothing";
}

TEST_F(FaultsTest, AStoppedProgramIsOneGapThatSaysFrozen) {
  const std::string tsv = folder_.path() + "/run.tsv";
  Recorder recorder(folder_, {tsv});
  ASSERT_TRUE(recorder.says("started"));
  std::this_thread::sleep_for(milliseconds(200));
  const std::uint64_t runs_ns = monotonic_ns();
  ASSERT_TRUE(recorder.stop_running());
  const std::uint64_t stands_ns = monotonic_ns();
  std::this_thread::sleep_for(milliseconds(800));  // how long the program is stopped
  const std::uint64_t still_stands_ns = monotonic_ns();
  recorder.signal(SIGCONT);
  std::this_thread::sleep_for(milliseconds(200));
  const json result = recorder.stop();
  const std::uint64_t ended_ns = monotonic_ns();
  expect_whole(tsv, result);
  std::optional<GapLine> longest;
  for (const GapLine& gap : gaps_of(tsv)) {
    if (gap.cause == "frozen" && (!longest || gap.ticks > longest->ticks)) {
      longest = gap;
    }
  }
  ASSERT_TRUE(longest) << content(folder_.path() + "/run.gaps.tsv");
  EXPECT_GE(longest->ticks + 1, (still_stands_ns - stands_ns) / kIntervalNs);
  EXPECT_LE(longest->ticks, (ended_ns - runs_ns) / kIntervalNs + 1);
  EXPECT_EQ(longest->end - longest->start, longest->ticks * kIntervalNs);
}

TEST_F(FaultsTest, AForkedChildHasNoProfilerAndTheParentsGoesOn) {
  const std::string tsv = folder_.path() + "/run.tsv";
  Recorder recorder(folder_, {tsv, folder_.path() + "/ring"});
  ASSERT_TRUE(recorder.says("started"));
  for (int i = 1; i <= 5; ++i) {
    recorder.signal(SIGUSR1);
    ASSERT_TRUE(eventually([&] {
      const std::string said = recorder.said();
      int children = 0;
      for (std::size_t at = 0; (at = said.find("child: 0\n", at)) != std::string::npos; ++at) {
        ++children;
      }
      return children == i;
    })) << recorder.said();
  }
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/ring"))
      << "a child must not remove the ring";
  expect_whole(tsv, recorder.stop());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/ring"));
}

}  // namespace
}  // namespace kymo
