#include "recorder/programs/mapped_counters.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "base/file.h"
#include "base/proc/process.h"
#include "kymo/counter_file.h"
#include "kymo/registry.h"
#include "recorder/metrics/counter_file_layout.h"
#include "recorder/metrics/registry_access.h"
#include "support/stop_child.h"
#include "support/temporary_directory.h"

namespace kymo::probe {
namespace {

using Values = std::map<std::string, std::vector<std::uint64_t>>;

Values read(const MappedCounters& counters) {
  Values values;
  const std::vector<MappedMetric> metrics = counters.metrics().value();
  for (const MappedMetric& metric : metrics) {
    auto& columns = values[metric.metric.name];
    columns.resize(metric.base_sums.size());
    counters.sum(metric, columns.data());
  }
  return values;
}

class MappedCountersTest : public ::testing::Test {
 public:
  ~MappedCountersTest() override { end(); }

 protected:
  // Starts the publisher and waits until it is ready. Returns false if it ended.
  bool start(const std::string& threads = "8") {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::string program = PUBLISHER_PROGRAM;
    std::string count = threads;
    char* words[] = {program.data(), path_.data(), count.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, words, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::string said(512, '\0');
    const ssize_t got = ::read(ends[0], said.data(), said.size());
    said_ = said.substr(0, got < 0 ? 0 : static_cast<std::size_t>(got));
    ::close(ends[0]);
    return said_ == "ready\n";
  }
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = 0;
    }
  }
  std::string refusal() const {
    const auto counters = MappedCounters::open(path_);
    return counters ? "opened" : counters.error().message;
  }

  test::TemporaryDirectory folder_;
  std::string path_ = folder_.path() + "/counters";
  std::string said_;
  pid_t pid_ = 0;
};

TEST_F(MappedCountersTest, ShowsWhatTheProgramCounts) {
  ASSERT_TRUE(start()) << said_;
  ASSERT_EQ(find_counter_file(pid_), path_);
  const auto counters = MappedCounters::open(path_).value();
  EXPECT_EQ(counters->pid(), pid_);
  Values values = read(*counters);
  EXPECT_EQ(values["steps"], (std::vector<std::uint64_t>{0, 8000}))
      << "the counts of a child are not included";
  const std::uint64_t before = values["ticks"][0];
  EXPECT_TRUE(test::eventually([&] { return read(*counters)["ticks"][0] > before; }));
  EXPECT_EQ(counters->unlisted(), 0U);
}

// The program forks before it says that it is ready. What the child adds and registers is only in
// the child. The counters of the parent continue.
TEST_F(MappedCountersTest, AForkedChildCountsForItself) {
  for (const char* threads : {"8", "1"}) {  // "1": the threads, and the child, share a block
    ASSERT_TRUE(start(threads)) << said_;
    const auto counters = MappedCounters::open(path_).value();
    EXPECT_EQ(counters->pid(), pid_);
    Values values = read(*counters);
    EXPECT_EQ(values.count("a_childs"), 0U);
    EXPECT_EQ(values["steps"], (std::vector<std::uint64_t>{0, 8000}));
    const std::uint64_t before = values["ticks"][0];
    EXPECT_TRUE(test::eventually([&] { return read(*counters)["ticks"][0] > before; }));
    end();
  }
}

TEST_F(MappedCountersTest, MoreThreadsThanItHasRoomForLoseNothing) {
  ASSERT_TRUE(start("1")) << said_;
  const auto counters = MappedCounters::open(path_).value();
  EXPECT_EQ(read(*counters)["steps"], (std::vector<std::uint64_t>{0, 8000}));
  EXPECT_TRUE(test::eventually([&] { return read(*counters)["ticks"][0] > 2; }));
}

TEST_F(MappedCountersTest, ReadsAProgramThatIsStopped) {
  ASSERT_TRUE(start()) << said_;
  const auto counters = MappedCounters::open(path_).value();
  ASSERT_TRUE(test::stop_child(pid_));
  const Values stopped = read(*counters);
  EXPECT_EQ(read(*counters), stopped);
  EXPECT_EQ(MappedCounters::open(path_).value()->pid(), pid_);
  ::kill(pid_, SIGCONT);
  EXPECT_TRUE(test::eventually([&] { return read(*counters) != stopped; }));
}

// A program in a container writes the pid that it has there.
TEST_F(MappedCountersTest, ReadsAProgramThatHasAnotherPidInItsOwnNamespace) {
  ASSERT_TRUE(start()) << said_;
  const std::uint32_t inside = 1;
  const FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(file.get(), &inside, sizeof inside, offsetof(CounterFileHeader, pid)),
            static_cast<ssize_t>(sizeof inside));
  EXPECT_NE(refusal().find("process 1 has ended"), std::string::npos) << refusal();
  const auto counters = MappedCounters::open(path_, pid_);
  ASSERT_TRUE(counters) << counters.error().message;
  EXPECT_EQ(read(**counters).size(), 2U);
  EXPECT_FALSE(MappedCounters::open(path_, ::getppid())) << "it has not mapped it";
}

