// kymod's promise for dumps, tested at CRIU's notifications: whatever stalls or is killed there, the process runs or
// is complete on disk, and what kymod says about it is true.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "programs.h"
#include "runtime/launch.h"
#include "support/breakable_criu.h"
#include "support/containers.h"
#include "support/echo_server.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What is dumped. `connected` is a process that counts what a server sends back over one connection.
enum class Subject : std::uint8_t { loop, connected, runc };

// What is dumped, and how.
struct Way {
  const char* name;
  Subject subject;
  std::vector<std::string> flags;
  bool may_be_held;  // CRIU may wait for the disk, because it writes to it
  bool runs_on = false;
};
const Way kWays[] = {
    {"AStream", Subject::loop, {}, false},
    {"AStreamWithDeadline", Subject::loop, {"--deadline", "1m"}, false},
    {"AStreamThatRunsOn", Subject::loop, {"--leave-running"}, false, true},
    {"AStreamWithChecksums", Subject::loop, {"--checksums"}, false},
    {"AConnection", Subject::connected, {"--tcp-established"}, false},
    {"NoStream", Subject::loop, {"--no-stream"}, true},
    {"NoStreamWithDeadline", Subject::loop, {"--no-stream", "--deadline", "1m"}, true},
    {"Runc", Subject::runc, {"--deadline", "1m"}, false},
    {"RuncWithoutDeadline", Subject::runc, {}, true}};

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

enum class Deed : std::uint8_t { stall_images, fail_images, kill_criu, kill_kymod };
struct Trouble {
  const char* name;
  Deed deed;
};
constexpr Trouble kTroubles[] = {{"TheDiskOfTheImagesStalls", Deed::stall_images},
                                 {"TheDiskOfTheImagesFails", Deed::fail_images},
                                 {"CriuIsKilled", Deed::kill_criu},
                                 {"KymodIsKilled", Deed::kill_kymod}};

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
    if (of_runc()) KYMO_NEEDS_RUNC();
    ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here";
    kymod_.emplace(std::vector<std::string>{"--criu", criu_.path(), "--runc-root", runc_.path()});
    kymod_->start();
    start();
  }
  void TearDown() override {
    disk_.be("well");
    if (!kymod_) return;
    kymod_->stop(SIGTERM);
    if (pid_ > 0) kill(-pid_, SIGKILL);
    if (reaper_.joinable()) reaper_.join();
  }

  [[nodiscard]] static const Way& way() { return std::get<Way>(GetParam()); }
  [[nodiscard]] static bool of_runc() { return way().subject == Subject::runc; }
  [[nodiscard]] std::string dir() const { return disk_.path() + "/c"; }
  [[nodiscard]] std::string root() const {
    return of_runc() ? runc_.folder().path() + "/kymo-web/rootfs" : folder_.path();
  }
  void start();
  pid_t dump_until_it_is_stopped();
  void expect_that_it_waits_for_no_disk(pid_t criu) const;
  void expect_truth_during_the_stall(const Outcome& answer) const;
  void expect_the_promise();
  [[nodiscard]] json checkpoint() const { return kymod_->kymo_json({"checkpoints"}).at(0); }

  TemporaryDirectory folder_;
  const BreakableCriu criu_;
  MoodyDisk disk_{folder_};
  RuncFolder runc_;
  EchoServer server_;
  std::optional<Kymod> kymod_;
  std::thread client_;
  Outcome answer_;
  pid_t pid_ = 0;  // the dumped process
  std::thread reaper_;
};

void PromiseTest::start() {
  if (of_runc()) {
    ASSERT_EQ(runc_.start("kymo-web"), fs::path(root()).parent_path());
    return;
  }
  const std::string file = root() + "/count";
  std::string loop = counting_loop();
  loop.replace(loop.find("/count"), 6, file);
  std::vector<std::string> words{"sh", "-c", loop};
  if (way().subject == Subject::connected)
    words = {"perl", "-e", kConnected, file, std::to_string(server_.port())};
  const Result<pid_t> started =
      runtime::launch({words, {"PATH=/usr/bin:/bin"}, "/", "/dev/null", "/dev/null"});
  ASSERT_TRUE(started.ok()) << started.error().message;
  pid_ = *started;
  // A restore needs the same pid, so the process must be reaped.
  reaper_ = std::thread([pid = pid_] { waitpid(pid, nullptr, 0); });
  ASSERT_TRUE(counts_on(root()));
}

// Returns the pid of CRIU, which is stopped at the point.
pid_t PromiseTest::dump_until_it_is_stopped() {
  criu_.break_at(std::get<Point>(GetParam()).text, SIGSTOP);
  std::vector<std::string> words{"dump", "process", std::to_string(pid_), "--dir", dir()};
  if (of_runc()) words = {"dump", "runc", "kymo-web", "--dir", dir()};
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
  for (const char* const what : {"/cwd", "/root"}) {
    EXPECT_FALSE(fs::read_symlink(proc + what).string().starts_with(disk_.path())) << what;
  }
  for (const fs::directory_entry& open : fs::directory_iterator(proc + "/fd")) {
    EXPECT_FALSE(fs::read_symlink(open).string().starts_with(disk_.path()))
        << fs::read_symlink(open);
  }
}

void PromiseTest::expect_truth_during_the_stall(const Outcome& answer) const {
  const std::string state = checkpoint()["state"];
  const bool held = answer.err.find(" is held by process ") != std::string::npos;
  const bool runs_on = answer.err.find("runs on") != std::string::npos;
  EXPECT_TRUE(way().may_be_held || !held) << answer.err;
  if (runs_on && !held) {
    EXPECT_TRUE(counts_on(root())) << answer.err;
    EXPECT_EQ(state, "failed") << answer.err;
  } else if (answer.exit_code == 0) {
    EXPECT_EQ(state, "complete");
  } else {
    EXPECT_EQ(state, "unconfirmed") << answer.err;
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
      EXPECT_TRUE(counts_on(root())) << answer_.err << kymod_->log();
      return;
    }
    if (of_runc()) runc_.runc("delete --force kymo-web");
    const Outcome restored = kymod_->kymo({"restore", dir()});
    ASSERT_EQ(restored.exit_code, 0) << restored.err << kymod_->log();
  }
  EXPECT_TRUE(counts_on(root())) << answer_.err << kymod_->log();
}

TEST_P(PromiseTest, TheProcessRunsOrIsWholeOnDisk) {
  const pid_t criu = dump_until_it_is_stopped();
  ASSERT_GT(criu, 0);
  if (!way().may_be_held) expect_that_it_waits_for_no_disk(criu);
  switch (std::get<2>(GetParam()).deed) {
    case Deed::stall_images:
      disk_.be("stalls");
      kill(criu, SIGCONT);
      // The dump may have ended already.
      static_cast<void>(kymod_->kymo({"cancel", checkpoint()["pid"].dump()}));
      client_.join();
      expect_truth_during_the_stall(answer_);
      disk_.be("well");
      break;
    case Deed::fail_images:
      disk_.be("fails");
      kill(criu, SIGCONT);
      client_.join();
      expect_truth_during_the_stall(answer_);
      disk_.be("well");
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
  }
  expect_the_promise();
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return std::string(std::get<Way>(info.param).name) + std::get<Point>(info.param).name +
         std::get<2>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Dumps, PromiseTest,
                         ::testing::Combine(::testing::ValuesIn(kWays),
                                            ::testing::ValuesIn(kPoints),
                                            ::testing::ValuesIn(kTroubles)),
                         name_of);

}  // namespace
}  // namespace kymo::test
