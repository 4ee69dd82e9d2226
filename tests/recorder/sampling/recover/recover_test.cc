#include "kymo/recover.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/sink.h"
#include "recorder/metrics/metric_rules.h"
#include "recorder/sampling/files/metadata.h"
#include "recorder/sampling/files/recording_parts.h"
#include "recorder/sampling/recover/ring_aside.h"
#include "recorder/sampling/ring/ring_reader.h"
#include "support/make_ring.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

// Stands in for a recorder that is killed at a chosen point: the objects are destroyed, and the
// files stay.
class RecoverTest : public TemporaryFolderTest {
 protected:
  void SetUp() override {
    TemporaryFolderTest::SetUp();
    info_.columns = columns_of({"steps", "Steps", Kind::counter, Unit::count, {}});
    info_.interval = std::chrono::nanoseconds(10);
    info_.slots = 3;
    info_.rows_per_slot = 4;
    tsv_ = in_folder("run.tsv");
    ring_path_ = in_folder("ring");
  }
  std::unique_ptr<Ring> start(const std::string& output) {
    auto ring = std::make_unique<Ring>(
        RingMemory::create_file({3, 4, 2}, ring_path_, describe_ring(info_, output).dump())
            .value());
    if (!output.empty()) {
      files_.emplace(RecordingFiles::create(output, info_, {}).value());
      ring->accept_output({0, files_->bytes()});
    }
    return ring;
  }
  // Takes a slot and commits `count` rows, with numbers that continue after the last one.
  Ring::Slot fill(Ring& ring, std::size_t count) {
    Ring::Slot slot;
    EXPECT_TRUE(ring.try_take_free(&slot));
    for (std::size_t i = 0; i < count; ++i) {
      const std::array<std::uint64_t, 2> row{number_ * 10 + 1, number_};
      ring.put_row(slot, i, row.data());
      ++number_;
    }
    return slot;
  }
  static Rows rows_of(const Ring::Slot& slot, std::size_t count) { return {slot.rows, count, 2}; }
  std::vector<std::string> numbered(std::uint64_t count) {
    std::vector<std::string> expected = {"Time (ns)\tsteps"};
    for (std::uint64_t i = 0; i < count; ++i) {
      expected.push_back(std::to_string(i * 10 + 1) + '\t' + std::to_string(i));
    }
    return expected;
  }
  std::string refusal(const std::optional<std::string>& output = std::nullopt) {
    const Result<Recovery> result = recover_ring(ring_path_, output);
    return result ? "recovered" : result.error().message;
  }

  RecordingInfo info_;
  std::string tsv_;
  std::string ring_path_;
  std::optional<RecordingFiles> files_;
  std::uint64_t number_ = 0;
};

TEST_F(RecoverTest, AppendsWhatIsInTheCollectorsHandAndInTheQueue) {
  {
    auto ring = start(tsv_);
    ring->hand_over(fill(*ring, 4));
    fill(*ring, 3);
  }
  const Recovery recovery = recover_ring(ring_path_).value();
  EXPECT_EQ(recovery.rows, 7U);
  EXPECT_EQ(recovery.cut_bytes, 0U);
  EXPECT_EQ(lines(tsv_), numbered(7));
  EXPECT_FALSE(std::filesystem::exists(ring_path_));
  const auto meta = nlohmann::json::parse(content(in_folder("run.meta.json")));
  EXPECT_EQ(meta["state"], "recovered");
  EXPECT_EQ(meta["stats"]["rows_written"], 7);
  EXPECT_EQ(meta["stats"]["ticks_due"], 7);
}

