// Recovery of a ring with a damaged word, and recovery that is killed after each of its changes.
// Either way, each committed row is in the recording exactly once in the end, or nothing has changed.
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/sanitizers.h"
#include "kymo/recover.h"
#include "recorder/metrics/metric_rules.h"
#include "recorder/sampling/files/metadata.h"
#include "recorder/sampling/files/recording_parts.h"
#include "recorder/sampling/ring/ring.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

constexpr std::size_t kSlots = 4;
constexpr std::size_t kRowsPerSlot = 5;
constexpr std::ptrdiff_t kRowsLeft = 12;  // in the ring, of which the output has some
constexpr std::size_t kHeaderBytes = 128;
constexpr std::size_t kSlotHeaderBytes = 64;

using Files = std::map<std::string, std::string>;  // the contents by the names

class DamagedRingTest : public TemporaryFolderTest {
 protected:
  // In memory, because the files are made anew for each step.
  void SetUp() override {
    folder_ = "/dev/shm/kymo-test-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    info_.columns = columns_of({"steps", "Steps", Kind::counter, Unit::count, {}});
    info_.interval = std::chrono::nanoseconds(10);
    info_.slots = kSlots;
    info_.rows_per_slot = kRowsPerSlot;
    ring_path_ = in_folder("ring");
  }

  // Leaves the files of a killed recorder whose slots are in all states: free again, partly written
  // to the output, full, and in the collector's hand. `rotate_bytes`: of a part; 0: one part.
  void record(const std::string& name, std::uint64_t rotate_bytes) {
    tsv_ = in_folder(name);
    Ring ring(RingMemory::create_file({kSlots, kRowsPerSlot, 2}, ring_path_,
                                      describe_ring(info_, tsv_).dump())
                  .value());
    RecordingParts parts =
        RecordingParts::create(tsv_, {.rotate_bytes = rotate_bytes}, info_).value();
    const auto place = [&] { return OutputPosition(parts.place().file, parts.place().bytes); };
    ring.accept_output(place());
    for (int n = 0; n < 6; ++n) {
      fill(ring, kRowsPerSlot);
      write_slot(ring, parts, place);
    }
    fill(ring, kRowsPerSlot);
    Ring::Slot slot;
    Rows rows;
    ASSERT_TRUE(ring.try_take_full(&slot, &rows));
    ring.begin_output(slot, place());
    ASSERT_TRUE(parts.write(rows));  // not accepted yet
    if (rotate_bytes == 0) {
      std::filesystem::resize_file(tsv_, std::filesystem::file_size(tsv_) - 3);
    }
    fill(ring, kRowsPerSlot);
    fill(ring, 2, false);
    left_ = files();
  }

  void fill(Ring& ring, std::size_t count, bool hand_over = true) {
    Ring::Slot slot;
    ASSERT_TRUE(ring.try_take_free(&slot));
    for (std::size_t i = 0; i < count; ++i, ++committed_) {
      const std::array<std::uint64_t, 2> row{committed_ * 10 + 1, committed_};
      ring.put_row(slot, i, row.data());
    }
    if (hand_over) ring.hand_over(slot);
  }
  static void write_slot(Ring& ring, RecordingParts& parts,
                         const std::function<OutputPosition()>& place) {
    Ring::Slot slot;
    Rows rows;
    ASSERT_TRUE(ring.try_take_full(&slot, &rows));
    ring.begin_output(slot, place());
    ASSERT_TRUE(parts.write(rows));
    ring.accept_output(place());
    ring.give_back(slot);
  }

