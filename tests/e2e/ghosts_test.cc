// A process that has a deleted file open. If a restore is ended after CRIU has made that file again, the next
// restore must still work.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/proc/process.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/containers.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

enum class End : std::uint8_t { is_cancelled, criu_is_killed, all_are_killed };
struct HowItEnds {
  const char* name;
  End end;
};
constexpr HowItEnds kEnds[] = {{"ItIsCancelled", End::is_cancelled},
                               {"CriuIsKilled", End::criu_is_killed},
                               {"AllAreKilled", End::all_are_killed}};

// Lets gtest print the value.
void PrintTo(const HowItEnds& how, std::ostream* out) {
  *out << how.name;
}

constexpr char kCountsWithADeletedFile[] =
    R"(open my $g, ">", "$ARGV[0]/gone"; print $g "x"; unlink "$ARGV[0]/gone"; for (my $i = 1000000;; ++$i) {
  open my $to, "+<", "$ARGV[0]/count" or open $to, ">", "$ARGV[0]/count"; print $to "$i\n"; close $to;
  select undef, undef, undef, 0.1 })";

class GhostTest : public testing::TestWithParam<std::tuple<const char*, HowItEnds>> {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    if (of_runc()) KYMO_NEEDS_RUNC();
    kymod_.emplace(std::vector<std::string>{"--criu", criu_.path(), "--runc-root", runc_.path()});
    kymod_->start();
    dump();
  }
  void TearDown() override {
    criu_.mend();
    if (!kymod_) return;
    if (!of_runc()) static_cast<void>(kymod_->kymo({"kill", "kymo-web", "--signal", "KILL"}));
    kymod_->stop(SIGTERM);
  }

  [[nodiscard]] static bool of_runc() { return std::string(std::get<0>(GetParam())) == "Runc"; }
  [[nodiscard]] std::string root() const {
    return of_runc() ? runc_.folder().path() + "/kymo-web/rootfs" : folder_.path();
  }
  void dump();
  pid_t restore_until_a_ghost_is_made();
  void end(pid_t criu);
  [[nodiscard]] bool has_ghost() const {
    const fs::directory_iterator all(root());
    return std::any_of(begin(all), fs::end(all), [](const fs::directory_entry& file) {
      return file.path().extension() == ".ghost";
    });
  }

  TemporaryDirectory folder_;
  RuncFolder runc_;
  const BreakableCriu criu_;
  std::optional<Kymod> kymod_;
  std::thread client_;
  Outcome answer_;
};

void GhostTest::dump() {
  std::vector<std::string> words{
      "run", "process", "--name", "kymo-web", "--", "perl", "-e", kCountsWithADeletedFile, root()};
  if (of_runc()) {
    const std::string bundle =
        make_bundle(runc_.folder(), "kymo-web",
                    {"/bin/sh", "-c", "exec 9>/gone; rm /gone; " + counting_loop()});
    words = {"run", "runc", "--bundle", bundle, "--id", "kymo-web"};
  }
  static_cast<void>(kymod_->kymo_json(words));
  ASSERT_TRUE(counts_on(root()));
  const Outcome dumped = kymod_->kymo({"dump", "process", "kymo-web", "--dir", kymod_->path("c")});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  runc_.runc("delete --force kymo-web");
}

// Returns the pid of CRIU. CRIU's child has made the deleted file and is stopped.
pid_t GhostTest::restore_until_a_ghost_is_made() {
  criu_.wait_at("Remap rpath is");
  client_ = std::thread([this] { answer_ = kymod_->kymo({"restore", kymod_->path("c")}); });
  EXPECT_TRUE(eventually([&] { return has_ghost(); })) << kymod_->log();
  criu_.mend();
  return std::atoi(read_file(fs::path(criu_.path()).parent_path() / "pid").c_str());
}

void GhostTest::end(pid_t criu) {
  const Result<probe::Process> seen = probe::read_process(criu);
  ASSERT_TRUE(seen.ok()) << seen.error().message;
  switch (std::get<1>(GetParam()).end) {
    case End::is_cancelled:
      static_cast<void>(kymod_->kymo({"cancel", "kymo-web"}));
      break;
    case End::criu_is_killed:
      kill(criu, SIGKILL);
      break;
    case End::all_are_killed: {
      const pid_t kymod = kymod_->pid();
      kymod_->stop(SIGKILL);
      if (seen->parent != kymod) kill(seen->parent, SIGKILL);
      kill(criu, SIGKILL);
      break;
    }
  }
  client_.join();
}

TEST_P(GhostTest, TheNextRestoreWorksAtOnce) {
  const pid_t criu = restore_until_a_ghost_is_made();
  ASSERT_GT(criu, 0);
  end(criu);
  EXPECT_NE(answer_.exit_code, 0) << answer_.out;
  if (!kymod_->running()) {
    kymod_->start();
    EXPECT_FALSE(fs::exists(runc_.path() + "/kymo-web")) << kymod_->log();
    EXPECT_EQ(read_file("/proc/self/mountinfo").find(kymod_->path("c")), std::string::npos);
  }
  EXPECT_FALSE(has_ghost()) << answer_.err << kymod_->log();
  const Outcome restored = kymod_->kymo({"restore", kymod_->path("c")});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(root())) << restored.err << kymod_->log();
  EXPECT_FALSE(has_ghost());
}

