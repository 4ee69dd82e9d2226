#include "profiler/kept/minute_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/line_reader.h"
#include "base/lock.h"
#include "base/pipe.h"
#include "base/proc/process.h"
#include "profiler/kept/sqlite_store.h"
#include "profiler/stacks/output.h"
#include "support/temporary_directory.h"

namespace kymo::profiles {
namespace {

// The frames of these minutes are in no module. So they are written without names, and no program is read.
class MinuteWriterTest : public ::testing::Test {
 protected:
  static TakenMinute taken(std::int64_t minute, std::uint64_t samples) {
    TakenMinute taken;
    taken.minute = minute;
    taken.period_ns = 10;
    taken.duration_ns = kNanosPerMinute;
    stacks::Trace trace;
    trace.process = "web";
    trace.service = "process:web";
    trace.frames = {{nullptr, 1}};
    taken.traces[trace] = {samples, 10 * samples};
    return taken;
  }
  // Writes the minutes that wait, if that is possible now.
  void write() {
    EXPECT_TRUE(test::eventually([&] {
      writer_.look();
      return !writer_.busy();
    }));
  }
  std::string answer() { return answers_.next().value_or("none"); }
  Extent extent() {
    const auto store = SqliteStore::open_to_read(order_.directory + "/profiles.db");
    return store ? (*store)->extent().value() : Extent();
  }

