// kymod's promise for dumps, tested at CRIU's notifications: whatever stalls or is killed there, the process runs or
// is complete on disk, and what kymod says about it is true.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "checkpoint/runtimes/shared/launch.h"
#include "counting.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/containers.h"
#include "support/echo_server.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What is dumped, and how.
struct Way {
  const char* name;
  Kind kind;
  std::vector<std::string> flags;
  bool may_be_held;  // CRIU may wait for the disk, because it writes to it
  bool runs_on = false;
};
const Way kStream{"AStream", Kind::process, {}, false};
const Way kConnection{"AConnection", Kind::connected, {"--tcp-established"}, false};
const Way kNoStream{"NoStream", Kind::process, {"--no-stream"}, true};
const Way kRunc{"Runc", Kind::runc, {"--deadline", "1m"}, false};
const Way kWays[] = {
    kStream,
    {"AStreamWithDeadline", Kind::process, {"--deadline", "1m"}, false},
    {"AStreamThatRunsOn", Kind::process, {"--leave-running"}, false, true},
    {"AStreamWithChecksums", Kind::process, {"--checksums"}, false},
    kConnection,
    kNoStream,
    {"NoStreamWithDeadline", Kind::process, {"--no-stream", "--deadline", "1m"}, true},
    kRunc,
    {"RuncWithoutDeadline", Kind::runc, {}, true}};
// With a deadline, CRIU writes the images of a container to memory.
const Way kContainerWays[] = {{"Podman", Kind::podman, {"--deadline", "1m"}, false},
                              {"Containerd", Kind::containerd, {"--deadline", "1m"}, false},
                              {"Docker", Kind::docker, {"--deadline", "1m"}, false},
                              {"PodmanWithoutDeadline", Kind::podman, {}, true},
                              {"ContainerdWithoutDeadline", Kind::containerd, {}, true},
                              {"DockerWithoutDeadline", Kind::docker, {}, true}};
const Way kStateWays[] = {kStream, kConnection, kNoStream, kRunc};
const Way kSilentWays[] = {kStream, kNoStream, kRunc};

// Counts the answers of the server on this port. If the connection is lost, it ends.
constexpr char kConnected[] =
    R"(use Socket; $SIG{PIPE} = "IGNORE"; my ($file, $port) = @ARGV;
  socket(my $s, PF_INET, SOCK_STREAM, 0) or die; connect($s, sockaddr_in($port, INADDR_LOOPBACK)) or die;
  for (my $i = 1000000;; ++$i) {
  my $got = syswrite($s, "$i\n") ? <$s> : undef;
  die if ($got // "") ne "$i\n";
  open my $to, "+<", $file or open $to, ">", $file; print $to $got; close $to;
  select undef, undef, undef, 0.1 })";

// The text that CRIU is about to write to its log when it is stopped.
struct Point {
  const char* name;
  const char* text;
};
constexpr Point kPoints[] = {{"BeforeItFreezes", "pre-dump"},
                             {"WhenItWritesPages", "Dumping pages (type"},
                             {"WhenAllIsWritten", "post-dump"},
                             {"WhenItEnds", "Dumping finished"}};

enum class Deed : std::uint8_t {
  stall_images,
  fail_images,
  kill_criu,
  kill_kymod,
  fault_of_state,
  fault_of_state_and_kill_kymod
};
struct Trouble {
  const char* name;
  Deed deed;
  const char* mood = "stalls";  // of the disk that stalls or fails
};
constexpr Trouble kTroubles[] = {{"TheDiskOfTheImagesStalls", Deed::stall_images},
                                 {"TheDiskOfTheImagesFails", Deed::fail_images, "fails"},
                                 {"CriuIsKilled", Deed::kill_criu},
                                 {"KymodIsKilled", Deed::kill_kymod}};
