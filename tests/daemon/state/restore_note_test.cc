#include "daemon/state/restore_note.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "support/job_parts.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// The note that a kymod leaves if it is killed during a restore.
struct RestoreNoteTest : testing::Test, JobParts {
  // Leaves a note, as if this process had been killed while it had one.
  void leave_note() {
    Result<RestoreNote> note = RestoreNote::write(folder.path(), about);
    ASSERT_TRUE(note.ok()) << note.error().message;
    const fs::path path = fs::directory_iterator(notes())->path();
    fs::copy_file(path, folder.path() + "/kept");
    *note = RestoreNote();
    fs::rename(folder.path() + "/kept", path);
  }
  // Starts kymod's cleanup, and returns how many notes are left after it.
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
  Result<bool> settles = true;                // the result of settling a container's restore
  std::vector<runtime::RestoreSpec> settled;  // the restores that were settled
  Result<void> end;                           // the result of ending the processes that are left
  int ended = 0;
};

TEST_F(RestoreNoteTest, ARestoreOfWhichNothingIsLeftIsSettled) {
  leave_note();
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(ended, 1);
}

// Before the fix, the log said "It can be restored again" while CRIU still ran.
TEST_F(RestoreNoteTest, ACriuThatDoesNotEndIsLookedAtAgain) {
  leave_note();
  end = Error{Code::deadline_exceeded, "process 12, left by a CRIU, does not end"};
  EXPECT_EQ(left_by_a_start(), 1);
  end = {};
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(ended, 2);
}

// Before the fix, what a killed runc had left was removed only by the next restore of the
// container.
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
  // A folder in place of a note cannot be read as a file.
  fs::create_directories(notes() + "/1.json");
  EXPECT_EQ(left_by_a_start(), 1);
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace kymo::daemon
