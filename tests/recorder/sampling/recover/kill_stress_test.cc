// A recorder is killed with SIGKILL at random times. After `kymo recover`, every committed row must
// be in the recording exactly once, complete and in order, also if the recovery itself is killed.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "base/sanitizers.h"
#include "kymo/profiler.h"
#include "kymo/recover.h"
#include "support/seed.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

struct Shared {
  std::atomic<std::uint64_t> committed{0};  // at least this many rows have been committed
};

// The child records rows that contain their number, as fast as it can, until it is killed.
[[noreturn]] void record_until_killed(const std::string& tsv, const std::string& ring,
                                      std::size_t slots, std::size_t rows, Shared& shared) {
  Registry registry;
  ProfilerOptions options;
  options.sink = make_tsv_sink(tsv);
  options.interval = std::chrono::microseconds(5);
  options.slots = slots;
  options.rows = rows;
  options.ring_file = ring;
  Profiler profiler(registry, options);
  std::uint64_t number = 0;
  // start() reads the metrics to measure how long a sample takes. These readings are no rows.
  const auto next = [&] { return profiler.now_ns() == 0 ? 0 : ++number; };
  const Metric counter{"number", "Rows so far", Kind::counter, Unit::count, {}};
  const Metric check{"number_check", "A function of number", Kind::gauge, Unit::count, {}};
  const bool registered =
      registry.callback(counter, next).ok() &&
      registry.callback(check, [&number] { return number * 0x9E3779B97F4A7C15U; }).ok();
  if (!registered || !profiler.start()) {
    ::_exit(1);
  }
  for (;;) {
    shared.committed.store(profiler.stats().rows_captured, std::memory_order_release);
  }
}

[[noreturn]] void recover_and_exit(const std::string& ring) {
  ::_exit(recover_ring(ring) ? 0 : 1);
}

class KillStress : public TemporaryFolderTest {
 protected:
  void SetUp() override {
    TemporaryFolderTest::SetUp();
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared_ = new (memory) Shared;
  }
  void TearDown() override {
    ::munmap(shared_, sizeof(Shared));
    TemporaryFolderTest::TearDown();
  }
  void kill_after(pid_t child, std::uint64_t microseconds) {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
  }
  void one_round(int round);
  void check(const std::string& tsv, std::uint64_t committed);

  const unsigned seed_ = test::seed();
  std::mt19937 random_{seed_};
  Shared* shared_ = nullptr;
};

void KillStress::check(const std::string& tsv, std::uint64_t committed) {
  std::istringstream file(text(tsv));
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  std::uint64_t expected = 0;
  std::uint64_t last_time = 0;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::uint64_t time = 0;
    std::uint64_t number = 0;
    std::uint64_t check = 0;
    ASSERT_TRUE(cells >> time >> number >> check) << line;
    ASSERT_EQ(number, ++expected);
    ASSERT_EQ(check, number * 0x9E3779B97F4A7C15U);
    ASSERT_GT(time, last_time);
    last_time = time;
  }
  ASSERT_GE(expected, committed);
}

void KillStress::one_round(int round) {
  const std::string name = in_folder("run" + std::to_string(round));
  const std::string output = name + (round % 2 == 0 || !has_zstd() ? ".tsv" : ".tsv.zst");
  const std::size_t slots = 2 + random_() % 6;
  const std::size_t rows = 1 + random_() % 200;
  shared_->committed.store(0);
  const pid_t recorder = ::fork();
  if (recorder == 0) {
    record_until_killed(output, name + ".ring", slots, rows, *shared_);
  }
  while (shared_->committed.load(std::memory_order_acquire) == 0) {
    ASSERT_EQ(::waitpid(recorder, nullptr, WNOHANG), 0)
        << "the recorder ended before it was killed";
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  kill_after(recorder, random_() % 20'000);
  const std::uint64_t committed = shared_->committed.load();
  if (random_() % 3 == 0) {
    const pid_t recovery = ::fork();
    if (recovery == 0) {
      recover_and_exit(name + ".ring");
    }
    kill_after(recovery, random_() % 2'000);
  }
  if (std::filesystem::exists(name + ".ring")) {
    const Result<Recovery> recovered = recover_ring(name + ".ring");
    ASSERT_TRUE(recovered) << recovered.error().message;
  }
  check(output, committed);
  std::filesystem::remove(output);
  for (const char* ending : {".gaps.tsv", ".meta.json"}) {
    std::filesystem::remove(name + ending);
  }
}

TEST_F(KillStress, NoCommittedRowIsLostDoubledOrTorn) {
#if KYMO_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer does not follow a fork into threads";
#endif
  const int rounds = ::getenv("KYMO_TEST_LONG") != nullptr ? 1000 : 50;
  for (int round = 0; round < rounds && !HasFatalFailure(); ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed_) + ", round " + std::to_string(round));
    one_round(round);
  }
}

}  // namespace
}  // namespace kymo
