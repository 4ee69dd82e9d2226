#include "daemon/state/restore_note.h"

#include <gtest/gtest.h>
#include <prometheus/metric_family.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "checkpoint/runtimes/shared/restore_lock.h"
#include "support/job_parts.h"
#include "support/logged.h"

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
    open.clear();  // of the kymod before
    open = settle_cut_short_restores(*store, jobs, *metrics, claims, folder.path(),
                                     settle_container(), end_restore());
    return count_notes();
  }
  // Looks at the open restores again, and returns how many notes are left.
  std::ptrdiff_t left_by_a_look() {
    settle_open_restores(*store, jobs, *metrics, open, settle_container(), end_restore());
    return count_notes();
  }
  EndRestore end_restore() {
    return [this](const std::string&, const std::vector<pid_t>&) {
      ++ended;
      return end;
    };
  }
  SettleRestore settle_container() {
    return [this](runtime::Kind, const runtime::RestoreSpec& spec, std::int64_t) {
      settled.push_back(spec);
      return settles;
    };
  }
  std::ptrdiff_t count_notes() {
    return std::distance(fs::directory_iterator(notes()), fs::directory_iterator());
  }
  // Adds the job that is restored.
  void add_job() {
    store::Job job;
    job.id = about.job_id = "1";
    job.name = "web";
    job.state = store::JobState::dumped;
    ASSERT_TRUE(store->add_job(job).ok());
  }
  std::vector<store::Run> history() {
    return store->runs("job:web", store::RunKind::restore).value();
  }
  // The value of a column of the metrics.
  std::uint64_t counted(const std::string& name) {
    const auto sampler = metrics->registry().sampler({}).value();
    std::vector<std::uint64_t> row(sampler->columns().size());
    sampler->read(row.data());
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (sampler->columns()[i].name == name) return row[i];
    }
    ADD_FAILURE() << "there is no column " << name;
    return 0;
  }
  [[nodiscard]] std::vector<std::string> reasons_of_failures() const {
    std::vector<std::string> reasons;
    for (const prometheus::MetricFamily& family : metrics->outcomes()->Collect()) {
      if (family.name != "kymo_failures_total") continue;
      for (const auto& one : family.metric) reasons.push_back(one.label.back().value);
    }
    return reasons;
  }
  [[nodiscard]] std::string notes() const { return folder.path() + "/restoring"; }
  // Whether the directory of the checkpoint can be claimed.
  bool may(DirectoryClaim::Use use) {
    return static_cast<bool>(
        DirectoryClaim(claims, {about.directory}, DirectoryClaim::SilentDisk::wait, use));
  }

  std::string work = folder.folder("work");
  RestoreNote::About about{folder.path(), {}, work, ""};
  Result<bool> settles = true;                // the result of settling a container's restore
  std::vector<runtime::RestoreSpec> settled;  // the restores that were settled
  Claims<std::string> claims;
  std::vector<OpenRestore> open;
  Result<void> end;  // the result of ending the processes that are left
  int ended = 0;
};

TEST_F(RestoreNoteTest, ARestoreOfWhichNothingIsLeftIsSettled) {
  leave_note();
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(ended, 1);
}

TEST_F(RestoreNoteTest, ACriuThatDoesNotEndIsLookedAtAgain) {
  leave_note();
  end = Error{Code::deadline_exceeded, "process 12, left by a CRIU, does not end"};
  EXPECT_EQ(left_by_a_start(), 1);
  EXPECT_FALSE(may(DirectoryClaim::Use::deletion)) << "its processes may still need the images";
  end = {};
  EXPECT_EQ(left_by_a_look(), 0);
  EXPECT_EQ(ended, 2);
  EXPECT_TRUE(may(DirectoryClaim::Use::deletion));
}

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

