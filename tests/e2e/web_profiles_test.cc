// kymod's HTTP API for kept stack profiles. The test writes the profiles, so it knows the expected answers.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/sqlite/database.h"
#include "profiler/kept/some_minute.h"
#include "profiler/kept/sqlite_store.h"
#include "profiler/stacks/named_profile.h"
#include "profiler/stacks/output.h"
#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using profiles::SomeMinute;
using profiles::SqliteStore;

constexpr std::int64_t kFirst = 29'017'620;  // 2025-03-04 03:00 UTC
constexpr std::int64_t kMinutes = 10;

std::string instants(std::int64_t begin, std::int64_t end) {
  return "?from_unix_ns=" + std::to_string(begin * profiles::kNanosPerMinute) +
         "&to_unix_ns=" + std::to_string(end * profiles::kNanosPerMinute);
}

class WebProfilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    fs::create_directory(directory_);
    fs::permissions(directory_, fs::perms::owner_all);
  }

  // Writes ten minutes of profiles. The fourth minute is missing.
  void fill() {
    const auto store = SqliteStore::open(file_);
    ASSERT_TRUE(store) << store.error().message;
    for (std::int64_t minute = kFirst; minute < kFirst + kMinutes; ++minute) {
      if (minute == kFirst + 3) continue;
      const std::uint64_t reads = minute < kFirst + 5 ? 60 : 600;
      add(**store, SomeMinute(minute)
                       .stack("job:web", {"read", "main"}, reads)
                       .stack("job:web", {"write", "main"}, 20)
                       .stack("process:sh", {"main"}, 20));
      add(**store, SomeMinute(minute, profiles::Type::off_cpu).stack("job:web", {"wait"}, 5));
    }
  }
  static void add(SqliteStore& store, const profiles::Minute& minute) {
    const Result<void> added = store.add(minute);
    ASSERT_TRUE(added) << added.error().message;
  }
  // Starts a kymod that serves these profiles, and adds almost nothing to them.
  void start(std::vector<std::string> flags = {"--http-profiles"}) {
    flags.insert(flags.end(), {"--profiles", directory_, "--profiles-only=process:no-such-process",
                               "--profiles-keep-days=0"});
    kymod_.emplace(flags);
    kymod_->start();
  }
  [[nodiscard]] Answer asked(const std::string& what) const { return ask(*kymod_, "/api/" + what); }
  [[nodiscard]] std::string refused(const std::string& what, int status) const {
    const Answer answer = asked(what);
    EXPECT_EQ(answer.status, status) << answer.text;
    const std::string message = answer.message();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }

  TemporaryDirectory folder_;
  std::string directory_ = folder_.path() + "/profiles";
  std::string file_ = directory_ + "/profiles.db";
  const std::string all_ = instants(kFirst, kFirst + kMinutes);
  std::optional<Kymod> kymod_;
};

TEST_F(WebProfilesTest, TheServicesOfARangeTheHottestFirstWithTheirTypes) {
  fill();
  start();
  EXPECT_EQ(ask(*kymod_, "/api/status").body["profiles"], true);
  const Answer answer = asked("profiles" + instants(kFirst, kFirst + 2));
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body["types"][0]["type"], "cpu");
  EXPECT_EQ(answer.body["types"][1]["title"], "waiting");
  EXPECT_EQ(answer.body["kept"]["oldest_unix_ns"], kFirst * profiles::kNanosPerMinute);
  EXPECT_EQ(answer.body["left_out"], 0);
  const nlohmann::json& services = answer.body["services"];
  ASSERT_EQ(services.size(), 3U) << services;
  EXPECT_EQ(services[0], (nlohmann::json{{"service", "job:web"},
                                         {"type", "cpu"},
                                         {"samples", 160},
                                         {"ns", 160 * SomeMinute::kPeriodNs}}));
  EXPECT_EQ(services[1]["service"], "process:sh");
  EXPECT_EQ(services[2]["type"], "off-cpu");
}