TEST_F(RecoverTest, TimingOfTheRowsUntilTheKillWasTakenForThatOfAll) {
  ProfilerStats stats;
  stats.rows_captured = stats.rows_on_time = 4;
  stats.timing_error_ns = stats.timing_error_max_ns = stats.timing_error_p999_ns = 5;
  stats.spin_ns = stats.wakeup_latency_ns = 6;
  const auto recovered = [&](const std::string& name, std::size_t more) {
    ring_path_ = in_folder(name + ".ring");
    number_ = 0;
    {
      auto ring = start(in_folder(name + ".tsv"));
      ring->hand_over(fill(*ring, 4));
      EXPECT_TRUE(files_->write_metadata(stats, "running"));
      fill(*ring, more);
    }
    EXPECT_TRUE(recover_ring(ring_path_, std::nullopt));
    return nlohmann::json::parse(content(in_folder(name + ".meta.json")))["stats"];
  };
  const auto more = recovered("more", 3);
  EXPECT_EQ(more["rows_captured"], 7);
  for (const char* figure : {"rows_on_time", "timing_error_ns", "timing_error_max_ns",
                             "timing_error_p999_ns", "spin_ns", "wakeup_latency_ns"}) {
    EXPECT_FALSE(more.contains(figure)) << figure;
  }
  EXPECT_EQ(recovered("same", 0)["rows_on_time"], 4)
      << "without new rows, the figures of the metadata must be kept";
}

TEST_F(RecoverTest, WritesASlotAgainThatWasHalfWritten) {
  {
    auto ring = start(tsv_);
    const Ring::Slot slot = fill(*ring, 4);
    ring->begin_output(slot, {0, files_->bytes()});
    std::ofstream(tsv_, std::ios::app) << "1\t0\n11\t1\n2";
  }
  const Recovery recovery = recover_ring(ring_path_).value();
  EXPECT_EQ(recovery.cut_bytes, 10U);
  EXPECT_EQ(lines(tsv_), numbered(4));
}

TEST_F(RecoverTest, WritesASlotOnceThatWasWrittenButNotAccepted) {
  {
    auto ring = start(tsv_);
    const Ring::Slot slot = fill(*ring, 4);
    ring->begin_output(slot, {0, files_->bytes()});
    ASSERT_TRUE(files_->append(rows_of(slot, 4), 0));
  }
  EXPECT_EQ(recover_ring(ring_path_).value().rows, 4U);
  EXPECT_EQ(lines(tsv_), numbered(4));
}

TEST_F(RecoverTest, LeavesASlotThatWasAcceptedButNotGivenBack) {
  {
    auto ring = start(tsv_);
    const Ring::Slot slot = fill(*ring, 4);
    ring->begin_output(slot, {0, files_->bytes()});
    ASSERT_TRUE(files_->append(rows_of(slot, 4), 0));
    ring->accept_output({0, files_->bytes()});
    fill(*ring, 2);
  }
  EXPECT_EQ(recover_ring(ring_path_).value().rows, 2U);
  EXPECT_EQ(lines(tsv_), numbered(6));
}

// The recorder was killed after it had begun the next part and before the ring had noted that. The
// rows must be in the part that was accepted last, and only there.
TEST_F(RecoverTest, GoesOnInThePartThatWasAcceptedLastAndRemovesTheOneBegunAfterIt) {
  {
    auto ring = std::make_unique<Ring>(
        RingMemory::create_file({3, 4, 2}, ring_path_, describe_ring(info_, tsv_).dump()).value());
    RecordingParts parts = RecordingParts::create(tsv_, {.rotate_bytes = 40}, info_).value();
    const auto accept = [&] {
      const OutputPlace place = parts.place();
      ring->accept_output({place.file, place.bytes});
    };
    accept();
    for (int slot = 0; slot < 4; ++slot) {
      const Ring::Slot filled = fill(*ring, 4);
      const OutputPlace place = parts.place();
      ring->begin_output(filled, {place.file, place.bytes});
      ASSERT_TRUE(parts.write(rows_of(filled, 4)));
      if (slot < 2) {
        accept();
      } else if (slot == 2) {
        break;  // part 3 has begun
      }
      Ring::Slot handed;
      Rows rows;
      ring->hand_over(filled);
      ASSERT_TRUE(ring->try_take_full(&handed, &rows));
      ring->give_back(handed);
    }
    ASSERT_TRUE(std::filesystem::exists(in_folder("run.3.tsv")));
  }
  const Recovery recovery = recover_ring(ring_path_).value();
  EXPECT_EQ(recovery.output, in_folder("run.2.tsv"));
  EXPECT_EQ(recovery.rows, 4U);
  EXPECT_FALSE(std::filesystem::exists(in_folder("run.3.tsv")));
  EXPECT_FALSE(std::filesystem::exists(in_folder("run.3.meta.json")));
  std::vector<std::string> all = lines(tsv_);
  for (const char* part : {"run.1.tsv", "run.2.tsv"}) {
    const auto more = lines(in_folder(part));
    all.insert(all.end(), more.begin() + 1, more.end());
  }
  EXPECT_EQ(all, numbered(12));
  const auto meta = nlohmann::json::parse(content(in_folder("run.2.meta.json")));
  EXPECT_EQ(meta["state"], "recovered");
  EXPECT_FALSE(meta["part"].contains("next"));
}

