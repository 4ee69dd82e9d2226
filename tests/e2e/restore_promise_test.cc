// The promise, at the points of a restore: whatever stalls or is killed there, there is one copy of the process,
// or its checkpoint is whole and can be restored, and what kymod says of it is true.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/file.h"
#include "breakable_criu.h"
#include "probe/process.h"
#include "programs.h"
#include "support/containers.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// One process, which needs nothing of the state directory.
constexpr char kCounter[] =
    R"(open STDOUT, ">/dev/null"; open STDERR, ">/dev/null"; for ($i = 1000000;; ++$i) {
  open my $to, "+<", $ARGV[0] or open $to, ">", $ARGV[0]; print $to "$i\n"; close $to; select undef, undef, undef, 0.1 })";

struct RestoreWay {
  const char* name;
  bool of_runc;
  std::vector<std::string> flags;  // of the dump
};
const RestoreWay kRestoreWays[] = {{"AProcess", false, {}},
                                   {"ACompressedProcess", false, {"--compression", "zstd"}},
                                   {"Runc", true, {}}};

// What CRIU is about to write to its log when it is stopped.
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
  kill_kymod
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

using RestoreCase = std::tuple<RestoreWay, RestorePoint, RestoreTrouble>;

// For gtest.
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

// `process` is its folder in /proc.
bool has_root(const fs::path& process, const std::string& root) {
  struct stat its {};
  struct stat wanted {};
  return stat((process / "root").c_str(), &its) == 0 && stat(root.c_str(), &wanted) == 0 &&
         its.st_dev == wanted.st_dev && its.st_ino == wanted.st_ino;
}

class RestorePromiseTest : public ::testing::TestWithParam<RestoreCase> {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    if (way().of_runc) KYMO_NEEDS_RUNC();
    ASSERT_TRUE(disk_.mounted() && state_disk_.mounted()) << "FUSE does not work here";
    kymod_.emplace(std::vector<std::string>{"--criu", criu_.path(), "--runc-root", runc_.path()});
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
    for (const pid_t one : copies()) kill(one, SIGKILL);
    umount2(kymod_->state().c_str(), MNT_DETACH);
  }

  [[nodiscard]] static const RestoreWay& way() { return std::get<0>(GetParam()); }
  [[nodiscard]] std::string dir() const { return disk_.path() + "/c"; }
  [[nodiscard]] static std::string name() { return "kymo-web"; }
  [[nodiscard]] std::string root() const {
    return way().of_runc ? runc_.folder().path() + "/kymo-web/rootfs" : folder_.path();
  }
  void dump();
  [[nodiscard]] std::vector<pid_t> copies() const;
  pid_t restore_until_it_is_stopped();
  void make_trouble(pid_t criu);
  void start_again(pid_t criu);
  void expect_truth(const Outcome& answer) const;
  void expect_the_promise() const;

  TemporaryDirectory folder_;
  TemporaryDirectory state_folder_;
  const BreakableCriu criu_;
  MoodyDisk disk_{folder_};
  MoodyDisk state_disk_{state_folder_};
  RuncFolder runc_;
  std::optional<Kymod> kymod_;
  std::thread client_;
  Outcome answer_;
};

void RestorePromiseTest::dump() {
  std::vector<std::string> command;
  if (way().of_runc) {
    const std::string bundle = make_bundle(runc_.folder(), "kymo-web", counting_command());
    command = {"run", "runc", "--bundle", bundle, "--id", name()};
  } else {
    command = {"run", "process", "--name", name(), "--", "perl", "-e", kCounter, root() + "/count"};
  }
  static_cast<void>(kymod_->kymo_json(command));
  ASSERT_TRUE(counts_on(root()));
  std::vector<std::string> words{"dump", way().of_runc ? "runc" : "process", name(), "--dir",
                                 dir()};
  words.insert(words.end(), way().flags.begin(), way().flags.end());
  const Outcome dumped = kymod_->kymo(words);
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  if (way().of_runc) runc_.runc("delete --force " + name());
  ASSERT_TRUE(eventually([&] { return copies().empty(); }));
}

// What counts into the root, without the children of a shell, which are about to become `sleep`, and without what has
// ended and waits to be reaped.
std::vector<pid_t> RestorePromiseTest::copies() const {
  const std::string into = way().of_runc ? " 1<>/count" : root() + "/count";
  std::vector<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const Result<std::string> words = kymo::read_file(entry->path() / "cmdline");
    if (!words) continue;  // it has ended meanwhile
    const bool here = !way().of_runc || has_root(entry->path(), root());
    if (here && words->find(into) != std::string::npos) {
      found.push_back(std::stoi(entry->path().filename()));
    }
  }
  const std::vector<pid_t> all = found;
  std::erase_if(found, [&](pid_t one) {
    const Result<probe::Process> seen = probe::read_process(one);
    return !seen || std::find(all.begin(), all.end(), seen->parent) != all.end();
  });
  return found;
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
      static_cast<void>(kymod_->kymo({"cancel", name()}));  // it may have ended by itself
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
  }
  client_.join();
}

// The runc of a kymod that was killed goes on.
void RestorePromiseTest::start_again(pid_t criu) {
  kymod_->start();
  if (!way().of_runc) return;
  EXPECT_TRUE(eventually([&] { return !probe::process_lives(criu, 0); }));
  EXPECT_TRUE(eventually([&] {
    const std::string status = runc_.status(name());
    return status.empty() || (status == "running" && copies().size() == 1);
  })) << runc_.status(name());
}

// While the trouble lasts.
void RestorePromiseTest::expect_truth(const Outcome& answer) const {
  EXPECT_EQ(kymod_->kymo_json({"checkpoints"}).at(0)["state"], "complete");
  if (answer.exit_code == 0) {
    EXPECT_TRUE(counts_on(root())) << answer.err;
    EXPECT_EQ(copies().size(), 1);
  }
}

void RestorePromiseTest::expect_the_promise() const {
  if (answer_.exit_code != 0 && copies().empty()) {
    Outcome restored = kymod_->kymo({"restore", dir()});
    // What kymod could not remove of runc's container during a stall.
    if (way().of_runc && restored.err.find(": delete it, or name another") != std::string::npos) {
      EXPECT_TRUE(runc_.runc("delete --force " + name()));
      restored = kymod_->kymo({"restore", dir()});
    }
    ASSERT_EQ(restored.exit_code, 0) << answer_.err << restored.err << kymod_->log();
  }
  EXPECT_TRUE(counts_on(root())) << answer_.err << kymod_->log();
  EXPECT_EQ(copies().size(), 1) << answer_.err;
  const json job = kymod_->job(name());
  EXPECT_EQ(job["state"], "running");
  EXPECT_EQ(std::vector<pid_t>{job["pid"].get<pid_t>()}, copies());
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

}  // namespace
}  // namespace kymo::test