TEST_F(WebProfilesTest, TotalsOfStepsAndOfAGap) {
  fill();
  start();
  const Answer minutes = asked("profile_totals" + all_ + "&service=process:sh");
  ASSERT_EQ(minutes.status, 200) << minutes.text;
  EXPECT_EQ(minutes.body["step_ns"], profiles::kNanosPerMinute);
  EXPECT_EQ(minutes.body["samples"], nlohmann::json({20, 20, 20, 0, 20, 20, 20, 20, 20, 20}));
  EXPECT_EQ(minutes.body["covered_ns"][2], profiles::kNanosPerMinute);
  EXPECT_EQ(minutes.body["covered_ns"][3], 0) << "this minute has no samples";
  const Answer thin = asked("profile_totals" + all_ + "&points=3");
  EXPECT_EQ(thin.body["step_ns"], 4 * profiles::kNanosPerMinute);
  EXPECT_EQ(thin.body["samples"], nlohmann::json({300, 100 + 3 * 640, 2 * 640}));
  const Answer idle = asked("profile_totals" + all_ + "&service=job:idle");
  EXPECT_EQ(idle.status, 200) << "a service without CPU time gets an answer, too";
  EXPECT_EQ(idle.body["ns"], nlohmann::json(std::vector<int>(10, 0)));
}

TEST_F(WebProfilesTest, StacksAsTheFlameGraphReadsThemAndAsFiles) {
  fill();
  start();
  const std::string query = "profile" + instants(kFirst, kFirst + 2) + "&service=job:web";
  const Answer page = asked(query);
  ASSERT_EQ(page.status, 200) << page.text;
  EXPECT_EQ(page.body["title"], "job:web");
  EXPECT_EQ(page.body["samples"], 160);
  EXPECT_EQ(page.body["scale"], SomeMinute::kPeriodNs);
  EXPECT_EQ(page.body["tree"]["depths"], nlohmann::json({0, 1, 2, 2}));
  EXPECT_EQ(page.body["tree"]["self"], nlohmann::json({0, 0, 120, 40}));
  const Answer folded = asked(query + "&format=folded");
  EXPECT_NE(folded.text.find("process;main;read 120"), std::string::npos) << folded.text;
  const Answer pprof = asked(query + "&format=pprof");
  const auto read = stacks::read_pprof(pprof.text, "the answer");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->sum().samples, 160U);
  const Answer waits = asked("profile" + all_ + "&service=job:web&type=off-cpu");
  EXPECT_EQ(waits.body["kind"], "wait");
  EXPECT_EQ(asked("profile" + all_).body["title"], "all services");
}

TEST_F(WebProfilesTest, AComparisonWithTheRangeBefore) {
  fill();
  start();
  const std::string later = instants(kFirst + 5, kFirst + 10);
  const Answer answer = asked("profile_comparison" + later + "&service=job:web");
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body["before_unix_ns"], kFirst * profiles::kNanosPerMinute);
  EXPECT_EQ(answer.body["comparison"]["a"]["samples"], 4 * 80);
  EXPECT_EQ(answer.body["comparison"]["b"]["samples"], 5 * 620);
  EXPECT_EQ(answer.body["tree"]["before"].size(), answer.body["tree"]["self"].size());
  EXPECT_EQ(refused("profile_comparison" + all_ + "&service=job:web", 404),
            "job:web: there are no samples of CPU time in the time before this range; "
            "/api/profiles lists the services that have some");
}

TEST_F(WebProfilesTest, AComparisonWithAnyOtherRange) {
  fill();
  start();
  const auto compared = [](std::int64_t from, std::int64_t to, std::int64_t other) {
    return "profile_comparison" + instants(from, to) +
           "&service=job:web&before_unix_ns=" + std::to_string(other * profiles::kNanosPerMinute);
  };
  // The other range may be later than the shown one. If it is earlier, the part that overlaps is left out.
  for (const auto& [from, to, other, end] :
       {std::array<std::int64_t, 4>{0, 4, 6, 10}, {5, 10, 2, 5}}) {
    const Answer answer = asked(compared(kFirst + from, kFirst + to, kFirst + other));
    ASSERT_EQ(answer.status, 200) << answer.text;
    EXPECT_EQ(answer.body["before_unix_ns"], (kFirst + other) * profiles::kNanosPerMinute);
    EXPECT_EQ(answer.body["before_to_unix_ns"], (kFirst + end) * profiles::kNanosPerMinute);
    const Answer alone =
        asked("profile" + instants(kFirst + other, kFirst + end) + "&service=job:web");
    EXPECT_EQ(answer.body["comparison"]["a"]["samples"], alone.body["samples"]);
  }
  EXPECT_NE(refused(compared(kFirst + 2, kFirst + 6, kFirst + 3), 400).find("overlaps"),
            std::string::npos);
  EXPECT_NE(refused(compared(kFirst + 2, kFirst + 6, kFirst + 300), 404)
                .find("no samples of CPU time in the range to compare with"),
            std::string::npos);
}