TEST_F(RecoverTest, DoesNotYieldRowsThatWereCountedAsMissed) {
  {
    auto ring = start(tsv_);
    const Ring::Slot slot = fill(*ring, 4);
    ring->begin_output(slot, {0, files_->bytes()});
    ring->forget_rows(slot);
  }
  EXPECT_EQ(recover_ring(ring_path_).value().rows, 0U);
  EXPECT_EQ(lines(tsv_), numbered(0));
}

TEST_F(RecoverTest, YieldsTheRowsOfARecorderWithoutAFileWhereAskedTo) {
  {
    auto ring = start("");
    fill(*ring, 2);
  }
  EXPECT_NE(refusal().find("name one with --output"), std::string::npos);
  EXPECT_EQ(recover_ring(ring_path_, in_folder("found.tsv")).value().rows, 2U);
  EXPECT_EQ(lines(in_folder("found.tsv")), numbered(2));
  EXPECT_EQ(nlohmann::json::parse(content(in_folder("found.meta.json")))["state"], "recovered");
}

TEST_F(RecoverTest, RefusesARingInUse) {
  const auto ring = start(tsv_);
  EXPECT_NE(refusal().find("is in use by process " + std::to_string(::getpid())),
            std::string::npos);
  const auto again = RingMemory::create_file({3, 4, 2}, ring_path_, "{}");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("is in use by a running recorder"), std::string::npos);
}

TEST_F(RecoverTest, MissedTicksWereCountedButNotListed) {
  const auto leave = [&](const std::string& output) {
    number_ = 0;
    auto ring = start(output);
    ring->hand_over(fill(*ring, 2));  // the ticks 0 and 1
    number_ = 5;
    fill(*ring, 2);  // the ticks 5 and 6
  };
  ProfilerStats stats;
  stats.rows_captured = 4;
  stats.bytes_written = 3;
  leave(tsv_);
  files_->add_gap({20, 30, 1, MissCause::frozen});
  ASSERT_TRUE(files_->write_metadata(stats, "running"));
  ASSERT_TRUE(recover_ring(ring_path_));
  const std::string header = "Start (ns)\tEnd (ns)\tTicks\tCause";
  EXPECT_EQ(lines(in_folder("run.gaps.tsv")),
            (std::vector<std::string>{header, "20\t30\t1\tfrozen", "30\t50\t2\tlate"}));
  const auto meta = nlohmann::json::parse(content(in_folder("run.meta.json")));
  EXPECT_EQ(meta["longest_gaps"].size(), 2U);
  EXPECT_EQ(meta["longest_gaps"][0]["ticks"], 2);
  EXPECT_EQ(meta["stats"]["missed_late"], 2);
  EXPECT_EQ(meta["stats"]["missed_frozen"], 1);
  EXPECT_EQ(meta["stats"]["ticks_due"], 7);
  EXPECT_EQ(meta["stats"]["bytes_written"], std::filesystem::file_size(tsv_));
  EXPECT_FALSE(meta["stats"].contains("late_waited")) << "nobody knows why they were late";
  leave(in_folder("damaged.tsv"));
  files_->add_gap({40, 30, 1, MissCause::late});
  ASSERT_TRUE(recover_ring(ring_path_)) << "a gap that ends before it begins is none";
  EXPECT_EQ(lines(in_folder("damaged.gaps.tsv")).back(), "20\t50\t3\tlate");
  // Before, there was no list at all.
  leave("");
  ASSERT_TRUE(recover_ring(ring_path_, in_folder("new.tsv")));
  EXPECT_EQ(lines(in_folder("new.gaps.tsv")),
            (std::vector<std::string>{header, "20\t50\t3\tlate"}));
}

