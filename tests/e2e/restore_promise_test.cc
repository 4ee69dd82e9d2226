// kymod's promise for restores, tested at points of a restore: whatever stalls or is killed there, there is exactly
// one copy of the process, or its checkpoint is complete and can be restored, and what kymod says about it is true.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/proc/process.h"
#include "counted_job.h"
#include "counting.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct RestoreWay {
  const char* name;
  Kind kind;
  std::vector<std::string> flags;  // flags of the dump
};
const RestoreWay kRestoreWays[] = {{"AProcess", Kind::process, {}},
                                   {"ACompressedProcess", Kind::process, {"--compression", "zstd"}},
                                   {"AConnection", Kind::connected, {"--tcp-established"}},
                                   {"Runc", Kind::runc, {}},
                                   {"Podman", Kind::podman, {}},
                                   {"Containerd", Kind::containerd, {}},
                                   {"Docker", Kind::docker, {}}};

// The text that CRIU is about to write to its log when it is stopped.
struct RestorePoint {
  const char* name;
  const char* text;
};
constexpr RestorePoint kRestorePoints[] = {{"BeforeItForks", "pre-restore"},
                                           {"WhenMemoryIsBack", "post-restore"},
                                           {"BeforeItResumes", "pre-resume"},
                                           {"WhenItRuns", "post-resume"}};

enum class RestoreDeed : std::uint8_t {
  stall,
  stall_for_a_while,
  stall_state,
  kill_criu,
  kill_kymod,
  kill_all
};
struct RestoreTrouble {
  const char* name;
  RestoreDeed deed;
};
constexpr RestoreTrouble kRestoreTroubles[] = {
    {"TheDiskStalls", RestoreDeed::stall},
    {"TheDiskStallsForAWhile", RestoreDeed::stall_for_a_while},
    {"TheDiskOfTheStateStalls", RestoreDeed::stall_state},
    {"CriuIsKilled", RestoreDeed::kill_criu},
    {"KymodIsKilled", RestoreDeed::kill_kymod}};
// Without containerd and Docker: if their runc is killed, they let it delete the container before anybody else can
// act. runc then also deletes the files of the container's root (docs/faults.md).
const RestoreWay kKilledWays[] = {{"AProcess", Kind::process, {}},
                                  {"AConnection", Kind::connected, {"--tcp-established"}},
                                  {"Runc", Kind::runc, {}}};
const RestoreWay kPodman{"Podman", Kind::podman, {}};
constexpr RestoreTrouble kAllAreKilled[] = {{"AllAreKilled", RestoreDeed::kill_all}};

using RestoreCase = std::tuple<RestoreWay, RestorePoint, RestoreTrouble>;

// Lets gtest print the name.
void PrintTo(const RestoreWay& way, std::ostream* out) {
  *out << way.name;
}
void PrintTo(const RestorePoint& point, std::ostream* out) {
  *out << point.name;
}
void PrintTo(const RestoreTrouble& trouble, std::ostream* out) {
  *out << trouble.name;
}

std::string name_of_restore(const ::testing::TestParamInfo<RestoreCase>& info) {
  return std::string(std::get<0>(info.param).name) + std::get<1>(info.param).name +
         std::get<2>(info.param).name;
}

class RestorePromiseTest : public ::testing::TestWithParam<RestoreCase> {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    if (!why_not(way().kind).empty()) GTEST_SKIP() << why_not(way().kind);
    ASSERT_TRUE(disk_.mounted() && state_disk_.mounted()) << "FUSE does not work here";
    counting_ = Counting::make(way().kind, criu_);
    std::vector<std::string> flags = counting_->flags();
    flags.insert(flags.end(), {"--criu", criu_.path()});
    kymod_.emplace(flags);
    fs::create_directory(kymod_->state());
    ASSERT_EQ(mount(state_disk_.path().c_str(), kymod_->state().c_str(), "", MS_BIND, nullptr), 0);
    kymod_->start();
    dump();
  }
  void TearDown() override {
    disk_.be("well");
    state_disk_.be("well");
    if (!kymod_) return;
    kymod_->stop(SIGTERM);
    for (const pid_t one : counting_->copies()) kill(one, SIGKILL);
    umount2(kymod_->state().c_str(), MNT_DETACH);
  }

  [[nodiscard]] static const RestoreWay& way() { return std::get<0>(GetParam()); }
  [[nodiscard]] std::string dir() const { return disk_.path() + "/c"; }
  void dump();
  pid_t restore_until_it_is_stopped();
  void make_trouble(pid_t criu);
  void kill_all_of_it(pid_t criu);
  void start_again(pid_t criu);
  void expect_truth(const Outcome& answer) const;
  void expect_the_promise() const;

  TemporaryDirectory folder_;
  TemporaryDirectory state_folder_;
  const BreakableCriu criu_;
  MoodyDisk disk_{folder_};
  MoodyDisk state_disk_{state_folder_};
  std::unique_ptr<Counting> counting_;
  std::optional<Kymod> kymod_;
  std::thread client_;
  Outcome answer_;
  std::uint64_t number_ = 0;  // the number before the dump
};