TEST_F(WebProfilesTest, AComparisonWithAFileThatLiesBeside) {
  fill();
  start();
  // kymod makes this folder when it starts to keep profiles.
  const std::string files = directory_ + "/files";
  ASSERT_TRUE(eventually([&] { return fs::exists(files); })) << kymod_->log();
  std::ofstream(files + "/old.folded") << "process;main;read 10\nprocess;main;write 150\n";
  std::ofstream(files + "/text.pb.gz") << "hello";
  std::ofstream(files + "/notes.md") << "no profile";
  const Answer others = asked("profile_others");
  ASSERT_EQ(others.status, 200) << others.text;
  EXPECT_EQ(others.body["files"].size(), 2U) << others.text;
  EXPECT_EQ(others.body["checkpoints"], nlohmann::json::array());
  const std::string query =
      "profile_comparison" + instants(kFirst, kFirst + 2) + "&service=job:web&file=";
  const Answer answer = asked(query + "old.folded");
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_FALSE(answer.body.contains("before_unix_ns"));
  EXPECT_EQ(answer.body["comparison"]["a"]["path"], "old.folded");
  EXPECT_EQ(answer.body["comparison"]["a"]["samples"], 160);
  EXPECT_EQ(answer.body["comparison"]["b"]["samples"], 160);
  EXPECT_EQ(answer.body["comparison"]["tested"], true);
  EXPECT_EQ(refused(query + "text.pb.gz", 500), "text.pb.gz is no profile of pprof, or is damaged");
  EXPECT_NE(refused(query + "gone.pb.gz", 404).find("gone.pb.gz"), std::string::npos);
  for (const char* const name : {"../profiles.db", "notes.md", ".", "../files/old.folded"}) {
    EXPECT_EQ(refused(query + name, 400),
              "file=" + std::string(name) + ": give a name that /api/profile_others lists");
  }
  fs::remove(files + "/text.pb.gz");
  fs::create_symlink("/etc/passwd", files + "/text.pb.gz");
  EXPECT_FALSE(refused(query + "text.pb.gz", 403).empty()) << "kymod must not follow a link";
}

TEST_F(WebProfilesTest, AComparisonWithTheStacksOfADump) {
  fill();
  start();
  static_cast<void>(kymod_->churn(16, "web"));
  const nlohmann::json dump = kymod_->kymo_json({"dump", "process", "web", "--leave-running"});
  // A profile as --profiling-stacks makes it, but with known content.
  stacks::NamedProfile stacks;
  stacks.functions = {{"read", "/usr/lib/read.so", true}, {"main", "/usr/lib/main.so", true}};
  stacks.stacks = {{"criu", {0}, false, {7, 70}, "freeze", "criu"},
                   {"process", {0, 1}, false, {40, 400}, "freeze", "target"}};
  const std::string file = dump["directory"].get<std::string>() + "/recordings/dump.pb.gz";
  std::ofstream(file, std::ios::binary) << stacks::pprof(stacks, 0);
  const Answer others = asked("profile_others");
  ASSERT_EQ(others.body["checkpoints"].size(), 1U) << others.text;
  const nlohmann::json one = others.body["checkpoints"][0];
  EXPECT_EQ(one["job"], "web");
  EXPECT_EQ(one["recording"], "dump");
  const std::string id = one["checkpoint"];
  const auto compared = [&](const std::string& service) {
    return "profile_comparison" + instants(kFirst, kFirst + 2) + "&service=" + service +
           "&checkpoint=" + id + "&recording=dump";
  };
  const Answer job = asked(compared("job:web"));
  ASSERT_EQ(job.status, 200) << job.text;
  EXPECT_EQ(job.body["comparison"]["a"]["samples"], 40)
      << "only the samples of the target count, and not those of CRIU";
  EXPECT_EQ(job.body["comparison"]["a"]["path"], "checkpoint " + id + ", dump");
  EXPECT_EQ(asked(compared("")).body["comparison"]["a"]["samples"], 47);
  EXPECT_EQ(refused(compared("process:sh"), 404),
            "checkpoint " + id + ", dump has no stacks of process:sh");
  EXPECT_NE(refused(compared("job:web") + "&type=off-cpu", 409).find("dump.pb.gz has no values of"),
            std::string::npos);
  EXPECT_NE(refused(compared("job:web") + "x", 404).find("dumpx.pb.gz"), std::string::npos);
  EXPECT_NE(refused(compared("job:web") + "/../x", 400).find("recording=dump/../x"),
            std::string::npos);
  EXPECT_NE(refused("profile_comparison" + all_ + "&checkpoint=none&recording=dump", 404), "");
}