TEST_F(RecoverTest, RowsThatAFullDiskRefusedUntilTheKillAreSinkErrors) {
  for (const bool until_the_kill : {true, false}) {
    number_ = 0;
    {
      auto ring = start(tsv_ = in_folder(until_the_kill ? "full.tsv" : "free.tsv"));
      for (const bool refused : {!until_the_kill, until_the_kill}) {
        const Ring::Slot slot = fill(*ring, refused ? 3 : 1);
        ring->begin_output(slot, {0, files_->bytes()});
        if (refused) {
          ring->forget_rows(slot);
        } else {
          ASSERT_TRUE(files_->append(rows_of(slot, 1), 0));
        }
        ring->accept_output({0, files_->bytes()});
      }
      number_ += until_the_kill ? 0 : 3;
      ring->hand_over(fill(*ring, 2));
    }
    EXPECT_EQ(recover_ring(ring_path_).value().rows, 2U);
    EXPECT_EQ(lines(tsv_.substr(0, tsv_.size() - 4) + ".gaps.tsv").back(),
              until_the_kill ? "10\t40\t3\tsink_error" : "40\t70\t3\tlate");
  }
}

TEST_F(RecoverTest, AForkedChildKeptTheRingLockedByItsMapping) {
  auto ring = start(tsv_);
  fill(*ring, 3);
  std::array<int, 2> begun{};
  ASSERT_EQ(::pipe(begun.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(::write(begun[1], "x", 1));
    for (;;) ::pause();
  }
  char byte = 0;
  EXPECT_EQ(::read(begun[0], &byte, 1), 1);
  ring.reset();  // as if the recorder had been killed
  const Result<Recovery> recovered = recover_ring(ring_path_);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(begun[0]);
  ::close(begun[1]);
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->rows, 3U);
}

TEST_F(RecoverTest, ANextRecorderIsToldOfARingLeftBehind) {
  start(tsv_).reset();
  const auto again = RingMemory::create_file({3, 4, 2}, ring_path_, "{}");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("kymo recover " + ring_path_), std::string::npos);
}

TEST_F(RecoverTest, AnOrdinaryFileWasTakenForARingLeftBehind) {
  std::ofstream(ring_path_) << "Time (ns)\tsteps\n";
  for (const std::string& path : {ring_path_, in_folder("")}) {
    const auto refused = RingMemory::create_file({3, 4, 2}, path, "{}");
    ASSERT_FALSE(refused);
    EXPECT_EQ(
        refused.error().message,
        "cannot create the ring " + path +
            ": a file that is not a ring has this name, and was not changed; choose another name");
  }
  EXPECT_EQ(content(ring_path_), "Time (ns)\tsteps\n");
  EXPECT_NE(RingMemory::create_file({3, 4, 2}, in_folder("none/ring"), "{}")
                .error()
                .message.find("create its folder first"),
            std::string::npos);
}

