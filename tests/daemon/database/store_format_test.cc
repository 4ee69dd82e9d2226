// Older, newer and foreign files.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/database/store.h"
#include "store_fixture.h"

namespace kymo::store {
namespace {

TEST_F(StoreTest, RefusesANewerFormatByNameAndLeavesItAlone) {
  ASSERT_TRUE(store_->add_job(make_job("a")).ok());
  store_.reset();
  sql("UPDATE about SET value = 9 WHERE key = 'format_version'");
  const auto newer = Store::open(path());
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().code, Code::failed_precondition);
  EXPECT_NE(newer.error().message.find("format_version 9, and this kymod reads up to 8"),
            std::string::npos)
      << newer.error().message;
  sql("UPDATE about SET value = 8 WHERE key = 'format_version'");
  reopen();
  EXPECT_TRUE(store_->job("a").ok());
}

TEST_F(StoreTest, RefusesSomebodyElsesDatabase) {
  store_.reset();
  std::filesystem::remove(path());
  sql("CREATE TABLE songs (title TEXT)");
  const auto other = Store::open(path());
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("not one of kymod's"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path() + ".corrupt-1"));
}

// The tables of kymod 0.1.
constexpr char kFirstFormat[] =
    "CREATE TABLE about (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE jobs (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, command TEXT NOT NULL,"
    " pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, stdout_path TEXT NOT NULL,"
    " stderr_path TEXT NOT NULL, state TEXT NOT NULL, exit_status INTEGER,"
    " created_unix_ns INTEGER NOT NULL);"
    "CREATE TABLE checkpoints (id TEXT PRIMARY KEY, job_id TEXT NOT NULL, pid INTEGER NOT NULL,"
    " directory TEXT NOT NULL, created_unix_ns INTEGER NOT NULL, state TEXT NOT NULL,"
    " error TEXT NOT NULL, image_bytes INTEGER NOT NULL, duration_ns INTEGER NOT NULL,"
    " stats_json TEXT NOT NULL);"
    "CREATE INDEX checkpoints_by_job ON checkpoints (job_id, created_unix_ns);"
    "INSERT INTO about VALUES ('format_version', 1);"
    "INSERT INTO jobs VALUES ('a', 'web', '[\"x\"]', 5, 6, '', '', 'dumped', NULL, 7);"
    "INSERT INTO checkpoints VALUES ('c1', 'a', 5, '/c1', 8, 'complete', '', 4096, 99, '{}');"
    "INSERT INTO checkpoints VALUES ('c2', 'a', 5, '/c2', 9, 'failed', 'no', 0, 1, '');"
    "INSERT INTO checkpoints VALUES ('c3', 'a', 5, '/c3', 10, 'started', '', 0, 0, '');";

class OlderFormat : public StoreTest {
 protected:
  void SetUp() override { sql(kFirstFormat); }
};

TEST_F(OlderFormat, IsBroughtUpToDateWithItsHistory) {
  reopen();
  EXPECT_EQ(store_->moved_aside(), "");
  EXPECT_EQ(store_->job("web")->state, JobState::dumped);
  EXPECT_EQ(store_->checkpoints("a").size(), 3U);
  const Result<std::vector<store::Run>> runs = store_->runs("job:web", RunKind::dump);
  ASSERT_TRUE(runs.ok()) << runs.error().message;
  ASSERT_EQ(runs->size(), 2U) << "a dump that has not ended is not a run";
  EXPECT_EQ(runs->at(0).checkpoint_id, "c1");
  EXPECT_EQ(runs->at(0).duration_ns, 99U);
  EXPECT_EQ(runs->at(0).image_bytes, 4096U);
  EXPECT_EQ(runs->at(0).warmth, "");
  EXPECT_EQ(runs->at(1).error, "no");
  reopen();  // the second time, nothing needs to be changed
  EXPECT_EQ(store_->runs("job:web", RunKind::dump)->size(), 2U);
}

TEST_F(OlderFormat, StaysAsItWasWhereTheChangeFailsHalfWay) {
  // The update makes an index of this name after its table, and fails.
  sql("CREATE TABLE runs_by_job (x)");
  EXPECT_FALSE(Store::open(path()).ok());
  sql("DROP TABLE runs_by_job");
  sql("CREATE TABLE runs (x)");  // succeeds only if the update that failed has left no such table
  sql("DROP TABLE runs");
  reopen();
  EXPECT_EQ(store_->runs("job:web", RunKind::dump)->size(), 2U);
}

// Before there was a column, the error of a checkpoint told whether kymod had stopped during its dump.
TEST_F(StoreTest, OfTheFourthFormatKnowsWhichDumpsWereCutShort) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"cut", "kymod stopped during the dump; process 5 is held"},
      {"whole", "kymod stopped before the result of the dump was saved; the images are complete"},
      {"stalled", "the disk did not answer"}};
  for (const auto& [id, error] : kErrors) {
    Checkpoint checkpoint = make_checkpoint(id, "a");
    checkpoint.state = CheckpointState::unconfirmed;
    checkpoint.error = error;
    ASSERT_TRUE(store_->add_checkpoint(checkpoint).ok());
  }
  store_.reset();
  sql("ALTER TABLE checkpoints DROP COLUMN cut_short");
  for (const char* column : {"refused", "failure", "verdict", "written_bytes"}) {
    sql(std::string("ALTER TABLE runs DROP COLUMN ") + column);
  }
  sql("UPDATE about SET value = 4 WHERE key = 'format_version'");
  reopen();
  EXPECT_EQ(store_->moved_aside(), "");
  EXPECT_TRUE(store_->checkpoint("cut")->cut_short);
  EXPECT_TRUE(store_->checkpoint("whole")->cut_short);
  EXPECT_FALSE(store_->checkpoint("stalled")->cut_short);
}

TEST_F(StoreTest, WhetherADumpWasCutShortIsStored) {
  Checkpoint checkpoint = make_checkpoint("c", "a");
  ASSERT_TRUE(store_->add_checkpoint(checkpoint).ok());
  reopen();
  EXPECT_FALSE(store_->checkpoint("c")->cut_short);
  checkpoint.cut_short = true;
  ASSERT_TRUE(store_->update_checkpoint(checkpoint).ok());
  reopen();
  EXPECT_TRUE(store_->checkpoint("c")->cut_short);
}

}  // namespace
}  // namespace kymo::store
