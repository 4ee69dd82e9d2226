#include "daemon/database/store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "store_fixture.h"
#include "support/temporary_directory.h"

namespace kymo::store {
namespace {

TEST_F(StoreTest, KeepsAJobThroughARestart) {
  ASSERT_TRUE(store_->add_job(make_job("a")).ok());
  reopen();
  EXPECT_EQ(store_->moved_aside(), "");
  const Result<Job> job = store_->job("name-a");
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->id, "a");
  EXPECT_EQ(job->command, make_job("a").command);
  EXPECT_EQ(job->pid, 4321);
  EXPECT_EQ(job->start_ticks, ~std::uint64_t{0});
  EXPECT_EQ(job->stdout_path, "/s/out");
  EXPECT_EQ(job->stderr_path, "/s/err");
  EXPECT_EQ(job->state, JobState::running);
  EXPECT_FALSE(job->exit_status.has_value());
  EXPECT_EQ(job->created_unix_ns, 1'700'000'000'123'456'789);
}

TEST_F(StoreTest, UpdatesAndRemovesAJob) {
  Job job = make_job("a");
  ASSERT_TRUE(store_->add_job(job).ok());
  job.state = JobState::exited;
  job.exit_status = 256;
  job.pid = 99;
  ASSERT_TRUE(store_->update_job(job).ok());
  EXPECT_EQ(store_->job("a")->state, JobState::exited);
  EXPECT_EQ(store_->job("a")->exit_status, 256);
  EXPECT_EQ(store_->job("a")->pid, 99);
  ASSERT_TRUE(store_->remove_job("a").ok());
  EXPECT_EQ(store_->job("a").error().code, Code::not_found);
  EXPECT_EQ(store_->update_job(job).error().code, Code::not_found);
  EXPECT_EQ(store_->remove_job("a").error().message, "there is no job 'a'");
}

TEST_F(StoreTest, RefusesATakenIdOrName) {
  ASSERT_TRUE(store_->add_job(make_job("a")).ok());
  EXPECT_EQ(store_->add_job(make_job("a")).error().code, Code::already_exists);
  Job same_name = make_job("b");
  same_name.name = "name-a";
  EXPECT_EQ(store_->add_job(same_name).error().code, Code::already_exists);
  EXPECT_EQ(store_->jobs().size(), 1U);
}

TEST_F(StoreTest, ListsJobsOldestFirst) {
  for (const int i : {2, 0, 1}) {
    Job job = make_job(std::to_string(i));
    job.created_unix_ns = i;
    ASSERT_TRUE(store_->add_job(job).ok());
  }
  std::string order;
  for (const Job& job : store_->jobs()) {
    order += job.id;
  }
  EXPECT_EQ(order, "012");
}

TEST_F(StoreTest, AWholeCheckpointAndItsDumpedJobAppearTogether) {
  Job job = make_job("a");
  ASSERT_TRUE(store_->add_job(job).ok());
  Checkpoint c = make_checkpoint("c", "a");
  ASSERT_TRUE(store_->add_checkpoint(c).ok());
  c.state = CheckpointState::complete;
  c.image_bytes = 1ULL << 40U;
  c.duration_ns = 12;
  c.stats_json = R"({"pages_written":1})";
  job.state = JobState::dumped;
  ASSERT_TRUE(store_->update_checkpoint(c, &job).ok());
  EXPECT_EQ(store_->checkpoint("c")->state, CheckpointState::complete);
  EXPECT_EQ(store_->checkpoint("c")->image_bytes, 1ULL << 40U);
  EXPECT_EQ(store_->checkpoint("c")->stats_json, R"({"pages_written":1})");
  EXPECT_EQ(store_->job("a")->state, JobState::dumped);

  // This job does not exist. So the checkpoint must not change, either.
  c.state = CheckpointState::failed;
  Job unknown = make_job("unknown");
  EXPECT_EQ(store_->update_checkpoint(c, &unknown).error().code, Code::not_found);
  EXPECT_EQ(store_->checkpoint("c")->state, CheckpointState::complete);
}

TEST_F(StoreTest, ListsCheckpointsOfOneJobOrOfAll) {
  ASSERT_TRUE(store_->add_checkpoint(make_checkpoint("1", "a")).ok());
  ASSERT_TRUE(store_->add_checkpoint(make_checkpoint("2", "b")).ok());
  ASSERT_TRUE(store_->add_checkpoint(make_checkpoint("3", "a")).ok());
  EXPECT_EQ(store_->checkpoints().size(), 3U);
  EXPECT_EQ(store_->checkpoints("a").size(), 2U);
  EXPECT_EQ(store_->checkpoints("a").back().id, "3");
  ASSERT_TRUE(store_->remove_checkpoint("3").ok());
  EXPECT_EQ(store_->checkpoint("3").error().code, Code::not_found);
}

TEST_F(StoreTest, TextOfACallerIsNeverAStatement) {
  Job job = make_job("a");
  job.name = "'); DROP TABLE jobs; --";
  ASSERT_TRUE(store_->add_job(job).ok());
  EXPECT_TRUE(store_->job(job.name).ok());
  EXPECT_EQ(store_->jobs().size(), 1U);
}

TEST_F(StoreTest, AFileThatIsNoDatabaseIsMovedAsideAndKept) {
  store_.reset();
  const std::string junk(10'000, 'j');
  folder_.file("kymo.db", junk);
  reopen();
  EXPECT_NE(store_->moved_aside().find(path() + ".corrupt-1"), std::string::npos)
      << store_->moved_aside();
  EXPECT_EQ(std::filesystem::file_size(path() + ".corrupt-1"), junk.size());
  EXPECT_TRUE(store_->add_job(make_job("a")).ok());
}

TEST_F(StoreTest, ADamagedPageIsFoundAndTheFileMovedAside) {
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(store_->add_job(make_job(std::to_string(i))).ok());
  }
  store_.reset();
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3 * 4096);
    file << std::string(8 * 4096, '\xa5');
  }
  reopen();
  EXPECT_NE(store_->moved_aside(), "");
  EXPECT_TRUE(std::filesystem::exists(path() + ".corrupt-1"));
  EXPECT_TRUE(store_->jobs().empty());
}