constexpr Trouble kImageTroubles[] = {kTroubles[0], kTroubles[1]};
constexpr Trouble kSilence[] = {{"TheDiskOfTheImagesIsSilent", Deed::stall_images, "is-silent"}};
// Writes stall; then reads, too; then only fsync(2). Then writes fail.
constexpr Trouble kStateTroubles[] = {
    {"TheDiskOfTheStateStalls", Deed::fault_of_state},
    {"TheDiskOfTheStateIsSilent", Deed::fault_of_state, "is-silent"},
    {"TheDiskOfTheStateDoesNotSync", Deed::fault_of_state, "stalls-at-sync"},
    {"TheDiskOfTheStateIsOverQuota", Deed::fault_of_state, "is-over-quota"},
    {"TheDiskOfTheStateIsReadOnly", Deed::fault_of_state, "is-read-only"},
    {"TheDiskOfTheStateStallsAndKymodIsKilled", Deed::fault_of_state_and_kill_kymod}};

using Case = std::tuple<Way, Point, Trouble>;

// Lets gtest print the name.
void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}
void PrintTo(const Point& point, std::ostream* out) {
  *out << point.name;
}
void PrintTo(const Trouble& trouble, std::ostream* out) {
  *out << trouble.name;
}

class PromiseTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    if (!why_not(way().kind).empty()) GTEST_SKIP() << why_not(way().kind);
    ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here";
    std::vector<std::string> flags{"--criu", criu_.path()};
    if (of_container()) {
      container_ = Counting::make(way().kind, criu_);
      const std::vector<std::string> own = container_->flags();
      flags.insert(flags.end(), own.begin(), own.end());
    }
    kymod_.emplace(flags);
    if (of_state()) {
      ASSERT_NO_FATAL_FAILURE(mount_state());
    }
    kymod_->start();
    start();
  }
  void TearDown() override {
    let_disks_be_well();
    if (!kymod_) return;
    kymod_->stop(SIGTERM);
    if (pid_ > 0) kill(-pid_, SIGKILL);
    if (reaper_.joinable()) reaper_.join();
    if (container_) {
      for (const pid_t one : container_->copies()) kill(one, SIGKILL);
    }
    if (state_disk_) umount2(kymod_->state().c_str(), MNT_DETACH);
  }

  [[nodiscard]] static const Way& way() { return std::get<Way>(GetParam()); }
  [[nodiscard]] static const Trouble& trouble() { return std::get<Trouble>(GetParam()); }
  [[nodiscard]] static bool of_container() {
    return way().kind != Kind::process && way().kind != Kind::connected;
  }
  [[nodiscard]] static bool of_state() {
    return trouble().deed == Deed::fault_of_state ||
           trouble().deed == Deed::fault_of_state_and_kill_kymod;
  }
  [[nodiscard]] std::string dir() const { return disk_.path() + "/c"; }
  [[nodiscard]] bool counts() const {
    return container_ ? container_->counts() : counts_on(folder_.path());
  }
  void mount_state();
  void let_disks_be_well() const {
    disk_.be("well");
    if (state_disk_) state_disk_->be("well");
  }
  void start();
  pid_t dump_until_it_is_stopped();
  void expect_that_it_waits_for_no_disk(pid_t criu) const;
  void expect_truth_during_the_stall(const Outcome& answer) const;
  void make_trouble(pid_t criu);
  void expect_the_promise();
  [[nodiscard]] json checkpoint() const { return kymod_->kymo_json({"checkpoints"}).at(0); }

  TemporaryDirectory folder_;
  TemporaryDirectory state_folder_;
  const BreakableCriu criu_;
  MoodyDisk disk_{folder_};
  std::optional<MoodyDisk> state_disk_;  // of kymod's state directory, if that is to stall or fail
  EchoServer server_;
  std::unique_ptr<Counting> container_;  // null: a process is dumped
  std::optional<Kymod> kymod_;
  std::thread client_;
  Outcome answer_;
  pid_t pid_ = 0;  // the dumped process
  std::thread reaper_;
};

void PromiseTest::mount_state() {
  state_disk_.emplace(state_folder_);
  ASSERT_TRUE(state_disk_->mounted()) << "FUSE does not work here";
  fs::create_directory(kymod_->state());
  ASSERT_EQ(mount(state_disk_->path().c_str(), kymod_->state().c_str(), "", MS_BIND, nullptr), 0);
}

