#include "profiler/kept/sqlite_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "profiler/kept/bodies.h"
#include "some_minute.h"
#include "support/temporary_directory.h"

namespace kymo::profiles {
namespace {

namespace fs = std::filesystem;
using stacks::NamedProfile;

constexpr Range kAll{0, 1'000'000'000};

class SqliteStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { open(); }
  void open() {
    store_.reset();
    Result<std::unique_ptr<SqliteStore>> opened = SqliteStore::open(path_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }
  void add(const Minute& minute) {
    const Result<void> added = store_->add(minute);
    ASSERT_TRUE(added) << added.error().message;
  }
  Removed keep(const Limits& limits) {
    const Result<Removed> kept = store_->keep_within(limits);
    EXPECT_TRUE(kept) << kept.error().message;
    return kept ? *kept : Removed();
  }
  // Removes all that is beyond the limits.
  void keep_only(const Limits& limits) {
    while (keep(limits).minutes() != 0) {
    }
  }
  void add_minutes(std::int64_t begin, std::int64_t end) {
    for (std::int64_t minute = begin; minute < end; ++minute) {
      add(SomeMinute(minute).stack("process:a", {"f"}, 1));
    }
  }
  // Large minutes, each with stacks of its own.
  void add_large(std::int64_t minute) {
    SomeMinute filled(minute);
    for (int i = 0; i < 50; ++i) {
      const std::string own = std::to_string(minute) + "-" + std::to_string(i);
      filled.stack("process:a", {"f", own, std::string(100, 'x') + own}, 1);
    }
    add(filled);
  }
  [[nodiscard]] Extent extent() { return store_->extent().value(); }
  // The samples of each stack. "f<g" means that g calls f.
  std::map<std::string, std::uint64_t> stacks(const Query& query) {
    const Result<NamedProfile> profile = store_->profile(query);
    EXPECT_TRUE(profile) << (profile ? "" : profile.error().message);
    std::map<std::string, std::uint64_t> found;
    for (const NamedProfile::Stack& stack : profile->stacks) {
      std::string names;
      for (const std::uint32_t function : stack.functions) {
        names += (names.empty() ? "" : "<") + profile->functions[function].name;
      }
      found[names + (stack.truncated ? "..." : "")] += stack.weight.samples;
    }
    return found;
  }
  // Runs a statement on the file, without the store.
  void change(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  test::TemporaryDirectory folder_;
  const std::string path_ = folder_.path() + "/profiles.db";
  std::unique_ptr<SqliteStore> store_;
};

using Stacks = std::map<std::string, std::uint64_t>;

TEST_F(SqliteStoreTest, WhatWasAddedIsFoundAgain) {
  add(SomeMinute(10)
          .stack("job:web", {"read", "main"}, 3)
          .stack("job:web", {"read", "main"}, 1, true)
          .stack("process:sh", {"unknown"}, 7)
          .lost(2));
  open();
  const auto profile = store_->profile({Type::cpu, service_in("job:web"), kAll});
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->period_ns, SomeMinute::kPeriodNs);
  EXPECT_EQ(profile->duration_ns, 60'000'000'000U);
  EXPECT_EQ(profile->lost, 2U);
  EXPECT_EQ(profile->sum().samples, 4U);
  EXPECT_EQ(profile->sum().value, 4 * SomeMinute::kPeriodNs);
  EXPECT_EQ(stacks({Type::cpu, service_in("job:web"), kAll}),
            (Stacks{{"read<main", 3}, {"read<main...", 1}}));
  const auto shell = store_->profile({Type::cpu, service_in("process:sh"), kAll});
  ASSERT_EQ(shell->functions.size(), 1U);
  EXPECT_EQ(shell->functions[0].module, "/usr/lib/unknown.so");
  EXPECT_FALSE(shell->functions[0].known);
  EXPECT_EQ(shell->stacks[0].process, "process");
}

TEST_F(SqliteStoreTest, ARangeHasItsMinutesAndATypeItsOwn) {
  for (const std::int64_t minute : {10, 11, 12}) {
    add(SomeMinute(minute).stack("process:a", {"f"}, 1).stack("process:b", {"g"}, 10));
  }
  add(SomeMinute(11, Type::off_cpu).stack("process:a", {"wait"}, 100));
  EXPECT_EQ(stacks({Type::cpu, {}, {10, 12}}), (Stacks{{"f", 2}, {"g", 20}}));
  EXPECT_EQ(stacks({Type::off_cpu, {}, {10, 12}}), (Stacks{{"wait", 100}}));
  EXPECT_EQ(stacks({Type::cpu, service_in("job:a"), kAll}), Stacks());
  const auto totals = store_->totals({Type::cpu, service_in("process:b"), {11, 20}});
  ASSERT_EQ(totals->size(), 2U);
  EXPECT_EQ(totals->at(0).minute, 11);
  EXPECT_EQ(totals->at(0).weight.samples, 10U);
  EXPECT_EQ(store_->totals({Type::cpu, {}, kAll})->at(0).weight.samples, 11U);
  const auto services = store_->services({10, 12});
  ASSERT_EQ(services->size(), 3U);
  // The service with the most samples is the first one.
  EXPECT_EQ(text_of(services->at(0).service), "process:a");
  EXPECT_EQ(services->at(0).type, Type::off_cpu);
  EXPECT_EQ(services->at(1).weight.samples, 20U);
}

TEST_F(SqliteStoreTest, AMinuteWithoutSamplesIsCoveredAndAMissingOneIsNot) {
  add(SomeMinute(10).stack("process:a", {"f"}, 1));
  add(SomeMinute(11));
  add(SomeMinute(13));
  add(SomeMinute(12, Type::off_cpu));
  const auto covered = store_->covered(Type::cpu, {10, 13});
  ASSERT_TRUE(covered) << covered.error().message;
  ASSERT_EQ(covered->size(), 2U);
  EXPECT_EQ(covered->at(1).minute, 11);
  EXPECT_EQ(covered->at(1).covered_ns, 60'000'000'000U);
}

TEST_F(SqliteStoreTest, WhatIsTooMuchForAnAnswerIsOneStackAndTheSumStays) {
  SomeMinute minute(10);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    minute.stack("process:a", {"f" + std::to_string(i), "main"}, i);
  }
  add(minute);
  Query query{Type::cpu, {}, kAll};
  const auto whole = store_->profile(query);
  EXPECT_EQ(whole->stacks.size(), 100U);
  query.most_bytes = 2000;
  const auto bounded = store_->profile(query);
  ASSERT_TRUE(bounded) << bounded.error().message;
  EXPECT_LT(bounded->stacks.size(), 20U);
  EXPECT_EQ(bounded->stacks.front().weight.samples, 100U)
      << "the stacks with the most samples must be kept";
  EXPECT_EQ(bounded->stacks.back().process, kRareStacks);
  EXPECT_EQ(bounded->sum().samples, whole->sum().samples);
}

TEST_F(SqliteStoreTest, AStackIsStoredOnce) {
  for (std::int64_t minute = 0; minute < 5; ++minute) {
    add(SomeMinute(minute).stack("process:a", {"f", "g"}, 1).stack("process:b", {"f", "g"}, 1));
  }
  EXPECT_EQ(extent().stacks, 1U);
  EXPECT_EQ(extent().rows, 10U);
  EXPECT_EQ(extent().minutes, 5U);
  EXPECT_EQ(extent().samples, 10U);
}

TEST_F(SqliteStoreTest, TwoStacksOfOneHashAreTwo) {
  const std::string body = body_of(NamedProfile::Function{"f", "/usr/lib/f.so", true});
  change("INSERT INTO functions (hash, body, last) VALUES (" + std::to_string(hash_of(body)) +
         ", x'00', 10)");
  add(SomeMinute(10).stack("process:a", {"f"}, 1));
  EXPECT_EQ(stacks({Type::cpu, {}, kAll}), (Stacks{{"f", 1}}));
}

TEST_F(SqliteStoreTest, AMinuteThatComesAgainGetsMore) {
  add(SomeMinute(10).stack("process:a", {"f"}, 1).lost(1));
  add(SomeMinute(11).stack("process:a", {"f"}, 1));
  add(SomeMinute(10).stack("process:a", {"f"}, 5).stack("process:a", {"g"}, 1).lost(1).later());
  EXPECT_EQ(stacks({Type::cpu, {}, {10, 11}}), (Stacks{{"f", 6}, {"g", 1}}));
  EXPECT_EQ(store_->totals({Type::cpu, {}, kAll})->at(0).weight.samples, 7U);
  EXPECT_EQ(store_->profile({Type::cpu, {}, {10, 11}})->lost, 2U);
}

TEST_F(SqliteStoreTest, WhatWasAddedBeforeIsNotAddedAgain) {
  for (int i = 0; i < 2; ++i) add(SomeMinute(10).stack("process:a", {"f"}, 3).lost(1));
  EXPECT_EQ(stacks({Type::cpu, {}, kAll}), (Stacks{{"f", 3}}));
  EXPECT_EQ(store_->totals({Type::cpu, {}, kAll})->at(0).weight.samples, 3U);
  EXPECT_EQ(store_->profile({Type::cpu, {}, kAll})->lost, 1U);
  EXPECT_EQ(extent().samples, 3U);
}

TEST_F(SqliteStoreTest, AFileOfVersionOneIsUpdated) {
  add(SomeMinute(10).stack("process:a", {"f"}, 3).lost(1));
  store_.reset();
  change(
      "CREATE TABLE before (minute INTEGER, type INTEGER, covered_ns INTEGER NOT NULL, "
      "period_ns INTEGER NOT NULL, lost INTEGER NOT NULL, rows INTEGER NOT NULL, "
      "samples INTEGER NOT NULL, PRIMARY KEY (minute, type)) WITHOUT ROWID; "
      "INSERT INTO before SELECT minute, type, covered_ns, period_ns, lost, rows, samples FROM "
      "minutes; DROP TABLE minutes; ALTER TABLE before RENAME TO minutes; "
      "PRAGMA user_version = 1");
  const auto reader = SqliteStore::open_to_read(path_);
  ASSERT_TRUE(reader) << "a reader must be able to open it before a kymod has updated it";
  EXPECT_EQ((*reader)->profile({Type::cpu, {}, kAll})->lost, 1U);
  open();
  add(SomeMinute(10).stack("process:a", {"f"}, 4).lost(1).later());
  EXPECT_EQ(extent().samples, 7U);
  EXPECT_EQ(store_->profile({Type::cpu, {}, kAll})->lost, 2U);
}

TEST_F(SqliteStoreTest, AFileOfVersionTwoIsUpdated) {
  for (std::int64_t minute = 100; minute < 1000; minute += 100) {
    const std::string own = "only" + std::to_string(minute);
    add(SomeMinute(minute).stack("process:a", {"f"}, 1).stack("process:" + own, {own}, 1));
  }
  store_.reset();
  // There, stacks and functions had the time at which they were seen last, or up to an hour later.
  change(
      "UPDATE stacks SET last = 100 * last + 50; UPDATE functions SET last = 100 * last + 50; "
      "DROP INDEX minutes_by_taken; ALTER TABLE minutes DROP COLUMN taken; "
      "PRAGMA user_version = 2");
  const auto reader = SqliteStore::open_to_read(path_);
  ASSERT_TRUE(reader) << "a reader must be able to open it before a kymod has updated it";
  EXPECT_EQ((*reader)->extent()->rows, 18U);
  open();
  keep_only({3, 0});
  EXPECT_EQ(extent().oldest, 600);
  EXPECT_EQ(extent().stacks, 5U) << "f and one stack for each of the four minutes";
  add_minutes(1000, 1001);
  EXPECT_EQ(extent().samples, 9U);
}

// Memory in use cannot be added over time. So the store returns the average.
TEST_F(SqliteStoreTest, OfALevelTheAverageIsFound) {
  add(SomeMinute(10, Type::go_heap).stack("target:a", {"f"}, 30).stack("target:b", {"f"}, 7));
  add(SomeMinute(11, Type::go_heap).stack("target:a", {"f"}, 20).stack("target:a", {"g"}, 5));
  add(SomeMinute(11, Type::go_alloc).stack("target:a", {"f"}, 1));
  EXPECT_EQ(stacks({Type::go_heap, Service{Service::Kind::target, "a"}, kAll}),
            (Stacks{{"f", 25}, {"g", 3}}))
      << "2.5, rounded";
  EXPECT_EQ(stacks({Type::go_heap, {}, kAll}), (Stacks{{"f", 32}, {"g", 3}}));
  const auto services = store_->services(kAll).value();
  ASSERT_EQ(services.size(), 3U);
  EXPECT_EQ(services[0].weight.samples, 28U) << "27.5, rounded";
  EXPECT_EQ(services[1].weight.samples, 7U);
  EXPECT_EQ(store_->totals({Type::go_heap, {}, kAll})->at(0).weight.samples, 37U);
}

TEST_F(SqliteStoreTest, WhatIsTooOldIsRemoved) {
  for (std::int64_t minute = 0; minute < 1000; minute += 100) {
    const std::string own = "only" + std::to_string(minute);
    add(SomeMinute(minute).stack("process:a", {"f"}, 1).stack("process:" + own, {own}, 1));
  }
  keep_only({3, 0});
  EXPECT_EQ(extent().oldest, 600);
  EXPECT_EQ(extent().newest, 900);
  EXPECT_EQ(extent().rows, 8U);
  EXPECT_EQ(extent().stacks, 5U) << "f and one stack for each of the four minutes";
  EXPECT_EQ(store_->services(kAll)->size(), 5U);
  EXPECT_EQ(stacks({Type::cpu, {}, kAll}).at("f"), 4U);
  for (std::int64_t minute = 10'000; minute < 10'080; ++minute) add(SomeMinute(minute));
  keep_only({4, 0});
  EXPECT_EQ(extent().minutes, 5U);
  EXPECT_EQ(extent().stacks, 0U);
  EXPECT_EQ(stacks({Type::cpu, {}, kAll}), Stacks());
}

TEST_F(SqliteStoreTest, NeverMoreThanItsShareIsRemovedAtOnce) {
  add_minutes(0, 320);
  const Removed removed = keep({10, 0});
  EXPECT_EQ(removed, (Removed{20, 0, 0, 19})) << "a sixteenth";
  EXPECT_EQ(extent().minutes, 300U);
  keep_only({10, 0});
  EXPECT_EQ(extent().oldest, 309);
}

TEST_F(SqliteStoreTest, AClockAYearAheadDeletedEveryMinute) {
  constexpr std::int64_t kYear = 365 * 24 * 60;
  add_minutes(0, 100);
  for (std::int64_t minute = kYear; minute < kYear + 10; ++minute) {
    add_minutes(minute, minute + 1);
    EXPECT_EQ(keep({200, 0}).minutes(), 0U);
  }
  // The clock is right again.
  add_minutes(110, 300);
  keep_only({200, 0});
  EXPECT_EQ(extent().minutes, 201U);
  EXPECT_EQ(extent().oldest, 99) << "the minutes that were taken first are removed";
  add_minutes(300, 301);
  add_minutes(301, 302);
  EXPECT_EQ(keep({200, 0}), (Removed{2, 0, 99, kYear}));
}

TEST_F(SqliteStoreTest, MinutesOfAWrongClockOutlivedTheOthersUnderALimitOfBytes) {
  constexpr std::int64_t kFar = 50'000'000;
  constexpr std::uint64_t kLimit = 256 * 1024;
  for (std::int64_t minute = kFar; minute < kFar + 10; ++minute) add_large(minute);
  Removed removed;
  for (std::int64_t minute = 0; minute < 100; ++minute) {
    add_large(minute);
    removed.add(keep({0, kLimit}));
    ASSERT_LE(extent().bytes, kLimit) << minute;
  }
  EXPECT_EQ(removed.newest, kFar + 9);
  EXPECT_EQ(removed.too_old, 0U);
  EXPECT_EQ(removed.too_many + extent().minutes, 110U);
  EXPECT_EQ(extent().newest, 99);
  EXPECT_GT(extent().minutes, 5U);
}

TEST_F(SqliteStoreTest, AMinuteToWhichMoreWasAddedIsAsNewAsThat) {
  add_minutes(0, 10);
  add(SomeMinute(0).stack("process:a", {"f"}, 5).later());
  add_minutes(20, 22);
  keep_only({3, 0});
  EXPECT_EQ(extent().oldest, 0);
  EXPECT_EQ(extent().minutes, 4U) << "9, 0, 20 and 21";
  EXPECT_EQ(stacks({Type::cpu, {}, {0, 1}}).at("f"), 6U);
}

// The store notes only now and then that a stack was seen again.
TEST_F(SqliteStoreTest, WhatIsStillSeenStays) {
  for (std::int64_t minute = 0; minute < 150; ++minute) {
    add(SomeMinute(minute).stack("process:a", {"f"}, 1));
    keep({5, 0});
    ASSERT_EQ(extent().stacks, 1U) << minute;
  }
  EXPECT_EQ(stacks({Type::cpu, {}, kAll}), (Stacks{{"f", 6}}));
}

TEST_F(SqliteStoreTest, TheStoreStaysWithinItsSpace) {
  constexpr std::uint64_t kLimit = 256 * 1024;
  for (std::int64_t minute = 0; minute < 300; ++minute) {
    add_large(minute);
    keep({0, kLimit});
    ASSERT_LE(extent().bytes, kLimit) << minute;
  }
  EXPECT_EQ(extent().newest, 299);
  EXPECT_GT(extent().minutes, 3U);
  store_.reset();
  EXPECT_LE(fs::file_size(path_), kLimit) << "the limit holds for the size of the file";
}

// A minute must be in the store completely or not at all.
TEST_F(SqliteStoreTest, AWriterThatIsKilledLeavesNoHalfMinute) {
  const pid_t writer = fork();
  if (writer == 0) {
    auto store = SqliteStore::open(path_);
    for (std::int64_t minute = 0;; ++minute) {
      SomeMinute filled(minute);
      for (int i = 0; i < 200; ++i) filled.stack("process:a", {"f" + std::to_string(i)}, 1);
      static_cast<void>((*store)->add(filled));
    }
  }
  EXPECT_TRUE(test::eventually([&] { return extent().minutes > 5; }));
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
  open();
  const Extent after = extent();
  EXPECT_EQ(after.samples, 200 * after.minutes);
  EXPECT_EQ(store_->profile({Type::cpu, {}, kAll})->sum().samples, after.samples);
  EXPECT_EQ(store_->totals({Type::cpu, {}, kAll})->size(), after.minutes);
}

TEST_F(SqliteStoreTest, AReaderSeesWhatAWriterAdds) {
  const auto reader = SqliteStore::open_to_read(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  add(SomeMinute(10).stack("process:a", {"f"}, 1));
  EXPECT_EQ((*reader)->extent()->rows, 1U);
  EXPECT_FALSE((*reader)->add(SomeMinute(11).stack("process:a", {"f"}, 1)));
}

TEST_F(SqliteStoreTest, OtherFilesAreRefused) {
  EXPECT_EQ(SqliteStore::open_to_read(folder_.path() + "/none").error().code, Code::not_found);
  const std::string text = folder_.file("text", std::string(5000, 'x'));
  EXPECT_EQ(SqliteStore::open(text).error().code, Code::data_loss);
  change("PRAGMA application_id = 7");
  const auto other = SqliteStore::open(path_);
  EXPECT_EQ(other.error().code, Code::invalid_argument);
  EXPECT_NE(other.error().message.find("does not hold stack profiles"), std::string::npos);
}

TEST_F(SqliteStoreTest, ALaterVersionIsRefused) {
  change("PRAGMA user_version = 4");
  EXPECT_EQ(SqliteStore::open(path_).error().code, Code::failed_precondition);
  EXPECT_EQ(SqliteStore::open_to_read(path_).error().code, Code::failed_precondition);
}

TEST_F(SqliteStoreTest, ADamagedFileIsReported) {
  add(SomeMinute(10).stack("process:a", {"f"}, 1));
  change("UPDATE stacks SET body = x'ff'");
  const auto profile = store_->profile({Type::cpu, {}, kAll});
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, Code::data_loss);
  EXPECT_NE(profile.error().message.find(path_), std::string::npos);
}

}  // namespace
}  // namespace kymo::profiles