TEST_F(RecoverTest, RefusesARecordingThatWasChanged) {
  start(tsv_).reset();
  std::filesystem::resize_file(tsv_, 3);
  EXPECT_NE(refusal().find("it was changed since"), std::string::npos);
  std::filesystem::remove(tsv_);
  EXPECT_NE(refusal().find("No such file"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(ring_path_));
}

TEST_F(RecoverTest, RefusesARingARecordingAndALinkOfAnothers) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root to make files of another user";
  }
  constexpr uid_t kNobody = 65534;
  { fill(*start(tsv_), 3); }
  const std::string before = content(tsv_);
  ASSERT_EQ(::chown(ring_path_.c_str(), kNobody, kNobody), 0);
  EXPECT_NE(refusal().find("belongs to uid 65534 and this is uid 0"), std::string::npos)
      << refusal();
  EXPECT_NE(refusal(in_folder("new.tsv")).find("recover it as its owner"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(in_folder("new.tsv")));
  ASSERT_EQ(::chown(ring_path_.c_str(), 0, 0), 0);

  ASSERT_EQ(::chown(tsv_.c_str(), kNobody, kNobody), 0);
  EXPECT_NE(refusal().find("belongs to uid 65534"), std::string::npos) << refusal();
  ASSERT_EQ(::chown(tsv_.c_str(), 0, 0), 0);
  std::filesystem::rename(tsv_, in_folder("elsewhere"));
  std::filesystem::create_symlink(in_folder("elsewhere"), tsv_);
  EXPECT_NE(refusal().find("is a link"), std::string::npos) << refusal();
  EXPECT_EQ(content(in_folder("elsewhere")), before);
  std::filesystem::remove(tsv_);
  std::filesystem::rename(in_folder("elsewhere"), tsv_);
  EXPECT_EQ(refusal(), "recovered");
}

TEST_F(RecoverTest, NeverWaitsForAPipe) {
  { fill(*start(tsv_), 3); }
  std::filesystem::rename(tsv_, in_folder("kept"));
  ASSERT_EQ(::mkfifo(tsv_.c_str(), 0600), 0);
  EXPECT_NE(refusal().find("is no regular file"), std::string::npos) << refusal();
  std::filesystem::remove(tsv_);
  std::filesystem::rename(in_folder("kept"), tsv_);
  for (const char* name : {"run.1.tsv", "run.gaps.tsv", "run.meta.json"}) {
    std::filesystem::remove(in_folder(name));
    ASSERT_EQ(::mkfifo(in_folder(name).c_str(), 0600), 0) << name;
  }
  EXPECT_EQ(refusal(), "recovered");
  EXPECT_EQ(lines(tsv_), numbered(3));
  EXPECT_TRUE(std::filesystem::is_fifo(in_folder("run.1.tsv")));
}

TEST_F(RecoverTest, AnotherUsersRingIsSetAside) {
  start(tsv_).reset();
  if (::geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    ASSERT_EQ(::chown(ring_path_.c_str(), kNobody, kNobody), 0);
  }
  const Result<std::string> aside = move_ring_aside(ring_path_);
  ASSERT_TRUE(aside) << aside.error().message;
  EXPECT_EQ(*aside, ring_path_ + ".left-1");
  EXPECT_FALSE(std::filesystem::exists(ring_path_));
  EXPECT_TRUE(std::filesystem::exists(*aside));
}

