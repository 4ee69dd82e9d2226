#include "daemon/state/restore_note.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "support/job_parts.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// What a kymod that was killed during a restore leaves.
struct RestoreNoteTest : testing::Test, JobParts {
  // Leaves a note, as if this process had been killed with it.
  void leave_note() {
    Result<RestoreNote> note = RestoreNote::write(folder.path(), about);
    ASSERT_TRUE(note.ok()) << note.error().message;
    const fs::path path = fs::directory_iterator(notes())->path();
    fs::copy_file(path, folder.path() + "/kept");
    *note = RestoreNote();
    fs::rename(folder.path() + "/kept", path);
  }
  // The notes that stay after a start.
  std::ptrdiff_t left_by_a_start() {
    settle_cut_short_restores(
        *store, jobs, folder.path(),
        [this](runtime::Kind, const runtime::RestoreSpec& spec, std::int64_t) {
          settled.push_back(spec);
          return settles;
        },
        [this](const std::string&, const std::vector<pid_t>&) {
          ++ended;
          return end;
        });
    return std::distance(fs::directory_iterator(notes()), fs::directory_iterator());
  }
  [[nodiscard]] std::string notes() const { return folder.path() + "/restoring"; }

  std::string work = folder.folder("work");
  RestoreNote::About about{folder.path(), {}, work, ""};
  Result<bool> settles = true;                // of settling a container's restore
  std::vector<runtime::RestoreSpec> settled;  // those that were
  Result<void> end;                           // of ending what is left
  int ended = 0;
};

TEST_F(RestoreNoteTest, ARestoreOfWhichNothingIsLeftIsSettled) {
  leave_note();
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(ended, 1);
}

// "It can be restored again", the log said, while CRIU went on.
TEST_F(RestoreNoteTest, ACriuThatDoesNotEndIsLookedAtAgain) {
  leave_note();
  end = Error{Code::deadline_exceeded, "process 12, left by a CRIU, does not end"};
  EXPECT_EQ(left_by_a_start(), 1);
  end = {};
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(ended, 2);
}

// What a killed runc had left was removed only by the next restore of the container.
TEST_F(RestoreNoteTest, TheRestoreOfAContainerIsSettledByItsRuntime) {
  about.kind = *runtime::kind_named("runc");
  about.images = folder.path() + "/images";
  about.container = "web";
  about.bundle = "/srv/web";
  leave_note();
  settles = false;
  EXPECT_EQ(left_by_a_start(), 1);
  settles = true;
  EXPECT_EQ(left_by_a_start(), 0);
  ASSERT_EQ(settled.size(), 2U);
  EXPECT_EQ(settled[1].container, "web");
  EXPECT_EQ(settled[1].bundle, "/srv/web");
  EXPECT_EQ(settled[1].images_dir, about.images);
  EXPECT_EQ(settled[1].work_dir, work);
  EXPECT_EQ(ended, 0);
}

TEST_F(RestoreNoteTest, ANoteThatCannotBeReadStays) {
  fs::create_directories(notes() + "/1.json");  // reading it fails
  EXPECT_EQ(left_by_a_start(), 1);
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace kymo::daemon