void RestorePromiseTest::dump() {
  static_cast<void>(kymod_->kymo_json(counting_->run()));
  // The program of a container starts only after `runc start` has ended. Before, there is no copy of it.
  ASSERT_TRUE(eventually([&] { return counting_->counts(); })) << kymod_->log();
  number_ = counting_->number();
  std::vector<std::string> words{"dump", "process", counting_->name(), "--dir", dir()};
  words.insert(words.end(), way().flags.begin(), way().flags.end());
  const Outcome dumped = kymod_->kymo(words);
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  counting_->forget();
  ASSERT_TRUE(eventually([&] { return counting_->copies().empty(); }));
}

// Returns the pid of CRIU, which is stopped at the point.
pid_t RestorePromiseTest::restore_until_it_is_stopped() {
  criu_.break_at(std::get<1>(GetParam()).text, SIGSTOP);
  client_ = std::thread([this] { answer_ = kymod_->kymo({"restore", dir()}); });
  const pid_t criu = criu_.stopped();
  EXPECT_NE(criu, 0) << kymod_->log();
  criu_.mend();
  return criu;
}

void RestorePromiseTest::make_trouble(pid_t criu) {
  switch (std::get<2>(GetParam()).deed) {
    case RestoreDeed::stall:
      disk_.be("is-silent");
      kill(criu, SIGCONT);
      static_cast<void>(
          kymod_->kymo({"cancel", counting_->name()}));  // the restore may have ended already
      break;
    case RestoreDeed::stall_for_a_while:
      disk_.be("is-silent");
      kill(criu, SIGCONT);
      disk_.be("well");
      break;
    case RestoreDeed::stall_state:
      state_disk_.be("is-silent");
      kill(criu, SIGCONT);
      break;
    case RestoreDeed::kill_criu:
      kill(criu, SIGKILL);
      break;
    case RestoreDeed::kill_kymod:
      kymod_->stop(SIGKILL);
      kill(criu, SIGCONT);
      break;
    case RestoreDeed::kill_all:
      kill_all_of_it(criu);
      break;
  }
  client_.join();
}

// Kills kymod, its children, CRIU, and the processes that have started CRIU: runc, and conmon for podman. So none of
// them can clean up. The processes that CRIU has restored live on.
void RestorePromiseTest::kill_all_of_it(pid_t criu) {
  std::vector<pid_t> all{kymod_->pid()};
  const std::vector<pid_t> children = probe::children_of(kymod_->pid()).value();
  for (const pid_t child : children) {
    if (child != criu) all.push_back(child);
  }
  std::vector<pid_t> chain{criu};
  for (pid_t one = criu; one > 1 && std::find(all.begin(), all.end(), one) == all.end();) {
    if (one != criu) chain.push_back(one);
    const Result<probe::Process> seen = probe::read_process(one);
    ASSERT_TRUE(seen.ok());
    one = seen->parent;
  }
  // CRIU last, because its parents would see its end.
  all.insert(all.end(), chain.rbegin(), chain.rend());
  for (const pid_t one : all) kill(one, SIGKILL);
  kymod_->stop(SIGKILL);
}

// Starts kymod again after the runtime of the killed kymod, which goes on, has ended.
void RestorePromiseTest::start_again(pid_t criu) {
  kymod_->start();
  EXPECT_TRUE(eventually([&] { return !probe::process_lives(criu, 0); }));
}

// Checks what kymod says while the trouble lasts.
void RestorePromiseTest::expect_truth(const Outcome& answer) const {
  EXPECT_EQ(kymod_->kymo_json({"checkpoints"}).at(0)["state"], "complete");
  if (answer.exit_code == 0) {
    EXPECT_TRUE(counting_->counts()) << answer.err;
  }
}