void PromiseTest::start() {
  if (container_) {
    static_cast<void>(kymod_->kymo_json(container_->run()));
    ASSERT_TRUE(eventually([&] { return container_->counts(); })) << kymod_->log();
    return;
  }
  const std::string file = folder_.path() + "/count";
  std::string loop = counting_loop();
  loop.replace(loop.find("/count"), 6, file);
  std::vector<std::string> words{"sh", "-c", loop};
  if (way().kind == Kind::connected)
    words = {"perl", "-e", kConnected, file, std::to_string(server_.port())};
  const Result<pid_t> started =
      runtime::launch({words, {"PATH=/usr/bin:/bin"}, "/", "/dev/null", "/dev/null"});
  ASSERT_TRUE(started.ok()) << started.error().message;
  pid_ = *started;
  // A restore needs the same pid, so the process must be reaped.
  reaper_ = std::thread([pid = pid_] { waitpid(pid, nullptr, 0); });
  ASSERT_TRUE(counts());
}

// Returns the pid of CRIU, which is stopped at the point.
pid_t PromiseTest::dump_until_it_is_stopped() {
  criu_.break_at(std::get<Point>(GetParam()).text, SIGSTOP);
  const std::string name = container_ ? container_->name() : std::to_string(pid_);
  std::vector<std::string> words{"dump", "process", name, "--dir", dir()};
  words.insert(words.end(), way().flags.begin(), way().flags.end());
  client_ = std::thread([this, words] { answer_ = kymod_->kymo(words); });
  const pid_t criu = criu_.stopped();
  EXPECT_NE(criu, 0) << kymod_->log();
  criu_.mend();
  return criu;
}

// CRIU can wait for a disk only if it has a file on it open.
void PromiseTest::expect_that_it_waits_for_no_disk(pid_t criu) const {
  const std::string proc = "/proc/" + std::to_string(criu);
  std::vector<fs::path> links{proc + "/cwd", proc + "/root"};
  for (const fs::directory_entry& open : fs::directory_iterator(proc + "/fd")) {
    links.push_back(open.path());
  }
  for (const fs::path& link : links) {
    const std::string file = fs::read_symlink(link);
    EXPECT_FALSE(file.starts_with(disk_.path())) << link << file;
    EXPECT_FALSE(state_disk_ && file.starts_with(kymod_->state())) << link << file;
  }
}

void PromiseTest::expect_truth_during_the_stall(const Outcome& answer) const {
  const std::string state = checkpoint()["state"];
  const bool held = answer.err.find(" is held by process ") != std::string::npos;
  const bool runs_on = answer.err.find("runs on") != std::string::npos;
  EXPECT_TRUE(way().may_be_held || !held) << answer.err;
  if (runs_on && !held) {
    EXPECT_TRUE(counts()) << answer.err;
    EXPECT_EQ(state, "failed") << answer.err;
  } else if (answer.exit_code == 0) {
    EXPECT_EQ(state, "complete");
  } else {
    // A request that its caller has left goes on.
    const bool left =
        answer.err.find("so it is not known yet what became of it") != std::string::npos;
    EXPECT_TRUE(state == "unconfirmed" || (left && state == "started")) << state << answer.err;
  }
}

// In the end the process must count, because it never stopped or because it is restored. What kymod promised must be
// true.
void PromiseTest::expect_the_promise() {
  ASSERT_TRUE(eventually([&] {
    const std::string state = checkpoint()["state"];
    return state == "failed" || state == "complete";
  })) << kymod_->log();
  if (answer_.err.find("kymod lists the checkpoint as complete") != std::string::npos) {
    EXPECT_EQ(checkpoint()["state"], "complete") << kymod_->log();
  }
  if (checkpoint()["state"] == "complete") {
    if (way().runs_on) {  // the process still runs and uses its pids, so it cannot be restored
      const Outcome verified = kymod_->kymo({"verify", dir()});
      EXPECT_EQ(verified.exit_code, 0) << verified.err;
      EXPECT_TRUE(counts()) << answer_.err << kymod_->log();
      return;
    }
    if (container_) container_->forget();
    Outcome restored = kymod_->kymo({"restore", dir()});
    if (of_state()) {  // kymod refuses requests until it has seen that the disk of its state answers
      eventually([&] {
        if (restored.exit_code != 0) restored = kymod_->kymo({"restore", dir()});
        return restored.exit_code == 0;
      });
    }
    ASSERT_EQ(restored.exit_code, 0) << restored.err << kymod_->log();
  }
  EXPECT_TRUE(counts()) << answer_.err << kymod_->log();
}