TEST_F(MappedCountersTest, CountersRegisteredLaterAppear) {
  ASSERT_TRUE(start()) << said_;
  const auto counters = MappedCounters::open(path_).value();
  EXPECT_EQ(read(*counters).size(), 2U);
  ::kill(pid_, SIGUSR1);
  EXPECT_TRUE(test::eventually([&] {
    Values values = read(*counters);
    return values.size() == 6 && values["more"] == std::vector<std::uint64_t>{7} &&
           values["wait_us_sum"] == std::vector<std::uint64_t>{5};
  }));
  // The sum has a unit, so that a report has the mean of a wait in it.
  std::map<std::string, Unit> units;
  const std::vector<MappedMetric> metrics = counters->metrics().value();
  for (const MappedMetric& metric : metrics) {
    units[metric.metric.name] = metric.metric.unit;
    EXPECT_EQ(metric.metric.help, "Of the test");
  }
  EXPECT_EQ(units["wait_us"], Unit::count);
  EXPECT_EQ(units["wait_us_sum"], Unit::microseconds);
  EXPECT_EQ(units["wait_us_count"], Unit::count);
}

TEST_F(MappedCountersTest, TheNextProgramTakesTheFileOfOneThatIsGone) {
  ASSERT_TRUE(start()) << said_;
  const pid_t first = pid_;
  pid_ = 0;
  EXPECT_FALSE(start());
  EXPECT_NE(said_.find("process " + std::to_string(first) + ", which runs"), std::string::npos)
      << said_;
  end();
  ::kill(first, SIGKILL);
  ::waitpid(first, nullptr, 0);
  EXPECT_NE(refusal().find("is gone: process " + std::to_string(first)), std::string::npos);
  EXPECT_TRUE(start()) << said_;
}

TEST_F(MappedCountersTest, AnotherFileIsNeverOverwritten) {
  folder_.file("counters", std::string(4096, 'x'));
  EXPECT_FALSE(start());
  EXPECT_NE(said_.find("is not a counter file"), std::string::npos) << said_;
  EXPECT_EQ(std::filesystem::file_size(path_), 4096U);
}