TEST_F(RecoverTest, SurvivesTheTruncationOfAnotherUsersRing) {
  start(tsv_).reset();
  const std::string whole = content(ring_path_);
  const FileDescriptor theirs(::open(ring_path_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(theirs.valid());
  if (::geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    ASSERT_EQ(::fchown(theirs.get(), kNobody, kNobody), 0);
  }
  constexpr int kTruncations = 20000;
  std::atomic<bool> ended{false};
  std::thread owner([&] {
    for (int n = 0; n < kTruncations; ++n) {
      EXPECT_EQ(::ftruncate(theirs.get(), 0), 0);
      EXPECT_EQ(::pwrite(theirs.get(), whole.data(), whole.size(), 0),
                static_cast<ssize_t>(whole.size()));
    }
    ended.store(true, std::memory_order_release);
  });
  while (!ended.load(std::memory_order_acquire)) {
    if (::geteuid() == 0) {  // root would remove its own ring
      EXPECT_NE(refusal(), "recovered");
    }
    const Result<std::string> aside = move_ring_aside(ring_path_);
    if (aside) std::filesystem::rename(*aside, ring_path_);
  }
  owner.join();
}

TEST_F(RecoverTest, AProgramThatWasKilledStartsAgain) {
  {
    auto ring = start(tsv_);
    ring->hand_over(fill(*ring, 4));
  }
  Registry registry;
  const auto steps = registry.counter({"steps", "Steps", Kind::counter, Unit::count, {}});
  ProfilerOptions options;
  options.sink = make_tsv_sink(in_folder("again.tsv"));
  options.ring_file = ring_path_;
  Profiler profiler(registry, options);
  const Result<void> started = profiler.start();
  ASSERT_TRUE(started) << started.error().message;
  const std::string left = ring_path_ + ".left-1";
  const auto warnings = profiler.warnings();
  EXPECT_TRUE(std::any_of(warnings.begin(), warnings.end(), [&](const std::string& line) {
    return line.find("moved to " + left) != std::string::npos;
  })) << nlohmann::json(warnings);
  EXPECT_TRUE(profiler.stop());
  EXPECT_EQ(recover_ring(left).value().rows, 4U);
  EXPECT_EQ(lines(tsv_), numbered(4));
}

TEST_F(RecoverTest, AStartThatFailsLeavesTheRingWhereItWas) {
  {
    auto ring = start(tsv_);
    ring->hand_over(fill(*ring, 4));
  }
  Registry registry;
  const auto steps = registry.counter({"steps", "Steps", Kind::counter, Unit::count, {}});
  ProfilerOptions options;
  options.sink = make_tsv_sink(tsv_);  // it exists: the program uses one name for all its runs
  options.ring_file = ring_path_;
  Profiler profiler(registry, options);
  const Result<void> started = profiler.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::already_exists) << started.error().message;
  EXPECT_EQ(profiler.warnings(), std::vector<std::string>{});
  EXPECT_FALSE(std::filesystem::exists(ring_path_ + ".left-1"));
  EXPECT_EQ(recover_ring(ring_path_).value().rows, 4U);
  EXPECT_EQ(lines(tsv_), numbered(4));
}

TEST_F(RecoverTest, ARingInUseIsNotMovedByAStart) {
  const auto ring = start(tsv_);
  Registry registry;
  const auto steps = registry.counter({"steps", "Steps", Kind::counter, Unit::count, {}});
  ProfilerOptions options;
  options.sink = make_tsv_sink(in_folder("again.tsv"));
  options.ring_file = ring_path_;
  Profiler profiler(registry, options);
  const Result<void> started = profiler.start();
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("in use"), std::string::npos) << started.error().message;
  EXPECT_FALSE(std::filesystem::exists(ring_path_ + ".left-1"));
}

TEST_F(RecoverTest, RefusesAFileThatIsNotTheRingsRecording) {
  { fill(*start(tsv_), 3); }
  const std::string other = "root:x:0:0:root:/root:/bin/bash\n" + std::string(2000, 'x');
  std::ofstream(tsv_, std::ios::trunc) << other;
  EXPECT_NE(refusal().find("does not begin like the recording"), std::string::npos) << refusal();
  EXPECT_EQ(content(tsv_), other);
}

TEST_F(RecoverTest, AFileInTheWayOfANewRingIsNotUsed) {
  std::ofstream(in_folder("precious")) << "precious";
  std::filesystem::create_symlink(in_folder("precious"), ring_path_ + ".new");
  EXPECT_TRUE(RingMemory::create_file({3, 4, 2}, ring_path_, "{}").ok());
  EXPECT_EQ(content(in_folder("precious")), "precious");
  EXPECT_FALSE(std::filesystem::exists(ring_path_ + ".new"));
}