  [[nodiscard]] Files files() const {
    Files all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      all[entry.path()] = content(entry.path());
    }
    return all;
  }
  void restore_files(const Files& files) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::filesystem::remove(entry.path());
    }
    for (const auto& [path, bytes] : files) {
      std::ofstream(path, std::ios::binary) << bytes;
    }
  }
  static std::vector<std::string> lines_of(const std::string& path) {
    if (path.ends_with(".zst")) return lines(path);
    std::vector<std::string> all;
    std::istringstream file(content(path));
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }
  // The rows of all parts.
  [[nodiscard]] std::vector<std::string> rows() const {
    std::vector<std::string> all;
    std::string path;
    for (std::uint64_t part = 0; std::filesystem::exists(path = part_path(tsv_, part)); ++part) {
      const std::vector<std::string> more = lines_of(path);
      all.insert(all.end(), more.begin() + 1, more.end());
    }
    return all;
  }
  [[nodiscard]] std::vector<std::string> committed() const {
    std::vector<std::string> all;
    for (std::uint64_t i = 0; i < committed_; ++i) {
      all.push_back(std::to_string(i * 10 + 1) + '\t' + std::to_string(i));
    }
    return all;
  }
  // Returns whether the ring was recovered. Otherwise nothing may have changed.
  bool recovers(const Files& before, const std::optional<std::string>& output = std::nullopt) {
    restore_files(before);
    const Result<Recovery> recovery = recover_ring(ring_path_, output);
    if (!recovery) {
      EXPECT_FALSE(recovery.error().message.empty());
      EXPECT_EQ(files(), before) << "a file was changed and the ring refused";
      return false;
    }
    EXPECT_FALSE(std::filesystem::exists(ring_path_));
    return true;
  }
  // Kills a recovery at the end of its system call number `count` of those that change a file. Returns
  // false if the recovery ended before.
  bool recover_killed_after(int count) const {
    const pid_t child = ::fork();
    if (child == 0) {
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      ::raise(SIGSTOP);
      ::_exit(recover_ring(ring_path_) ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD), 0);
    const auto go_on = [&] {
      EXPECT_EQ(::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr), 0);
      EXPECT_EQ(::waitpid(child, &status, 0), child);
    };
    while (count > 0 && WIFSTOPPED(status)) {
      go_on();  // to the beginning or the end of a system call
      if (!WIFSTOPPED(status) || !begins_change(child)) continue;
      go_on();
      --count;
    }
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0) << "the recovery failed";
      return false;
    }
    ::kill(child, SIGKILL);
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return true;
  }
  // Whether the child is at the beginning of a system call that changes a file or a folder.
  static bool begins_change(pid_t child) {
    __ptrace_syscall_info info{};
    EXPECT_GT(::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info), 0);
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return false;
    switch (info.entry.nr) {
      case SYS_openat:
        return (info.entry.args[2] & O_CREAT) != 0;
      case SYS_write:
      case SYS_pwrite64:
      case SYS_ftruncate:
      case SYS_fsync:
      case SYS_unlink:
      case SYS_unlinkat:
      case SYS_rename:
      case SYS_renameat2:
        return true;
      default:
        return false;
    }
  }
  void kill_after_each_change();

  RecordingInfo info_;
  std::string tsv_;
  std::string ring_path_;
  std::uint64_t committed_ = 0;
  Files left_;
};