// Lets CRIU go on while the trouble lasts, and checks what kymod says meanwhile.
void PromiseTest::make_trouble(pid_t criu) {
  switch (trouble().deed) {
    case Deed::stall_images:
      disk_.be(trouble().mood);
      kill(criu, SIGCONT);
      // The dump may have ended already.
      static_cast<void>(kymod_->kymo({"cancel", checkpoint()["pid"].dump()}));
      client_.join();
      expect_truth_during_the_stall(answer_);
      break;
    case Deed::fail_images:
      disk_.be(trouble().mood);
      kill(criu, SIGCONT);
      client_.join();
      expect_truth_during_the_stall(answer_);
      break;
    case Deed::kill_criu:
      kill(criu, SIGKILL);
      client_.join();
      expect_truth_during_the_stall(answer_);
      break;
    case Deed::kill_kymod:
      kymod_->stop(SIGKILL);
      kill(criu, SIGCONT);
      client_.join();
      kymod_->start();
      break;
    case Deed::fault_of_state:
    case Deed::fault_of_state_and_kill_kymod:
      state_disk_->be(trouble().mood);
      kill(criu, SIGCONT);
      client_.join();  // kymod answers without that disk
      EXPECT_NE(answer_.exit_code, -1) << kymod_->log();
      expect_truth_during_the_stall(answer_);
      if (trouble().deed == Deed::fault_of_state) break;
      // The next kymod does not have what this one keeps in memory.
      kill(kymod_->pid(), SIGKILL);
      state_disk_->be("well");  // only now the kernel can end a thread that waits for the disk
      EXPECT_EQ(kymod_->stop(SIGKILL), -1);
      kymod_->start();
      break;
  }
  let_disks_be_well();
}

TEST_P(PromiseTest, TheProcessRunsOrIsWholeOnDisk) {
  const pid_t criu = dump_until_it_is_stopped();
  ASSERT_GT(criu, 0);
  if (!way().may_be_held) expect_that_it_waits_for_no_disk(criu);
  make_trouble(criu);
  expect_the_promise();
}

std::string name_of_dump(const ::testing::TestParamInfo<Case>& info) {
  return std::string(std::get<Way>(info.param).name) + std::get<Point>(info.param).name +
         std::get<2>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Dumps, PromiseTest,
                         ::testing::Combine(::testing::ValuesIn(kWays),
                                            ::testing::ValuesIn(kPoints),
                                            ::testing::ValuesIn(kTroubles)),
                         name_of_dump);
INSTANTIATE_TEST_SUITE_P(ContainerDumps, PromiseTest,
                         ::testing::Combine(::testing::ValuesIn(kContainerWays),
                                            ::testing::ValuesIn(kPoints),
                                            ::testing::ValuesIn(kImageTroubles)),
                         name_of_dump);
// Reads stall, too.
INSTANTIATE_TEST_SUITE_P(SilentDumps, PromiseTest,
                         ::testing::Combine(::testing::ValuesIn(kSilentWays),
                                            ::testing::ValuesIn(kPoints),
                                            ::testing::ValuesIn(kSilence)),
                         name_of_dump);
INSTANTIATE_TEST_SUITE_P(StateDumps, PromiseTest,
                         ::testing::Combine(::testing::ValuesIn(kStateWays),
                                            ::testing::ValuesIn(kPoints),
                                            ::testing::ValuesIn(kStateTroubles)),
                         name_of_dump);

}  // namespace
}  // namespace kymo::test
