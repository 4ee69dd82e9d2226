#include "daemon/restore_note.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <memory>

#include "daemon/metrics.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// What a kymod that was killed during a restore leaves.
class RestoreNoteTest : public testing::Test {
 protected:
  void SetUp() override {
    auto store = store::Store::open(folder_.path() + "/kymo.db");
    ASSERT_TRUE(store.ok());
    store_ = std::move(store).value();
    metrics_ = std::move(Metrics::make()).value();
    jobs_ = std::make_unique<Jobs>(*store_, *metrics_, folder_.path());
    images_ = folder_.folder("images");
    work_ = folder_.folder("work");
  }
  // Leaves a note, as if this process had been killed with it.
  void leave_note() {
    Result<RestoreNote> note =
        RestoreNote::write(folder_.path(), folder_.path(), images_, work_, "");
    ASSERT_TRUE(note.ok()) << note.error().message;
    const fs::path path = fs::directory_iterator(notes())->path();
    fs::copy_file(path, folder_.path() + "/kept");
    *note = RestoreNote();
    fs::rename(folder_.path() + "/kept", path);
  }
  // The notes that stay after a start.
  std::ptrdiff_t left_by_a_start() {
    settle_cut_short_restores(*store_, *jobs_, folder_.path(),
                              [this](const std::string&, const std::vector<pid_t>&) {
                                ++ended_;
                                return end_;
                              });
    return std::distance(fs::directory_iterator(notes()), fs::directory_iterator());
  }
  [[nodiscard]] std::string notes() const { return folder_.path() + "/restoring"; }

  test::TemporaryDirectory folder_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Jobs> jobs_;
  std::string images_;
  std::string work_;
  Result<void> end_;  // of ending what is left
  int ended_ = 0;
};

TEST_F(RestoreNoteTest, ARestoreOfWhichNothingIsLeftIsSettled) {
  leave_note();
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(ended_, 1);
}

// "It can be restored again", the log said, while CRIU went on.
TEST_F(RestoreNoteTest, ACriuThatDoesNotEndIsLookedAtAgain) {
  leave_note();
  end_ = Error{Code::deadline_exceeded, "process 12, left by a CRIU, does not end"};
  EXPECT_EQ(left_by_a_start(), 1);
  end_ = {};
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(ended_, 2);
}

// Images that could not be read counted as images that are gone.
TEST_F(RestoreNoteTest, ImagesThatCannotBeReadAreLookedAtAgain) {
  leave_note();
  const std::string pstree = folder_.folder("images/pstree.img");  // reading it fails
  EXPECT_EQ(left_by_a_start(), 1);
  fs::remove(pstree);
  EXPECT_EQ(left_by_a_start(), 0);
}

TEST_F(RestoreNoteTest, ANoteThatCannotBeReadStays) {
  fs::create_directories(notes() + "/1.json");  // reading it fails
  EXPECT_EQ(left_by_a_start(), 1);
  EXPECT_EQ(ended_, 0);
}

}  // namespace
}  // namespace kymo::daemon