TEST_F(RestoreNoteTest, WhatStaysUnknownIsLoggedOnce) {
  about.kind = *runtime::kind_named("podman");
  about.container = "web";
  leave_note();
  settles = Error{Code::unavailable, "podman does not answer"};
  const test::Logged logged;
  EXPECT_EQ(left_by_a_start(), 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(left_by_a_look(), 1);
  settles = Error{Code::unavailable, "podman's folder is gone"};
  EXPECT_EQ(left_by_a_look(), 1);
  EXPECT_EQ(logged.text(),
            "restore " + about.directory +
                ": kymod stopped during it, and checks it again every second: podman "
                "does not answer\nrestore " +
                about.directory +
                ": kymod stopped during it, and checks it again every second: "
                "podman's folder is gone\n");
}

// While another kymod restores them, its restore needs the rights.
TEST_F(RestoreNoteTest, RightsToImagesAreTakenBackWhenNobodyElseUsesThem) {
  about.kind = *runtime::kind_named("runc");
  about.images = folder.folder("images");
  about.container = "web";
  about.gives_rights = true;
  const fs::path image = folder.file("images/userns-1.img", "x");
  const auto others = [&](const fs::path& path) {
    return fs::status(path).permissions() & fs::perms::others_all;
  };
  fs::permissions(image, fs::perms::others_read, fs::perm_options::add);
  fs::permissions(about.images, fs::perms::others_exec, fs::perm_options::add);
  leave_note();
  {
    const Result<FileDescriptor> other =
        runtime::lock_images({real_directory(about.directory)}, runtime::ImageUse::read);
    ASSERT_TRUE(other.ok());
    if (!other->valid()) GTEST_SKIP() << "needs root to lock images";
    EXPECT_EQ(left_by_a_start(), 1);
    EXPECT_NE(others(image), fs::perms::none);
  }
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(others(image), fs::perms::none);
  EXPECT_EQ(others(about.images) & fs::perms::others_exec, fs::perms::none);
}

TEST_F(RestoreNoteTest, ALostRestoreIsInTheHistoryOfItsJobAndCounted) {
  add_job();
  about.created_unix_ns = 123;
  about.checkpoint_id = "c1";
  about.image_bytes = 4096;
  leave_note();
  end = Error{Code::deadline_exceeded, "process 12, left by a CRIU, does not end"};
  EXPECT_EQ(left_by_a_start(), 1);
  EXPECT_TRUE(history().empty()) << "its outcome is not known yet";
  end = {};
  EXPECT_EQ(left_by_a_start(), 0);
  ASSERT_EQ(history().size(), 1U);
  const store::Run run = history().front();
  EXPECT_TRUE(run.error.starts_with("kymod stopped during the restore")) << run.error;
  EXPECT_EQ(run.created_unix_ns, 123);
  EXPECT_EQ(run.checkpoint_id, "c1");
  EXPECT_EQ(run.image_bytes, 4096U);
  EXPECT_EQ(counted("restores[error]"), 1U);
  EXPECT_EQ(reasons_of_failures(), std::vector<std::string>{"kymod-ended"});
}

TEST_F(RestoreNoteTest, ALostRestoreWhoseProcessRunsHasSucceeded) {
  add_job();
  about.tree = {getpid()};
  leave_note();
  // This process is older than the note.
  const std::string note = fs::directory_iterator(notes())->path();
  nlohmann::json text = nlohmann::json::parse(*read_file(note));
  text["began_ticks"] = 0;
  std::ofstream(note) << text;
  EXPECT_EQ(left_by_a_start(), 0);
  ASSERT_EQ(history().size(), 1U);
  EXPECT_EQ(history().front().error, "");
  EXPECT_EQ(store->job("web")->state, store::JobState::running);
  EXPECT_EQ(counted("restores[ok]"), 1U);
  EXPECT_TRUE(reasons_of_failures().empty());
}

TEST_F(RestoreNoteTest, TheRestoreOfAContainerIsCountedByWhetherItRuns) {
  add_job();
  about.kind = *runtime::kind_named("runc");
  about.container = "web";
  leave_note();
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(counted("restores[error]"), 1U);
  about.created_unix_ns = 124;
  leave_note();
  container = runtime::ProcessId{7, ~std::uint64_t{0}};
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(counted("restores[ok]"), 1U);
  ASSERT_EQ(history().size(), 2U);
}

// podman, containerd and Docker may go on without kymod.
TEST_F(RestoreNoteTest, ARestoreThatItsRuntimeMayGoOnWithIsLookedAtAgain) {
  add_job();
  about.kind = *runtime::kind_named("podman");
  about.container = "web";
  about.created_unix_ns = 123;
  leave_note();
  settles = false;
  EXPECT_EQ(left_by_a_start(), 1);
  EXPECT_EQ(left_by_a_look(), 1);
  settles = true;
  EXPECT_EQ(left_by_a_look(), 1) << "another program of the runtime may be about to start";
  EXPECT_TRUE(history().empty());
  EXPECT_FALSE(may(DirectoryClaim::Use::deletion));
  EXPECT_TRUE(may(DirectoryClaim::Use::request));
  EXPECT_NE(jobs.list().at(0).pending().find("something may still restore it"), std::string::npos);
  container = runtime::ProcessId{7, ~std::uint64_t{0}};
  EXPECT_EQ(left_by_a_look(), 0);
  EXPECT_TRUE(open.empty());
  EXPECT_TRUE(may(DirectoryClaim::Use::deletion));
  EXPECT_EQ(jobs.list().at(0).pending(), "");
  ASSERT_EQ(history().size(), 1U);
  EXPECT_EQ(history().front().error, "");
  EXPECT_EQ(counted("restores[ok]"), 1U);
}

TEST_F(RestoreNoteTest, ARestoreThatItsRuntimeDoesNotGoOnWithHasFailed) {
  add_job();
  about.kind = *runtime::kind_named("docker");
  about.container = "web";
  leave_note();
  container = runtime::ProcessId{7, 1};  // older than the restore
  EXPECT_EQ(left_by_a_start(), 1);
  for (int look = 2; look < kQuietLooks; ++look) EXPECT_EQ(left_by_a_look(), 1);
  EXPECT_EQ(left_by_a_look(), 0);
  EXPECT_TRUE(open.empty());
  ASSERT_EQ(history().size(), 1U);
  EXPECT_TRUE(history().front().error.starts_with("kymod stopped during the restore"));
  EXPECT_EQ(counted("restores[error]"), 1U);
}

// A request leaves its note if the store has its result only in memory. The disk may take it later.
TEST_F(RestoreNoteTest, ARestoreThatIsInTheHistoryIsNotAddedAgain) {
  add_job();
  about.created_unix_ns = 123;
  store::Run run;
  run.id = RestoreNote::run_id(123, "1");
  run.kind = store::RunKind::restore;
  run.owner = "job:web";
  ASSERT_TRUE(store->add_run(run).ok());
  leave_note();
  EXPECT_EQ(left_by_a_start(), 0);
  EXPECT_EQ(history().size(), 1U);
  EXPECT_EQ(counted("restores[error]"), 0U);
}

TEST_F(RestoreNoteTest, ANoteThatCannotBeReadStays) {
  // A folder in place of a note cannot be read as a file.
  fs::create_directories(notes() + "/1.json");
  EXPECT_EQ(left_by_a_start(), 1);
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace kymo::daemon