TEST_F(StoreTest, NamesAFolderThatIsNotThere) {
  const std::string missing = folder_.path() + "/missing/kymo.db";
  const auto store = Store::open(missing);
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.error().message.find(missing), std::string::npos) << store.error().message;
}

TEST_F(StoreTest, ThreadsMayShareIt) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(store_->add_job(make_job(std::to_string(t * 10 + i))).ok());
        EXPECT_FALSE(store_->jobs().empty());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(store_->jobs().size(), 40U);
}

TEST_F(StoreTest, WhatWasAcknowledgedOutlivesAKill) {
  store_.reset();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = Store::open(path());
    for (int i = 0; store.ok() && i < 1'000'000; ++i) {
      if ((*store)->add_job(make_job(std::to_string(i))).ok() && write(ends[1], "x", 1) != 1) {
        _exit(1);
      }
    }
    _exit(1);
  }
  close(ends[1]);
  std::size_t acknowledged = 0;
  for (char c = 0; acknowledged < 20 && read(ends[0], &c, 1) == 1;) {
    ++acknowledged;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (char c = 0; read(ends[0], &c, 1) == 1;) {
    ++acknowledged;
  }
  close(ends[0]);
  EXPECT_GE(acknowledged, 20U);
  reopen();
  EXPECT_EQ(store_->moved_aside(), "");
  // The job that was being written when the process was killed may be there, too.
  const std::size_t kept = store_->jobs().size();
  EXPECT_TRUE(kept == acknowledged || kept == acknowledged + 1) << kept << " of " << acknowledged;
}

