#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/spawn.h"
#include "checkpoint/inside/bpf_counts.h"
#include "checkpoint/inside/bpf_source.h"
#include "support/slow_mount.h"
#include "support/temporary_directory.h"

namespace kymo::inside {
namespace {

using test::eventually;

// A child process that this thread has started.
class Program {
 public:
  explicit Program(const std::vector<std::string>& words, std::vector<int> descriptors = {}) {
    const Result<pid_t> started =
        spawn({.file = words.front(), .words = words, .descriptors = std::move(descriptors)});
    EXPECT_TRUE(started.ok()) << (started.ok() ? "" : started.error().message);
    if (started) pid_ = *started;
  }
  ~Program() { end(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  void wait() {
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void end() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }

 private:
  pid_t pid_ = 0;
};

class BpfTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::shared_ptr<BpfCounts>> loaded = BpfCounts::load(true);
    if (!loaded) GTEST_SKIP() << "no BPF here: " << loaded.error().message;
    counts_ = *loaded;
  }
  [[nodiscard]] std::unique_ptr<BpfCounts::View> begin(bool container = false) const {
    auto view = counts_->begin(container, false);
    EXPECT_TRUE(view.ok()) << (view.ok() ? "" : view.error().message);
    return view.ok() ? *std::move(view) : nullptr;
  }