TEST_F(WebProfilesTest, BadQuestionsAreOneClearLine) {
  fill();
  start();
  EXPECT_EQ(refused("profiles?to_unix_ns=5", 400), "from_unix_ns is missing");
  EXPECT_EQ(refused("profiles?from_unix_ns=5&to_unix_ns=5", 400),
            "from_unix_ns=5 is not before to_unix_ns=5");
  EXPECT_NE(refused("profiles?from_unix_ns=-5&to_unix_ns=5", 400).find("from_unix_ns=-5"),
            std::string::npos);
  EXPECT_NE(refused("profiles?from_unix_ns=0&to_unix_ns=9223372036854775807", 400).find("to_unix"),
            std::string::npos);
  EXPECT_EQ(refused("profile" + all_ + "&type=heat", 400),
            "type=heat: there are cpu, off-cpu, go-cpu, go-heap, go-alloc, go-goroutine, go-block, "
            "go-mutex");
  EXPECT_EQ(refused("profile" + all_ + "&service=web", 400),
            "service=web: give one that /api/profiles lists, such as job:web, or none");
  EXPECT_EQ(refused("profile" + all_ + "&format=xml", 400),
            "format=xml: there are pprof and folded, and JSON without a format");
  EXPECT_EQ(refused("profile_totals" + all_ + "&points=0", 400), "points=0: give at least 1");
  EXPECT_NE(refused("profile_totals" + all_ + "&points=1001", 400).find("points=1001"),
            std::string::npos);
}

TEST_F(WebProfilesTest, AServiceWithoutSamplesIsNotFound) {
  fill();
  start();
  EXPECT_EQ(refused("profile" + all_ + "&service=job:nobody", 404),
            "job:nobody: there are no samples of CPU time in this range; /api/profiles lists the "
            "services that have some");
}

TEST_F(WebProfilesTest, WithoutTheFlagNoReaderOfThePageSeesThem) {
  fill();
  start({});
  for (const char* what :
       {"profiles", "profile_totals", "profile", "profile_comparison", "profile_others"}) {
    EXPECT_EQ(refused(what + all_, 403),
              "the page does not show profiles, because they name what all users run: start kymod "
              "with --http-profiles, or use kymo profiles");
  }
}

TEST_F(WebProfilesTest, AKymodThatKeepsNoneSaysSo) {
  kymod_.emplace();
  kymod_->start();
  EXPECT_EQ(ask(*kymod_, "/api/status").body["profiles"], false);
  EXPECT_EQ(refused("profiles" + all_, 409),
            "kymod keeps no profiles: start it with --profiles=FOLDER");
}

TEST_F(WebProfilesTest, AFileThatIsLockedOrDamagedIsNamed) {
  fill();
  {
    const auto lock = store::Database::open(file_);
    ASSERT_TRUE(lock);
    ASSERT_TRUE((*lock)->run("lock", "PRAGMA locking_mode = EXCLUSIVE"));
    ASSERT_TRUE((*lock)->run("lock", "BEGIN EXCLUSIVE"));
    start();
    const std::string locked = refused("profiles" + all_, 503);
    EXPECT_NE(locked.find(file_ + ": database is locked"), std::string::npos) << locked;
  }
  EXPECT_EQ(asked("profiles" + all_).status, 200);
  for (const auto& entry : fs::directory_iterator(directory_)) fs::remove(entry);
  std::ofstream(file_) << std::string(5000, 'x');
  const std::string damaged = refused("profiles" + all_, 500);
  EXPECT_NE(damaged.find(file_ + ": file is not a database"), std::string::npos) << damaged;
  EXPECT_EQ(kymod_->kymo({"ps"}).exit_code, 0);
}

}  // namespace
}  // namespace kymo::test