TEST_F(StoreTest, KeepsTheRunsOfAJobByKindOldestFirst) {
  ASSERT_TRUE(store_->add_run(make_run("2", "a", 2)).ok());
  ASSERT_TRUE(store_->add_run(make_run("1", "a", 1)).ok());
  ASSERT_TRUE(store_->add_run(make_run("3", "b", 3)).ok());
  store::Run restore = make_run("4", "a", 4);
  restore.kind = RunKind::restore;
  restore.error = "no";
  ASSERT_TRUE(store_->add_run(restore).ok());
  reopen();
  const Result<std::vector<store::Run>> dumps = store_->runs("a", RunKind::dump);
  ASSERT_TRUE(dumps.ok());
  ASSERT_EQ(dumps->size(), 2U);
  const store::Run& first = dumps->front();
  EXPECT_EQ(first.id, "1");
  EXPECT_EQ(first.checkpoint_id, "c-1");
  EXPECT_EQ(first.duration_ns, 5'000'000U);
  EXPECT_EQ(first.image_bytes, 1ULL << 40U);
  EXPECT_EQ(first.written_bytes, 1ULL << 41U);
  EXPECT_EQ(first.conditions, "leave running");
  EXPECT_EQ(first.warmth, "warm");
  EXPECT_EQ(first.stats_json, R"({"pages_written":1})");
  EXPECT_EQ(first.phases_json, R"({"criu starts":3})");
  EXPECT_EQ(first.stood_still_ns, 4'000'000U);
  EXPECT_EQ(first.away_ns, 6'000'000U);
  EXPECT_EQ(first.disk, "ext4 /dev/sda1");
  const Result<std::vector<store::Run>> newest = store_->runs({}, RunKind::dump, 2);
  ASSERT_EQ(newest->size(), 2U);
  EXPECT_EQ(newest->front().id, "2");
  EXPECT_EQ(newest->back().id, "3");
  EXPECT_EQ(store_->runs("a", RunKind::restore)->at(0).error, "no");
}

// Later formats have more columns.
const std::string kInsertRuns =
    "INSERT INTO runs (id, kind, owner, checkpoint_id, created_unix_ns, error, duration_ns, "
    "image_bytes, conditions, warmth, stats_json, phases_json, stood_still_ns, away_ns, disk, "
    "refused, failure)";

TEST_F(StoreTest, TheThousandNewestRunsOfAJobStay) {
  sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1005) " +
      kInsertRuns +
      " SELECT 'r' || i, 'dump', 'a', '', i, '', 1, 1, '', '', '', '', 0, 0, '', 0, '' FROM "
      "n");
  ASSERT_TRUE(store_->add_run(make_run("other", "b", 1)).ok());
  ASSERT_TRUE(store_->add_run(make_run("newest", "a", 2000)).ok());
  const Result<std::vector<store::Run>> runs = store_->runs("a", RunKind::dump);
  ASSERT_EQ(runs->size(), 1000U);
  EXPECT_EQ(runs->front().id, "r7");
  EXPECT_EQ(runs->back().id, "newest");
  EXPECT_EQ(store_->runs("b", RunKind::dump)->size(), 1U);
}

TEST_F(StoreTest, RunsOfAClockAYearAheadOutlivedTheNewestRuns) {
  sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) " +
      kInsertRuns +
      " SELECT 'r' || i, 'dump', 'a', '', 5000 + i, '', 1, 1, '', '', '', '', 0, 0, '', 0, ''"
      " FROM n");
  ASSERT_TRUE(store_->add_run(make_run("newest", "a", 2000)).ok());
  const Result<std::vector<store::Run>> runs = store_->runs("a", RunKind::dump);
  ASSERT_EQ(runs->size(), 1000U);
  EXPECT_EQ(runs->front().id, "newest");
  EXPECT_EQ(runs->at(1).id, "r2");
}

TEST_F(StoreTest, ACheckpointAndItsRunAppearTogetherOrNotAtAll) {
  Checkpoint c = make_checkpoint("c", "a");
  ASSERT_TRUE(store_->add_checkpoint(c).ok());
  c.state = CheckpointState::complete;
  const store::Run run = make_run("c", "a", 1);
  ASSERT_TRUE(store_->update_checkpoint(c, nullptr, &run).ok());
  EXPECT_EQ(store_->runs("a", RunKind::dump)->size(), 1U);
  c.state = CheckpointState::failed;
  EXPECT_FALSE(store_->update_checkpoint(c, nullptr, &run).ok())
      << "a run must not be stored twice";
  EXPECT_EQ(store_->checkpoint("c")->state, CheckpointState::complete);
}