  test::TemporaryDirectory folder_;
  KeeperOrder order_{folder_.path() + "/profiles", 49, false, {}, {}, {}};
  Pipe pipe_ = make_pipe().value();
  LineReader answers_{pipe_.from.get()};
  MinuteWriter writer_{order_, pipe_.to.get(), -1};
};

// Stands in for a process that reads names and is controlled by an attacker: it answers with nonsense.
// tests/profiler/stacks/taken_over_test.cc tests what else it can do.
Result<std::string> nonsense(const stacks::Profile& /*profile*/) {
  return std::string("nonsense\n\x1b[2J of many\nlines");
}
Result<std::string> nothing(const stacks::Profile& /*profile*/) {
  return std::string();
}
// Returns valid pprof files, but with another quantity, for another service, or with more samples than were taken.
Result<std::string> lie(stacks::Quantity quantity, const char* service, std::uint64_t samples) {
  stacks::NamedProfile said;
  said.quantity = quantity;
  said.functions = {{"main", "x", true}};
  said.stacks = {{"web", {0}, false, {samples, 5}, "", "", service}};
  return stacks::pprof(said, 0);
}
Result<std::string> other_quantity(const stacks::Profile& /*profile*/) {
  return lie(stacks::Quantity::heap, "process:web", 7);
}
Result<std::string> other_service(const stacks::Profile& /*profile*/) {
  return lie(stacks::Quantity::cpu, "job:other", 7);
}
Result<std::string> more_samples(const stacks::Profile& /*profile*/) {
  return lie(stacks::Quantity::cpu, "process:web", 1'000'000);
}

// Names nothing until the test closes its end of this pipe.
Pipe name_when;
Result<std::string> waits_to_name(const stacks::Profile& profile) {
  name_when.to.reset();
  LineReader(name_when.from.get()).read();
  return stacks::confined_pprof(profile);
}

TEST_F(MinuteWriterTest, AReaderOfNamesThatWasTakenOverIsNotBelieved) {
  std::filesystem::create_directory(order_.directory);
  const std::string asked =
      "failed 0 the process that reads names sent an answer that is not valid";
  const std::vector<std::pair<MinuteWriter::Namer, std::string>> answers{
      {nonsense, "failed 0 the stacks of a minute is no profile of pprof, or is damaged"},
      {nothing, "failed 0 the stacks of a minute is no profile of pprof, or is damaged"},
      {other_quantity,
       "failed 0 the stacks of a minute has no values of CPU time, but inuse_objects in count, "
       "inuse_space in bytes"},
      {other_service, asked},
      {more_samples, asked}};
  for (const auto& [namer, wanted] : answers) {
    MinuteWriter writer(order_, pipe_.to.get(), -1, namer);
    writer.add(taken(10, 7));
    EXPECT_TRUE(test::eventually([&] {
      writer.look();
      return !writer.busy();
    }));
    EXPECT_EQ(answer(), wanted);
    EXPECT_EQ(extent().minutes, 0U);
  }
  writer_.add(taken(11, 3));
  write();
  EXPECT_EQ(answer(), "kept 3 0") << "the store must be unchanged";
}

TEST_F(MinuteWriterTest, AMinuteIsWrittenAndSaid) {
  std::filesystem::create_directory(order_.directory);
  writer_.add(taken(10, 3));
  writer_.add(taken(11, 4));
  write();
  EXPECT_EQ(answer(), "kept 7 0");
  EXPECT_EQ(extent().samples, 7U);
  EXPECT_EQ(extent().minutes, 2U);
}

TEST_F(MinuteWriterTest, MinutesWereRemovedSilently) {
  std::filesystem::create_directory(order_.directory);
  order_.limits.minutes = 2;
  for (std::int64_t minute = 10; minute < 13; ++minute) {
    writer_.add(taken(minute, 1));
    write();
    EXPECT_EQ(answer(), "kept 1 0");
  }
  writer_.add(taken(500'000, 1));
  write();
  EXPECT_EQ(answer(), "removed [1,0,10,10]");
  EXPECT_EQ(answer(), "kept 1 0");
  EXPECT_EQ(extent().minutes, 3U);
}

TEST_F(MinuteWriterTest, OneThatCouldNotBeWrittenIsTriedAgainWithTheNext) {
  writer_.add(taken(10, 3));
  write();
  EXPECT_TRUE(answer().starts_with("failed 0 cannot open the file")) << "the folder does not exist";
  std::filesystem::create_directory(order_.directory);
  write();
  EXPECT_EQ(extent().minutes, 0U)
      << "the writer must try again only with the next minute, and not without end";
  writer_.add(taken(11, 4));
  write();
  EXPECT_EQ(answer(), "kept 7 0");
  EXPECT_EQ(extent().oldest, 10);
  EXPECT_EQ(extent().newest, 11);
}

// The store is locked, as by another program that reads the file.
TEST_F(MinuteWriterTest, AStoreThatIsLockedIsSaidAndNothingIsLost) {
  std::filesystem::create_directory(order_.directory);
  writer_.add(taken(10, 3));
  write();
  EXPECT_EQ(answer(), "kept 3 0");
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((order_.directory + "/profiles.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  writer_.add(taken(11, 4));
  write();
  EXPECT_NE(answer().find("profiles.db: database is locked"), std::string::npos);
  sqlite3_close(db);
  writer_.add(taken(12, 5));
  write();
  EXPECT_EQ(answer(), "kept 9 0");
  EXPECT_EQ(extent().samples, 12U);
}

// The writer is stopped while it waits for room in the pipe, to report what it has written.
TEST_F(MinuteWriterTest, AMinuteWhoseWriterIsKilledBeforeItCouldSayItCountsOnce) {
  std::filesystem::create_directory(order_.directory);
  ::fcntl(pipe_.to.get(), F_SETFL, O_NONBLOCK);
  while (::write(pipe_.to.get(), "full\n", 5) > 0) {
  }
  ::fcntl(pipe_.to.get(), F_SETFL, 0);
  writer_.add(taken(10, 3));
  writer_.look();
  ASSERT_TRUE(test::eventually([&] { return extent().samples == 3; }));
  const std::vector<pid_t> children = probe::children_of(::getpid()).value();
  for (const pid_t child : children) ::kill(child, SIGKILL);
  ::fcntl(pipe_.from.get(), F_SETFL, O_NONBLOCK);
  while (answers_.read()) {
  }
  write();
  writer_.add(taken(11, 4));
  write();
  EXPECT_EQ(extent().samples, 7U);
  EXPECT_EQ(extent().minutes, 2U);
}

// The keeper has been killed: its descriptor of the lock is closed, and only the child still runs.
TEST_F(MinuteWriterTest, AChildThatOutlivesTheKeeperLetsAnotherKeeperBegin) {
  std::filesystem::create_directory(order_.directory);
  FileDescriptor lock(::open(order_.directory.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(lock_within(lock.get(), std::chrono::milliseconds(0)), 0);
  name_when = make_pipe().value();
  MinuteWriter writer(order_, pipe_.to.get(), lock.get(), waits_to_name);
  writer.add(taken(10, 3));
  writer.look();
  lock.reset();
  const FileDescriptor other(::open(order_.directory.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(lock_within(other.get(), std::chrono::seconds(30)), 0);
  name_when.to.reset();
  EXPECT_EQ(answer(), "kept 3 0");
  EXPECT_TRUE(test::eventually([&] {
    writer.look();
    return !writer.busy();
  }));
}

TEST_F(MinuteWriterTest, TheOldestAreGivenUpAndCounted) {
  for (std::size_t i = 0; i < MinuteWriter::kMaxMinutes + 2; ++i) {
    writer_.add(taken(static_cast<std::int64_t>(100 + i), 10 + i));
  }
  EXPECT_EQ(answer(), "failed 10 it has waited too long");
  EXPECT_EQ(answer(), "failed 11 it has waited too long");
  std::filesystem::create_directory(order_.directory);
  write();
  EXPECT_EQ(extent().oldest, 102);
  EXPECT_EQ(extent().minutes, MinuteWriter::kMaxMinutes);
}

TEST_F(MinuteWriterTest, WhatIsNotWrittenAtTheEndIsCounted) {
  writer_.add(taken(10, 3));
  writer_.finish(60'000);
  EXPECT_TRUE(answer().starts_with("failed 0 "));
  EXPECT_EQ(answer(), "failed 3 kymod stopped before that was possible");
}

TEST(KeeperTextTest, AnOrderIsReadAgain) {
  const KeeperOrder order{
      "/a b", 99, true, {"job:a", "process:b"}, {7, 8}, {"/pull", "/token", "/ca"}, 30};
  const std::optional<KeeperOrder> read = order_in(order_text(order));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->directory, "/a b");
  EXPECT_EQ(read->rate, 99U);
  EXPECT_TRUE(read->off_cpu);
  EXPECT_EQ(read->only, order.only);
  EXPECT_EQ(read->pull.place, "/pull");
  EXPECT_EQ(read->pull.token_file, "/token");
  EXPECT_EQ(read->pull.ca_file, "/ca");
  EXPECT_EQ(read->pull_every_s, 30);
  EXPECT_EQ(read->limits.minutes, 7);
  EXPECT_EQ(read->limits.bytes, 8U);
  const PullCounts counts{4, 3, 2, 1};
  EXPECT_EQ(pulled_counts_in(pulled_text(counts)), counts);
  EXPECT_FALSE(pulled_counts_in("[1]"));
  const Removed removed{4, 3, 2, 1};
  EXPECT_EQ(removed_in(removed_text(removed)), removed);
  EXPECT_FALSE(removed_in("[1]"));
  const JobSessions jobs{{12, "web"}, {13, "a\"b"}};
  EXPECT_EQ(jobs_in(jobs_text(jobs)), jobs);
  const std::vector<std::string> cgroups{"/a b/\"c\"", "/d"};
  EXPECT_EQ(containers_in(containers_text(cgroups)), cgroups);
  EXPECT_FALSE(jobs_in(containers_text(cgroups)));
  EXPECT_FALSE(containers_in(jobs_text(jobs)));
}

TEST(KeeperTextTest, AClockThatIsSetIsSaid) {
  EXPECT_EQ(clock_note(100, 101, 0), "");
  EXPECT_EQ(clock_note(100, 101, 1), "");
  EXPECT_EQ(clock_note(100, 99, 0), "") << "a correction by a few seconds gets no note";
  EXPECT_TRUE(
      clock_note(100, 40, 1).starts_with("the clock of the machine went back by 60 minutes"));
  EXPECT_EQ(clock_note(100, 160, 60), "") << "no minute was begun for an hour";
  EXPECT_EQ(clock_note(100, 102, 0), "");
  EXPECT_TRUE(
      clock_note(100, 161, 1).starts_with("the clock of the machine went forward by 60 minutes"));
}

TEST(KeeperTextTest, LinesOfOtherFormsAreRefused) {
  for (const char* const line : {"", "{}", "[]", R"({"directory":1})", R"({"jobs":[["a",1]]})"}) {
    EXPECT_FALSE(order_in(line)) << line;
    EXPECT_FALSE(jobs_in(line)) << line;
    EXPECT_FALSE(containers_in(line)) << line;
  }
}

TEST(ServiceFinderTest, AJobComesBeforeAContainerAndThatBeforeTheName) {
  ServiceFinder all({});
  all.set_jobs({{100, "web"}});
  stacks::Trace trace;
  trace.process = "nginx";
  EXPECT_EQ(all.of(trace, 7), "process:nginx");
  trace.container = "0123456789ab";
  EXPECT_EQ(all.of(trace, 7), "container:0123456789ab");
  EXPECT_EQ(all.of(trace, 100), "job:web");
  EXPECT_EQ(all.leader_of(100, 7), 100) << "a job that is not the leader of a session";
  EXPECT_EQ(all.leader_of(101, 100), 100);
  const ServiceFinder only({"process:nginx"});
  EXPECT_EQ(only.of(trace, 100), "");
  trace.container.clear();
  EXPECT_EQ(only.of(trace, 100), "process:nginx");
  EXPECT_EQ(only.of(trace, 100, true), "process:nginx");
  trace.process = "sh";
  EXPECT_EQ(only.of(trace, 100), "");
  EXPECT_EQ(only.of(trace, 100, true), "process:sh")
      << "it must be kept, because its cgroup was chosen";
}

// kymod says up to a second later that a job was started or has ended. Until then the minute may be over.
TEST(ServiceFinderTest, AJobIsFoundIfItIsSaidAfterItsMinuteOrHasEndedInIt) {
  stacks::Trace thread;
  thread.pid = 100;
  thread.process = "nginx";
  thread.frames = {{nullptr, 1}};
  stacks::Trace child = thread;
  child.container = "0123456789ab";
  stacks::Trace other = thread;
  other.pid = 7;
  const auto divided = [&](const ServiceFinder& finder) {
    TakenMinute minute;
    minute.traces = {{thread, {3, 30}}, {child, {4, 40}}, {other, {5, 50}}};
    finder.divide(minute);
    return minute;
  };
  ServiceFinder finder({"job:web"});
  EXPECT_TRUE(divided(finder).traces.empty());
  finder.close_minute();
  finder.set_jobs({{100, "web"}});
  for (int i = 0; i < 3; ++i) {
    const TakenMinute minute = divided(finder);
    ASSERT_EQ(minute.traces.size(), 1U) << "two processes of the job had the same stack";
    EXPECT_EQ(minute.traces.begin()->first.service, "job:web");
    EXPECT_EQ(minute.samples(), 7U);
    if (i == 0) finder.set_jobs({});
    if (i == 1) finder.close_minute();
  }
  EXPECT_EQ(finder.leader_of(100, 7), 100);
  finder.close_minute();
  EXPECT_TRUE(divided(finder).traces.empty()) << "another process may have this pid by now";
}

TEST(ServiceFinderTest, CgroupsAndContainersAreKeptWithAllThatIsInThem) {
  const auto in = [](const std::string& path) {
    stacks::Processes::Process process;
    process.cgroups = "0::" + path + "\n";
    return process;
  };
  ServiceFinder finder({"cgroup:/system.slice/nginx.service", "podman:web"});
  EXPECT_TRUE(finder.keeps(in("/system.slice/nginx.service/one")));
  EXPECT_FALSE(finder.keeps(in("/system.slice")));
  EXPECT_FALSE(finder.keeps(in("/machine.slice/libpod-0.scope")));
  EXPECT_EQ(finder.of({}, 1), "")
      << "while the chosen container is not found, other processes must not be kept";
  finder.set_containers({"/machine.slice/libpod-0.scope"});
  EXPECT_TRUE(finder.keeps(in("/machine.slice/libpod-0.scope/container")));
  finder.set_containers({});
  EXPECT_FALSE(finder.keeps(in("/machine.slice/libpod-0.scope/container")));
  EXPECT_FALSE(ServiceFinder({}).keeps(in("/x")))
      << "without a choice, all processes are kept anyway";
}

}  // namespace
}  // namespace kymo::profiles