std::string name_of_ghost(const testing::TestParamInfo<GhostTest::ParamType>& info) {
  return std::string(std::get<0>(info.param)) + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Restores, GhostTest,
                         testing::Combine(testing::Values("AProcess", "Runc"),
                                          testing::ValuesIn(kEnds)),
                         name_of_ghost);

// In the root of a container of podman, only CRIU removes the file (docs/faults.md).
class GhostOfPodmanTest : public testing::TestWithParam<HowItEnds> {
 protected:
  void SetUp() override {
    KYMO_NEEDS_PODMAN();
    kymod_.emplace(std::vector<std::string>{"--criu", criu_.path(),
                                            "--podman-flags=" + PodmanContainers::flags()});
    kymod_->start();
    root_ =
        podman_.start("kymo-e2e", {"/bin/sh", "-c", "exec 9>/gone; rm /gone; " + counting_loop()});
    static_cast<void>(kymod_->kymo_json({"adopt", "podman", "kymo-e2e", "--name", "job"}));
    const Outcome dumped = kymod_->kymo({"dump", "process", "job", "--dir", dir()});
    ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  }
  void TearDown() override { criu_.mend(); }

  [[nodiscard]] std::string dir() const { return kymod_->path("c"); }
  [[nodiscard]] bool has_ghost() const {
    const fs::directory_iterator all(root_);
    return std::any_of(begin(all), fs::end(all), [](const fs::directory_entry& file) {
      return file.path().extension() == ".ghost";
    });
  }
  [[nodiscard]] static bool has_cgroups_mounted() {
    return read_file("/proc/self/mountinfo").find(".criu.cgyard.") != std::string::npos;
  }
  // Kills kymod, podman, conmon, runc and CRIU, so that none of them can clean up. conmon is no child of
  // podman.
  void kill_all(pid_t criu) {
    const Result<std::vector<pid_t>> podman = probe::children_of(kymod_->pid());
    ASSERT_TRUE(podman.ok()) << podman.error().message;
    std::vector<pid_t> chain{criu};
    for (std::string name; name != "conmon";) {
      const Result<probe::Process> seen = probe::read_process(chain.back());
      ASSERT_TRUE(seen.ok()) << seen.error().message;
      const Result<probe::Process> parent = probe::read_process(seen->parent);
      ASSERT_TRUE(parent.ok() && parent->pid > 1) << "conmon is no parent of CRIU";
      chain.push_back(parent->pid);
      name = parent->name;
    }
    kymod_->stop(SIGKILL);
    for (const pid_t one : *podman) kill(one, SIGKILL);
    std::for_each(chain.rbegin(), chain.rend(), [](pid_t one) { kill(one, SIGKILL); });
  }

  const BreakableCriu criu_;
  PodmanContainers podman_;
  std::optional<Kymod> kymod_;
  std::string root_;
};

TEST_P(GhostOfPodmanTest, AtMostOneMoreRestoreFailsAndNothingIsLeft) {
  const bool mounted_before = has_cgroups_mounted();
  criu_.wait_at("Remap rpath is");
  Outcome answer;
  std::thread client([&] { answer = kymod_->kymo({"restore", dir()}); });
  EXPECT_TRUE(eventually([&] { return has_ghost(); })) << kymod_->log();
  criu_.mend();
  const pid_t criu = std::atoi(read_file(fs::path(criu_.path()).parent_path() / "pid").c_str());
  EXPECT_GT(criu, 0);
  if (GetParam().end == End::is_cancelled) {
    EXPECT_EQ(kymod_->kymo({"cancel", "job"}).exit_code, 0);
  } else if (criu > 0) {
    kill_all(criu);
  }
  client.join();
  EXPECT_NE(answer.exit_code, 0) << answer.out;
  if (!kymod_->running()) kymod_->start();
  const std::string id = podman_.podman("container inspect --format '{{.Id}}' kymo-e2e");
  const std::string root_of_restore = "/" + id.substr(0, id.find('\n')) + "/criu-root ";
  EXPECT_EQ(read_file("/proc/self/mountinfo").find(root_of_restore), std::string::npos);
  Outcome restored = kymod_->kymo({"restore", dir()});
  if (restored.exit_code != 0) restored = kymod_->kymo({"restore", dir()});
  EXPECT_EQ(restored.exit_code, 0) << restored.err << kymod_->log();
  EXPECT_TRUE(counts_on(root_)) << kymod_->log();
  EXPECT_FALSE(has_ghost());
  EXPECT_EQ(has_cgroups_mounted(), mounted_before);
}

std::string name_of_end_of_podman(const testing::TestParamInfo<HowItEnds>& one) {
  return one.param.name;
}

INSTANTIATE_TEST_SUITE_P(Restores, GhostOfPodmanTest, testing::Values(kEnds[0], kEnds[2]),
                         name_of_end_of_podman);

}  // namespace
}  // namespace kymo::test