TEST_F(MappedCountersTest, PublishingComesBeforeTheFirstAdd) {
  Registry registry;
  registry.counter({"early", "Help", Kind::counter, Unit::count, {}}).value().add();
  const Result<void> published = publish_counters(path_);
  ASSERT_FALSE(published);
  EXPECT_NE(published.error().message.find("publish before the first add"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_NE(publish_counters(path_, {0600, 0}).error().message.find("threads = 0"),
            std::string::npos);
}

// A counter file of this process, mapped in the way of the check, so that the test can damage it.
class DamagedCountersTest : public MappedCountersTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(start()) << said_;
    std::filesystem::copy_file(path_, path_ + ".copy");
    end();
    path_ += ".copy";
    const FileDescriptor fd(::open(path_.c_str(), O_RDWR));
    bytes_ = std::filesystem::file_size(path_);
    memory_ = static_cast<char*>(
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    ASSERT_NE(memory_, MAP_FAILED);
    header()->pid = static_cast<std::uint32_t>(::getpid());
  }
  void TearDown() override { ::munmap(memory_, bytes_); }
  CounterFileHeader* header() { return reinterpret_cast<CounterFileHeader*>(memory_); }

  char* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

TEST_F(DamagedCountersTest, ForeignTruncatedAndOfAnotherVersion) {
  ASSERT_EQ(refusal(), "opened");
  header()->format_version = 9;
  EXPECT_NE(refusal().find("format_version is 9, this program reads 2"), std::string::npos);
  header()->format_version = 1;
  EXPECT_EQ(refusal(), "opened");
  header()->format_version = kCounterFileVersion;
  header()->magic[0] = 'k';
  EXPECT_NE(refusal().find("does not begin with KYMOCNTR"), std::string::npos);
  header()->magic[0] = 'K';
  for (std::uint64_t* field : {&header()->blocks, &header()->cells, &header()->blocks_offset,
                               &header()->directory_capacity, &header()->directory_offset}) {
    const std::uint64_t was = *field;
    for (const std::uint64_t bad : {std::uint64_t{0}, was + 1, UINT64_MAX}) {
      *field = bad;
      EXPECT_NE(refusal(), "opened");
    }
    *field = was;
  }
  std::filesystem::resize_file(path_, bytes_ - 8);
  EXPECT_NE(refusal().find("is truncated"), std::string::npos);
  std::filesystem::resize_file(path_, 100);
  EXPECT_NE(refusal().find("shorter than its header"), std::string::npos);
  std::filesystem::remove(path_);
  EXPECT_NE(refusal().find("No such file"), std::string::npos);
}

TEST_F(DamagedCountersTest, NamesThatAnEarlierLibraryAcceptedAreRead) {
  std::string_view directory(memory_ + header()->directory_offset, header()->directory_bytes);
  for (const auto& [now, earlier] : {std::pair{"ticks", "t__ms"}, {"steps", "st_us"}}) {
    const std::size_t at = directory.find(now);
    ASSERT_NE(at, std::string_view::npos);
    std::memcpy(memory_ + header()->directory_offset + at, earlier, 5);
  }
  const auto counters = MappedCounters::open(path_).value();
  Registry registry;
  const std::vector<MappedMetric> metrics = counters->metrics().value();
  for (const MappedMetric& metric : metrics) {
    EXPECT_TRUE(
        RegistryAccess::add_foreign(registry, metric.metric, [](std::span<std::uint64_t>) {}));
  }
  const std::vector<Column> columns = registry.columns();
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_EQ(columns[0].name, "t__ms");
  EXPECT_EQ(columns[1].name, "st_us[up]");
  const Result<void> again =
      RegistryAccess::add_foreign(registry, metrics[0].metric, [](std::span<std::uint64_t>) {});
  EXPECT_EQ(again.error().code, Code::already_exists);
  EXPECT_FALSE(registry.callback(metrics[0].metric, [] { return 1U; }))
      << "the program itself must not register this name";
}

TEST_F(DamagedCountersTest, ADamagedDirectoryIsSaidSoAndNeverReadPast) {
  const auto counters = MappedCounters::open(path_).value();
  ASSERT_TRUE(counters->metrics());
  char* directory = memory_ + header()->directory_offset;
  const std::size_t used = header()->directory_bytes.load();
  const std::string whole(directory, used);
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    for (int n = 0; n <= i % 3; ++n) {
      directory[random() % used] = static_cast<char>(random());
    }
    if (const auto metrics = counters->metrics(); metrics) {
      static_cast<void>(read(*counters));
    } else {
      ++refused;
      EXPECT_EQ(metrics.error().code, Code::data_loss);
    }
    std::memcpy(directory, whole.data(), used);
  }
  EXPECT_GT(refused, 1000);
  header()->directory_bytes.store(UINT64_MAX);
  EXPECT_FALSE(counters->metrics());
  header()->blocks_used.store(UINT64_MAX);
  header()->directory_bytes.store(used);
  static_cast<void>(read(*counters));
}

}  // namespace
}  // namespace kymo::probe