void RestorePromiseTest::expect_the_promise() const {
  Outcome restored;
  EXPECT_TRUE(eventually([&] {
    if (counting_->counts()) return true;
    restored = kymod_->kymo({"restore", dir()});
    return restored.exit_code == 0;
  })) << answer_.err
      << restored.err << kymod_->log();
  EXPECT_TRUE(counting_->counts()) << answer_.err << restored.err << kymod_->log();
  EXPECT_GT(counting_->number(), number_);
  // A runtime may have finished the restore alone. kymod then sees the next time it looks that its container runs.
  json job;
  EXPECT_TRUE(eventually([&] {
    job = kymod_->job(counting_->name());
    return job["state"] == "running";
  })) << job.dump(1);
  EXPECT_EQ(std::vector<pid_t>{job["pid"].get<pid_t>()}, counting_->copies());
  // CRIU unblocks the network after the second point. If the restore is ended later, the other end of the connection
  // sees its end.
  const std::string point = std::get<1>(GetParam()).name;
  if (point == "BeforeItForks" || point == "WhenMemoryIsBack") {
    EXPECT_LE(counting_->connections(), 1);
  }
}

TEST_P(RestorePromiseTest, OneCopyRunsOrTheCheckpointIsWhole) {
  const pid_t criu = restore_until_it_is_stopped();
  ASSERT_GT(criu, 0);
  make_trouble(criu);
  if (kymod_->running()) expect_truth(answer_);
  disk_.be("well");
  state_disk_.be("well");
  if (!kymod_->running()) start_again(criu);
  expect_the_promise();
}

INSTANTIATE_TEST_SUITE_P(Restores, RestorePromiseTest,
                         ::testing::Combine(::testing::ValuesIn(kRestoreWays),
                                            ::testing::ValuesIn(kRestorePoints),
                                            ::testing::ValuesIn(kRestoreTroubles)),
                         name_of_restore);
INSTANTIATE_TEST_SUITE_P(KilledRestores, RestorePromiseTest,
                         ::testing::Combine(::testing::ValuesIn(kKilledWays),
                                            ::testing::ValuesIn(kRestorePoints),
                                            ::testing::ValuesIn(kAllAreKilled)),
                         name_of_restore);
// At the later points, the container runs on, but podman takes it for ended, because its conmon was killed.
INSTANTIATE_TEST_SUITE_P(KilledPodman, RestorePromiseTest,
                         ::testing::Combine(::testing::Values(kPodman),
                                            ::testing::Values(kRestorePoints[0], kRestorePoints[1]),
                                            ::testing::ValuesIn(kAllAreKilled)),
                         name_of_restore);

// CRIU hangs in the restore of a container, and the deadline must end it.
void expect_end_at_deadline(Kind kind) {
  KYMO_NEEDS(kind);
  CountedJob job(kind);
  job.dump();
  if (testing::Test::HasFailure()) return;
  job.criu.break_at("pre-restore", SIGSTOP);
  const Outcome ended = job.kymod->kymo({"restore", job.dir(), "--deadline", "3s"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.err.find("did not end within its deadline of 3 s"), std::string::npos)
      << ended.err;
  EXPECT_TRUE(eventually([&] { return job.counting->copies().empty(); })) << job.kymod->log();
  job.criu.mend();
  Outcome restored;
  EXPECT_TRUE(eventually([&] {
    restored = job.kymod->kymo({"restore", job.dir()});
    return restored.exit_code == 0;
  })) << restored.err
      << job.kymod->log();
  EXPECT_TRUE(job.counting->counts()) << job.kymod->log();
}

TEST(ContainerRestoreTest, OfRuncEndsAtItsDeadlineAndCanBeMadeAgain) {
  expect_end_at_deadline(Kind::runc);
}
TEST(ContainerRestoreTest, OfPodmanEndsAtItsDeadlineAndCanBeMadeAgain) {
  expect_end_at_deadline(Kind::podman);
}
TEST(ContainerRestoreTest, OfContainerdEndsAtItsDeadlineAndCanBeMadeAgain) {
  expect_end_at_deadline(Kind::containerd);
}
TEST(ContainerRestoreTest, OfDockerEndsAtItsDeadlineAndCanBeMadeAgain) {
  expect_end_at_deadline(Kind::docker);
}

}  // namespace
}  // namespace kymo::test