  std::shared_ptr<BpfCounts> counts_;
};

constexpr std::uint64_t kBytes = std::uint64_t{64} << 20U;

std::vector<std::string> copy_64_mib(const std::string& to) {
  return {"dd", "if=/dev/zero", "of=" + to, "bs=1M", "count=64", "status=none"};
}

TEST_F(BpfTest, CountsTheCallsOfWhatAThreadStartsByClassWithTheirBytes) {
  const test::TemporaryDirectory folder;
  const auto view = begin();
  view->follow(::gettid());
  Program(copy_64_mib(folder.path() + "/file")).wait();
  const ThreadCounts criu = view->read(KYMO_CRIU);
  EXPECT_GE(criu.call_bytes[KYMO_READ], kBytes);
  EXPECT_GE(criu.call_bytes[KYMO_WRITE], kBytes);
  EXPECT_LT(criu.call_bytes[KYMO_WRITE], kBytes + 4096);
  EXPECT_GE(criu.calls[KYMO_WRITE], 64U);
  EXPECT_GT(criu.call_ns[KYMO_WRITE], 0U);
  EXPECT_GT(criu.calls[KYMO_MAP], 0U) << "the loader maps libraries";
  EXPECT_GT(criu.run_ns, 0U);
  std::uint64_t all_ns = criu.run_ns + criu.runnable_ns;
  for (const std::uint64_t off_ns : criu.off_ns) all_ns += off_ns;
  EXPECT_GE(all_ns, criu.call_ns[KYMO_WRITE] + criu.call_ns[KYMO_READ])
      << "the times of its system calls cannot exceed its lifetime";
  EXPECT_GE(criu.allocated_bytes, kBytes)
      << "the page cache of the file counts as allocated memory";
  EXPECT_GT(criu.user_faults, 0U);
  EXPECT_EQ(view->read(KYMO_TARGET).calls[KYMO_WRITE], 0U);
  EXPECT_EQ(view->left_out(), 0U);
}

// Of most short writes the time is estimated.
TEST_F(BpfTest, ShortWritesAreCountedWithTheirBytesAndTakeLessTimeThanThereIs) {
  const test::TemporaryDirectory folder;
  const auto view = begin();
  view->follow(::gettid());
  Program({"dd", "if=/dev/zero", "of=" + folder.path() + "/file", "bs=16", "count=20000",
           "status=none"})
      .wait();
  const ThreadCounts criu = view->read(KYMO_CRIU);
  EXPECT_GE(criu.calls[KYMO_WRITE], 20'000U);
  EXPECT_LT(criu.calls[KYMO_WRITE], 20'010U);
  EXPECT_GE(criu.call_bytes[KYMO_WRITE], 320'000U);
  EXPECT_LT(criu.call_bytes[KYMO_WRITE], 324'096U);
  EXPECT_GT(criu.call_ns[KYMO_WRITE], 0U);
  std::uint64_t all_ns = criu.run_ns + criu.runnable_ns;
  for (const std::uint64_t off_ns : criu.off_ns) all_ns += off_ns;
  EXPECT_LE(criu.call_ns[KYMO_WRITE], all_ns);
}

TEST_F(BpfTest, AShortWriteThatWaitsCountsWhileItLasts) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor reader(ends[0]);
  const FileDescriptor writer(ends[1]);
  const auto view = begin();
  view->follow(::gettid());
  // The pipe is full after some thousand writes, and nobody reads.
  const Program blocked({"dd", "if=/dev/zero", "bs=16", "count=100000", "status=none"},
                        {kDevNull, writer.get(), kDevNull});
  const auto waited = [&] { return view->read(KYMO_CRIU).off_ns[KYMO_OFF_PIPE]; };
  ASSERT_TRUE(eventually([&] { return waited() > 20'000'000; }));
  const ThreadCounts before = view->read(KYMO_CRIU);
  EXPECT_LT(before.calls[KYMO_WRITE], 100'000U);
  EXPECT_TRUE(eventually([&] {
    return view->read(KYMO_CRIU).call_ns[KYMO_WRITE] > before.call_ns[KYMO_WRITE] + 20'000'000;
  }));
  EXPECT_EQ(view->read(KYMO_CRIU).calls[KYMO_WRITE], before.calls[KYMO_WRITE]);
}

// Such a wait is interruptible, as that for a pipe, and counts as no I/O for the kernel.
TEST_F(BpfTest, AWriteThatWaitsForTheProgramOfAFileSystemWaitsForADisk) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.folder("slow");
  const test::SlowMount slow(folder.folder("below"), path, "8M");
  if (!slow.mounted()) GTEST_SKIP() << "no bindfs here";
  const auto view = begin();
  view->follow(::gettid());
  Program({"dd", "if=/dev/zero", "of=" + path + "/file", "bs=1M", "count=4", "status=none"}).wait();
  const ThreadCounts criu = view->read(KYMO_CRIU);
  EXPECT_GT(criu.off_ns[KYMO_OFF_DISK], criu.call_ns[KYMO_WRITE] / 2);
  EXPECT_LT(criu.off_ns[KYMO_OFF_PIPE], criu.off_ns[KYMO_OFF_DISK] / 10);
}

// CRIU of a container need not be called criu, if it is known from its tracee.
TEST_F(BpfTest, WhoIsGivenAsCriuIsCriuWhateverItIsCalled) {
  const Program sleeper({"sleep", "1000"});
  const auto view = begin(true);
  view->look_at({sleeper.pid()}, KYMO_CRIU);
  EXPECT_TRUE(eventually([&] { return view->read(KYMO_CRIU).off_ns[KYMO_OFF_OTHER] > 0; }));
}

TEST_F(BpfTest, ALongWaitCountsWhileItLasts) {
  const Program sleeper({"sleep", "1000"});
  const std::string place = "/proc/" + std::to_string(sleeper.pid()) + "/wchan";
  const auto asleep = [&] {
    const Result<std::string> where = read_file(place);
    return where && where->find("nanosleep") != std::string::npos;
  };
  ASSERT_TRUE(eventually(asleep)) << "it must have started first";
  const auto view = begin();
  view->look_at({sleeper.pid()}, KYMO_TARGET);
  const auto waited = [&] {
    const ThreadCounts target = view->read(KYMO_TARGET);
    return target.off_ns[KYMO_OFF_OTHER];
  };
  const std::uint64_t before = waited();
  const std::uint64_t switches = view->read(KYMO_TARGET).switches;
  EXPECT_TRUE(eventually([&] { return waited() > before + 20'000'000; }));
  EXPECT_LE(view->read(KYMO_TARGET).switches, switches + 1) << "the target only slept";
}

TEST_F(BpfTest, TellsWhatASignalHasStoppedFromWhatWaits) {
  const Program busy({"sh", "-c", "while :; do :; done"});
  const auto view = begin();
  view->look_at({busy.pid()}, KYMO_TARGET);
  const auto now = [&] { return view->read(KYMO_TARGET); };
  EXPECT_TRUE(eventually([&] { return now().run_ns > 10'000'000; }));
  ::kill(busy.pid(), SIGSTOP);
  EXPECT_TRUE(eventually([&] { return now().off_ns[KYMO_OFF_STOPPED] > 20'000'000; }));
  const std::uint64_t ran = now().run_ns;
  const std::uint64_t stopped = now().off_ns[KYMO_OFF_STOPPED];
  EXPECT_TRUE(eventually([&] { return now().off_ns[KYMO_OFF_STOPPED] > stopped + 20'000'000; }));
  EXPECT_EQ(now().run_ns, ran);
}

TEST_F(BpfTest, TwoViewsDoNotMix) {
  const test::TemporaryDirectory folder;
  const auto one = begin();
  const auto other = begin();
  const Program sleeper({"sleep", "1000"});
  other->look_at({sleeper.pid()}, KYMO_TARGET);
  one->follow(::gettid());
  Program(copy_64_mib(folder.path() + "/file")).wait();
  EXPECT_GE(one->read(KYMO_CRIU).call_bytes[KYMO_WRITE], kBytes);
  EXPECT_EQ(other->read(KYMO_CRIU).calls[KYMO_WRITE], 0U);
  EXPECT_EQ(one->read(KYMO_TARGET).off_ns[KYMO_OFF_OTHER], 0U);
  EXPECT_TRUE(eventually([&] { return other->read(KYMO_TARGET).off_ns[KYMO_OFF_OTHER] > 0; }));
}

TEST_F(BpfTest, WhatAnEndedViewHasLookedAtIsNotInTheNext) {
  const Program busy({"sh", "-c", "while :; do :; done"});
  for (int i = 0; i < 3 * KYMO_VIEWS; ++i) {
    const auto view = begin();
    EXPECT_EQ(view->read(KYMO_TARGET).run_ns, 0U);
    view->look_at({busy.pid()}, KYMO_TARGET);
    EXPECT_TRUE(eventually([&] { return view->read(KYMO_TARGET).run_ns > 0; })) << i;
  }
}

TEST_F(BpfTest, MoreViewsThanThereIsRoomForAreRefused) {
  std::vector<std::unique_ptr<BpfCounts::View>> views;
  for (int i = 0; i < KYMO_VIEWS; ++i) views.push_back(begin());
  const auto more = counts_->begin(false, false);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, Code::resource_exhausted);
  views.pop_back();
  EXPECT_TRUE(counts_->begin(false, false).ok());
}

// The files of this process that keep parts of the program in the kernel: the names of what they are, and whether a
// program that this one starts has them, too.
std::multimap<std::string, bool> files_of_bpf() {
  std::multimap<std::string, bool> found;
  for (const std::filesystem::directory_entry& file :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(file.path(), gone);
    if (what.find("bpf") == std::string::npos) continue;
    const int number = std::stoi(file.path().filename());
    found.emplace(what, (::fcntl(number, F_GETFD) & FD_CLOEXEC) == 0);
  }
  return found;
}

TEST_F(BpfTest, IsAttachedOnlyWhileThereIsAViewAndNoOtherProgramHasIt) {
  const auto links = [] {
    std::size_t count = 0;
    for (const auto& [what, inherited] : files_of_bpf()) {
      EXPECT_FALSE(inherited) << what;
      if (what.find("link") != std::string::npos) ++count;
    }
    return count;
  };
  EXPECT_FALSE(files_of_bpf().empty()) << "it is loaded";
  EXPECT_EQ(links(), 0U);
  for (int i = 0; i < 2; ++i) {
    auto one = begin();
    const auto other = begin();
    EXPECT_GT(links(), 0U);
    one.reset();
    EXPECT_GT(links(), 0U) << "the other looks on";
  }
  EXPECT_TRUE(test::eventually([&] { return links() == 0; })) << "it is detached in the background";
}

TEST_F(BpfTest, OfAContainerOnlyProgramsNamedCriuAreCriu) {
  const test::TemporaryDirectory folder;
  const std::string criu = folder.path() + "/criu";
  ASSERT_EQ(::symlink("/bin/dd", criu.c_str()), 0);
  const auto view = begin(true);
  view->follow(::gettid());
  Program(copy_64_mib(folder.path() + "/by-the-runtime")).wait();
  EXPECT_EQ(view->read(KYMO_CRIU).calls[KYMO_WRITE], 0U);
  EXPECT_GE(view->read(KYMO_RUNTIME).call_bytes[KYMO_WRITE], kBytes);
  std::vector<std::string> words = copy_64_mib(folder.path() + "/by-criu");
  words.front() = criu;
  Program(words).wait();
  EXPECT_GE(view->read(KYMO_CRIU).call_bytes[KYMO_WRITE], kBytes);
}

TEST_F(BpfTest, ThreadsBeyondTheRoomAreCounted) {
  const auto view = begin();
  view->follow(::gettid());
  Program({"sh", "-c", "i=0; while [ $i -lt 200 ]; do (:); i=$((i+1)); done"}).wait();
  EXPECT_EQ(view->left_out(), 201U - KYMO_VIEW_THREADS);
  EXPECT_GT(view->read(KYMO_CRIU).calls[KYMO_FORK], 100U);
}

TEST_F(BpfTest, TheSourceHasItsColumnsAndNeverGoesBack) {
  const Program busy({"sh", "-c", "while :; do :; done"});
  auto view = begin();
  Observed target;
  target.pid = busy.pid();
  BpfSource source(std::move(view), target, std::make_shared<Subjects>(), true);
  std::vector<std::uint64_t> last(source.columns().size());
  std::vector<std::uint64_t> values(last.size());
  std::size_t run = 0;
  while (source.columns().at(run).name != "target_run_ns") ++run;
  EXPECT_TRUE(eventually([&] {
    source.read(0, values);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_GE(values[i], last[i]);
    last = values;
    return values[run] > 50'000'000;
  }));
  EXPECT_EQ(source.missing(), "");
}

}  // namespace
}  // namespace kymo::inside