std::uint64_t word_at(const std::string& bytes, std::size_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

TEST_F(DamagedRingTest, ADamagedWordOfAHeaderCostGoodRows) {
  record("run.tsv", 0);
  const std::string ring = left_.at(ring_path_);
  const std::size_t slots_offset = word_at(ring, 24);
  std::vector<std::size_t> offsets;
  for (std::size_t at = 0; at < kHeaderBytes; at += 8) offsets.push_back(at);
  for (std::size_t at = 0; at < kSlots * kSlotHeaderBytes; at += 8) {
    offsets.push_back(slots_offset + at);
  }
  int refused = 0;
  for (const std::size_t offset : offsets) {
    const std::uint64_t was = word_at(ring, offset);
    // The last two: a position in the middle of the recording, and one of another word of the ring.
    for (const std::uint64_t bad :
         {std::uint64_t{0}, std::uint64_t{1}, was + 1, was - 1, ~was, was << 8U, was ^ 0x10U,
          was ^ 0x1'0000'0000U, was ^ 0x8000'0000'0000'0000U, std::uint64_t{60},
          word_at(ring, slots_offset + 16)}) {
      if (bad == was) continue;
      SCOPED_TRACE("word at " + std::to_string(offset) + ": " + std::to_string(was) + " -> " +
                   std::to_string(bad));
      Files damaged = left_;
      std::memcpy(damaged.at(ring_path_).data() + offset, &bad, sizeof bad);
      if (recovers(damaged)) {
        EXPECT_EQ(rows(), committed());
      } else {
        ++refused;
      }
      const std::string found = in_folder("found.tsv");
      if (recovers(damaged, found)) {
        std::vector<std::string> expected = committed();
        expected.erase(expected.begin(), expected.end() - kRowsLeft);
        expected.insert(expected.begin(), "Time (ns)\tsteps");
        EXPECT_EQ(lines_of(found), expected);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_TRUE(recovers(left_));
  EXPECT_EQ(rows(), committed());
}

void DamagedRingTest::kill_after_each_change() {
#if KYMO_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer does not follow a fork";
#endif
  bool killed = true;
  int changes = 0;
  for (; killed && !HasFailure(); ++changes) {
    SCOPED_TRACE("killed after change " + std::to_string(changes));
    restore_files(left_);
    killed = recover_killed_after(changes);
    for (const auto& [path, bytes] : left_) {
      if (path.ends_with(".tsv.zst")) {
        EXPECT_GE(content(path).size(), bytes.size()) << path << " has become shorter";
      } else if (path.ends_with(".tsv") && !path.ends_with(".gaps.tsv")) {
        const bool is_empty = std::count(bytes.begin(), bytes.end(), '\n') == 1;
        EXPECT_TRUE(content(path).starts_with(bytes) || is_empty) << path << " has become shorter";
      }
    }
    if (std::filesystem::exists(ring_path_)) {
      const Result<Recovery> again = recover_ring(ring_path_);
      ASSERT_TRUE(again) << again.error().message;
    }
    EXPECT_EQ(rows(), committed());
    EXPECT_FALSE(std::filesystem::exists(ring_path_));
  }
  EXPECT_GT(changes, 5);
}

TEST_F(DamagedRingTest, ARecoveryThatIsKilledAtAnyStepLosesNothing) {
  record("run.tsv", 0);
  kill_after_each_change();
}

TEST_F(DamagedRingTest, ARecoveryOfPartsThatIsKilledAtAnyStepLosesNothing) {
  record("run.tsv", 60);
  ASSERT_GT(left_.size(), 10U) << "the recorder has not begun a next part";
  kill_after_each_change();
}

TEST_F(DamagedRingTest, ARecoveryOfACompressedRecordingThatIsKilledAtAnyStepLosesNothing) {
  if (!has_zstd()) {
    GTEST_SKIP() << "built without zstd";
  }
  record("run.tsv.zst", 0);
  kill_after_each_change();
}

TEST_F(DamagedRingTest, RowsThatAnotherProgramHasAppendedAreNotCut) {
  record("run.tsv", 0);
  Files changed = left_;
  changed.at(tsv_) += "12\t12\n";
  EXPECT_FALSE(recovers(changed));
  EXPECT_TRUE(recovers(changed, in_folder("found.tsv")));
  EXPECT_EQ(content(tsv_), changed.at(tsv_));
}

TEST_F(DamagedRingTest, ANextPartWithOtherRowsIsNotRemoved) {
  record("run.tsv", 60);
  std::string next;
  for (std::uint64_t part = 1; left_.contains(part_path(tsv_, part)); ++part) {
    next = part_path(tsv_, part);
  }
  ASSERT_EQ(lines_of(next).size(), 1U) << "the newest part has no rows yet";
  Files changed = left_;
  changed.at(next) += "999\t999\n";
  EXPECT_FALSE(recovers(changed));
}

}  // namespace
}  // namespace kymo