TEST_F(RecoverTest, RefusesWhatIsNoRing) {
  EXPECT_NE(refusal().find("No such file"), std::string::npos);
  std::ofstream(ring_path_) << "short";
  EXPECT_NE(refusal().find("shorter than a ring's header"), std::string::npos);
  std::ofstream(ring_path_) << std::string(5000, 'x');
  EXPECT_NE(refusal().find("does not begin with KYMORING"), std::string::npos);
}

TEST_F(RecoverTest, RefusesATruncatedRingAndOneOfAnotherVersion) {
  start(tsv_).reset();
  std::fstream file(ring_path_, std::ios::in | std::ios::out | std::ios::binary);
  const std::uint32_t newer = 99;
  file.seekp(8);
  file.write(reinterpret_cast<const char*>(&newer), sizeof newer);
  file.flush();
  EXPECT_NE(refusal().find("format_version is 99, this program reads 2"), std::string::npos);
  file.seekp(8);
  file.write(reinterpret_cast<const char*>(&kRingFormatVersion), sizeof newer);
  file.close();
  std::filesystem::resize_file(ring_path_, std::filesystem::file_size(ring_path_) - 8);
  EXPECT_NE(refusal().find("is truncated"), std::string::npos);
}

TEST_F(RecoverTest, NeverTrustsAHeaderThatContradictsItself) {
  start(tsv_).reset();
  // The fields are: offset of the slots, number of slots, rows per slot, stride, size. (The
  // description is left out, because padding follows it, so it could be a byte longer.)
  for (const std::size_t field : {24U, 32U, 40U, 48U, 56U}) {
    std::fstream file(ring_path_, std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t was = 0;
    file.seekg(static_cast<std::streamoff>(field));
    file.read(reinterpret_cast<char*>(&was), sizeof was);
    for (const std::uint64_t bad : {std::uint64_t{0}, was + 1, UINT64_MAX, was << 40U}) {
      file.seekp(static_cast<std::streamoff>(field));
      file.write(reinterpret_cast<const char*>(&bad), sizeof bad);
      file.flush();
      EXPECT_NE(refusal(), "recovered") << "field at " << field << " = " << bad;
    }
    file.seekp(static_cast<std::streamoff>(field));
    file.write(reinterpret_cast<const char*>(&was), sizeof was);
  }
  EXPECT_EQ(refusal(), "recovered");
}

TEST_F(RecoverTest, CutsACompressedRecordingInMidFrameAndAppendsFrames) {
  if (!has_zstd()) {
    GTEST_SKIP() << "built without zstd";
  }
  const std::string zst = in_folder("run.tsv.zst");
  std::uint64_t half_frame = 0;
  {
    auto ring = start(zst);
    Ring::Slot slot = fill(*ring, 4);
    ring->begin_output(slot, {0, files_->bytes()});
    ASSERT_TRUE(files_->append(rows_of(slot, 4), 0));
    ring->accept_output({0, files_->bytes()});
    slot = fill(*ring, 4);
    const std::uint64_t accepted = files_->bytes();
    ring->begin_output(slot, {0, accepted});
    ASSERT_TRUE(files_->append(rows_of(slot, 4), 0));
    half_frame = (files_->bytes() - accepted) / 2;
    std::filesystem::resize_file(zst, accepted + half_frame);
    fill(*ring, 2);
  }
  const Result<Recovery> recovery = recover_ring(ring_path_);
  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_EQ(recovery->cut_bytes, half_frame);
  EXPECT_EQ(lines(zst), numbered(10));
  const auto meta = nlohmann::json::parse(content(in_folder("run.meta.json")));
  EXPECT_EQ(meta["stats"]["rows_written"], 10);
}

}  // namespace
}  // namespace kymo