TEST_F(StoreTest, AHistoryOutlivesItsJob) {
  ASSERT_TRUE(store_->add_job(make_job("a")).ok());
  ASSERT_TRUE(store_->add_run(make_run("1", "job:a", 1)).ok());
  ASSERT_TRUE(store_->remove_job("a").ok());
  EXPECT_EQ(store_->runs("job:a", RunKind::dump)->size(), 1U);
}

TEST_F(StoreTest, TheHistoriesOfTheThousandNewestOwnersStay) {
  sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) " +
      kInsertRuns +
      " SELECT 'r' || i, 'dump', 'job:' || i, '', i, '', 1, 1, '', '', '', '', 0, 0, '', 0, ''"
      " FROM n");
  ASSERT_TRUE(store_->add_run(make_run("again", "job:1", 2000)).ok());
  EXPECT_EQ(store_->runs("job:2", RunKind::dump)->size(), 1U)
      << "the run had no new owner, so no history may be removed";
  ASSERT_TRUE(store_->add_run(make_run("new", "job:new", 2001)).ok());
  EXPECT_TRUE(store_->runs("job:2", RunKind::dump)->empty());
  EXPECT_EQ(store_->runs("job:1", RunKind::dump)->size(), 2U) << "this owner had a newer run";
  EXPECT_EQ(store_->runs("job:3", RunKind::dump)->size(), 1U);
}

store::Run make_refusal(const std::string& id, const std::string& owner, std::int64_t at) {
  store::Run run;
  run.id = id;
  run.owner = owner;
  run.created_unix_ns = at;
  run.error = "no";
  run.failure = "in-use";
  run.refused = true;
  return run;
}

// Somebody may repeat a request that is refused in a loop.
TEST_F(StoreTest, RefusedRequestsTakeTheRoomOfNoOtherRun) {
  ASSERT_TRUE(store_->add_run(make_run("real", "a", 1)).ok());
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(store_->add_run(make_refusal("refused-" + std::to_string(i), "a", i)).ok());
  }
  const Result<std::vector<store::Run>> runs = store_->runs("a", RunKind::dump);
  ASSERT_EQ(runs->size(), 11U) << "the ten newest refusals stay";
  EXPECT_EQ(runs->front().id, "real");
  EXPECT_FALSE(runs->front().refused);
  EXPECT_EQ(runs->back().id, "refused-29");
  EXPECT_TRUE(runs->back().refused);
  EXPECT_EQ(runs->back().failure, "in-use");
  sql("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 108) " +
      kInsertRuns +
      " SELECT 'o' || i, 'dump', 'job:' || i, '', 5000 + i, 'no', 1, 1, '', '', '', '', 0, 0,"
      " '', 1, '' FROM n");
  ASSERT_TRUE(store_->add_run(make_refusal("newest", "job:109", 5109)).ok());
  EXPECT_EQ(store_->runs("a", RunKind::dump)->size(), 11U);
  EXPECT_TRUE(store_->runs("job:9", RunKind::dump)->empty());
  EXPECT_EQ(store_->runs("job:10", RunKind::dump)->size(), 1U);
}

TEST_F(StoreTest, ANotedRefusalIsReadAtOnceAndStored) {
  for (int i = 0; i < 30; ++i) {
    store_->note_refusal(make_refusal("refused-" + std::to_string(i), "a", i));
  }
  EXPECT_EQ(store_->runs("a", RunKind::dump)->back().id, "refused-29");
  EXPECT_EQ(store_->unstored(), 0U);
  reopen();
  EXPECT_EQ(store_->runs("a", RunKind::dump)->size(), 10U);
}

TEST_F(StoreTest, WhatIsNotedIsStoredSoonByItself) {
  Job job = make_job("a");
  ASSERT_TRUE(store_->add_job(job).ok());
  job.state = JobState::exited;
  store_->note_job(job);
  const auto stored = [&] {
    // Opens the store as a process would that is started after this one was killed.
    const Result<std::unique_ptr<Store>> other = Store::open(path());
    return other && (*other)->job("a")->state == JobState::exited;
  };
  EXPECT_TRUE(test::eventually(stored));
  store_->note_job(make_job("gone"));
  EXPECT_EQ(store_->unstored(), 0U) << "nothing can be stored of a job that does not exist";
  EXPECT_FALSE(store_->job("gone").ok());
}

}  // namespace
}  // namespace kymo::store
