#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "daemon/database/store.h"
#include "support/temporary_directory.h"

namespace kymo::store {

inline Job make_job(const std::string& id) {
  Job job;
  job.id = id;
  job.name = "name-" + id;
  job.command = {"churn", "--mib", "5 \"12\"", ""};
  job.pid = 4321;
  job.start_ticks = ~std::uint64_t{0};
  job.stdout_path = "/s/out";
  job.stderr_path = "/s/err";
  job.created_unix_ns = 1'700'000'000'123'456'789;
  return job;
}

inline Checkpoint make_checkpoint(const std::string& id, const std::string& job_id) {
  Checkpoint c;
  c.id = id;
  c.job_id = job_id;
  c.pid = 4321;
  c.directory = "/s/checkpoints/" + id;
  c.created_unix_ns = 5;
  return c;
}

inline Run make_run(const std::string& id, const std::string& owner, std::int64_t when) {
  Run run;
  run.id = id;
  run.owner = owner;
  run.checkpoint_id = "c-" + id;
  run.created_unix_ns = when;
  run.duration_ns = 5'000'000;
  run.image_bytes = 1ULL << 40U;
  run.written_bytes = 1ULL << 41U;
  run.conditions = "leave running";
  run.warmth = "warm";
  run.stats_json = R"({"pages_written":1})";
  run.phases_json = R"({"criu starts":3})";
  run.stood_still_ns = 4'000'000;
  run.away_ns = 6'000'000;
  run.disk = "ext4 /dev/sda1";
  return run;
}

// A store in a folder for the test.
class StoreTest : public testing::Test {
 protected:
  void SetUp() override { reopen(); }
  void reopen() {
    store_.reset();
    Result<std::unique_ptr<Store>> store = Store::open(path());
    ASSERT_TRUE(store.ok()) << store.error().message;
    store_ = std::move(*store);
  }
  [[nodiscard]] virtual std::string path() const { return folder_.path() + "/kymo.db"; }
  void sql(const std::string& text) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  test::TemporaryDirectory folder_;
  std::unique_ptr<Store> store_;
};

}  // namespace kymo::store
