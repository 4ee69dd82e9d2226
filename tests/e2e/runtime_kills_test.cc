// A program is killed at points of a dump or restore, while kymod goes on: in a dump podman's runc or conmon, in a restore
// kymod's own runc.
// Afterwards the container counts, or its checkpoint can be restored, and kymod says which.

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/proc/process.h"
#include "counted_job.h"
#include "support/containers.h"

namespace kymo::test {
namespace {

// The text that CRIU is about to write to its log when it is stopped.
struct Point {
  const char* name;
  const char* text;
};
constexpr Point kDumpPoints[] = {{"WhenItFreezes", "Seized task"},
                                 {"WhenItWrites", "Dumping pages (type"},
                                 {"WhenAllIsWritten", "post-dump"},
                                 {"AtItsEnd", "Dumping finished successfully"}};
constexpr Point kRestorePoints[] = {{"BeforeItForks", "pre-restore"},
                                    {"WhenMemoryIsBack", "post-restore"},
                                    {"BeforeItResumes", "pre-resume"},
                                    {"WhenItRuns", "post-resume"}};
struct Victim {
  const char* name;
  const char* program;
  Kind of;
};
constexpr Victim kOfPodman[] = {{"PodmansRunc", "runc", Kind::podman},
                                {"Conmon", "conmon", Kind::podman}};
constexpr Victim kOfKymod[] = {{"KymodsRunc", "runc", Kind::runc}};

using RuntimeKill = std::tuple<Point, Victim>;

// Lets gtest print the values.
void PrintTo(const Point& point, std::ostream* out) {
  *out << point.name;
}
void PrintTo(const Victim& victim, std::ostream* out) {
  *out << victim.name;
}

// The nearest ancestor of the process with this name. 0 if there is none.
pid_t ancestor(pid_t process, const std::string& name) {
  for (pid_t one = process; one > 1;) {
    const Result<probe::Process> seen = probe::read_process(one);
    if (!seen) return 0;
    if (seen->name == name) return one;
    one = seen->parent;
  }
  return 0;
}

void expect_restored(CountedJob& job, const std::string& dir, const Outcome& before,
                     std::uint64_t number) {
  EXPECT_TRUE(eventually([&] {
    return job.kymod->kymo_json({"checkpoints"}).at(0)["state"] == "complete";
  })) << before.err;
  const Outcome restored = job.kymod->kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << before.err << restored.err << job.kymod->log();
  EXPECT_TRUE(job.counting->counts()) << before.err << restored.err << job.kymod->log();
  EXPECT_GT(job.counting->number(), number);
}

class RuntimeKillsTest : public testing::TestWithParam<RuntimeKill> {
 protected:
  [[nodiscard]] static std::string point() { return std::get<0>(GetParam()).text; }
  [[nodiscard]] static std::string victim() { return std::get<1>(GetParam()).program; }
  [[nodiscard]] static Kind kind() { return std::get<1>(GetParam()).of; }
  // Makes the request, and kills the victim when CRIU has stopped at the point. `of`: an offspring of the victim; 0:
  // CRIU. `stuck`: CRIU stays stopped, and this gets its pid.
  static Outcome request(CountedJob& job, const std::vector<std::string>& words, pid_t of,
                         pid_t* stuck = nullptr) {
    job.criu.break_at(point(), SIGSTOP);
    Outcome answer;
    std::thread client([&] { answer = job.kymod->kymo(words); });
    const pid_t criu = job.criu.stopped();
    EXPECT_NE(criu, 0) << job.kymod->log();
    job.criu.mend();
    const pid_t killed = ancestor(of == 0 ? criu : of, victim());
    // Once the container has ended, so has its conmon, and there is nobody to kill.
    if (of == 0 || probe::read_process(of)) {
      EXPECT_GT(killed, 1) << victim() << " is not found";
    }
    if (killed > 1) kill(killed, SIGKILL);
    if (stuck != nullptr) {
      *stuck = criu;
    } else if (criu > 0) {
      kill(criu, SIGCONT);
    }
    client.join();
    return answer;
  }
};

class RuntimeDumpKillsTest : public RuntimeKillsTest {};
TEST_P(RuntimeDumpKillsTest, ItCountsOrItsCheckpointIsWhole) {
  KYMO_NEEDS(kind());
  CountedJob job(kind());
  const std::uint64_t number = job.counting->number();
  // conmon is the parent of the container.
  const pid_t container = job.kymod->job(job.counting->name())["pid"].get<pid_t>();
  const Outcome dumped = request(job, {"dump", "process", job.counting->name(), "--dir", job.dir()},
                                 victim() == "conmon" ? container : 0);
  if (dumped.exit_code != 0 && !job.counting->copies().empty()) {
    EXPECT_TRUE(job.counting->counts()) << dumped.err;
    EXPECT_GT(job.counting->number(), number);
  } else {
    expect_restored(job, job.dir(), dumped, number);
  }
}

class RuntimeRestoreKillsTest : public RuntimeKillsTest {
 protected:
  // Whether CRIU goes on without the runc that is killed.
  [[nodiscard]] static bool outlives_it() { return point() == "post-resume"; }
};
TEST_P(RuntimeRestoreKillsTest, ItCountsOrItsCheckpointCanBeRestored) {
  KYMO_NEEDS(kind());
  CountedJob job(kind());
  const std::uint64_t number = job.counting->number();
  job.dump();
  if (HasFailure()) return;
  const Outcome answer = request(job, {"restore", job.dir()}, 0);
  if (outlives_it()) {
    EXPECT_EQ(answer.exit_code, 0) << answer.err << job.kymod->log();
  }
  if (answer.exit_code != 0) {
    EXPECT_TRUE(job.counting->copies().empty()) << answer.err;
    expect_restored(job, job.dir(), answer, number);
    return;
  }
  EXPECT_TRUE(job.counting->counts()) << job.kymod->log();
  EXPECT_GT(job.counting->number(), number);
  // The runtime knows the container, and what runc has left takes nothing from the root.
  const std::uint64_t later = job.counting->number();
  const std::string dir = job.kymod->path("again");
  const Outcome again = job.kymod->kymo({"dump", "process", job.counting->name(), "--dir", dir});
  EXPECT_EQ(again.exit_code, 0) << again.err << job.kymod->log();
  job.counting->forget();
  EXPECT_TRUE(eventually([&] { return job.counting->copies().empty(); })) << job.kymod->log();
  expect_restored(job, dir, again, later);
}

class CriuOfRuntimeTest : public testing::TestWithParam<Victim> {};
TEST_P(CriuOfRuntimeTest, IsNamedIfItIsKilledInADump) {
  KYMO_NEEDS(GetParam().of);
  CountedJob job(GetParam().of);
  const std::string& name = job.counting->name();
  job.criu.break_at("Dumping pages (type", SIGKILL);
  const Outcome dumped = job.kymod->kymo({"dump", "process", name, "--dir", job.dir()});
  job.criu.mend();
  EXPECT_EQ(dumped.exit_code, 1) << dumped.out;
  EXPECT_NE(dumped.err.find("its CRIU was killed, or crashed"), std::string::npos) << dumped.err;
  EXPECT_TRUE(job.counting->counts());
  const Outcome told = job.kymod->kymo({"explain", job.dir()});
  EXPECT_NE(told.out.find("Failure: criu-died"), std::string::npos) << told.out << told.err;
}

// CRIU stands still, as if it waited for something, until kymod ends it.
class StuckRestoreTest : public RuntimeKillsTest {};
TEST_P(StuckRestoreTest, CriuIsEndedAndItCountsOrItsCheckpointCanBeRestored) {
  KYMO_NEEDS(kind());
  CountedJob job(kind());
  const std::uint64_t number = job.counting->number();
  job.dump();
  if (HasFailure()) return;
  pid_t criu = 0;
  const Outcome answer = request(job, {"restore", job.dir()}, 0, &criu);
  const Result<probe::Process> left = probe::read_process(criu);
  EXPECT_TRUE(!left || left->zombie()) << answer.err << job.kymod->log();
  if (left && criu > 0) kill(criu, SIGKILL);
  if (answer.exit_code == 0) {
    EXPECT_TRUE(job.counting->counts()) << job.kymod->log();
    EXPECT_GT(job.counting->number(), number);
  } else {
    EXPECT_TRUE(job.counting->copies().empty()) << answer.err;
    expect_restored(job, job.dir(), answer, number);
  }
}

// Another container's cgroup may have the same name in another place, as with containerd.
TEST(RuncRestoreTest, AFailedOneEndsItsProcessesBesideAnotherContainerOfTheName) {
  KYMO_NEEDS(Kind::runc);
  CountedJob job(Kind::runc);
  const RuncFolder another;
  const std::string bundle = make_bundle(another.folder(), "another", counting_command());
  nlohmann::json spec = nlohmann::json::parse(read_file(bundle + "/config.json"));
  spec["linux"]["cgroupsPath"] = "/kymo-another/" + job.counting->name();
  std::ofstream(bundle + "/config.json") << spec;
  ASSERT_TRUE(another.runc("run -d --bundle '" + bundle + "' kymo-another"));
  ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  const std::uint64_t number = job.counting->number();
  job.dump();
  if (testing::Test::HasFailure()) return;
  job.criu.break_at("post-resume", SIGKILL);
  const Outcome answer = job.kymod->kymo({"restore", job.dir()});
  job.criu.mend();
  EXPECT_NE(answer.exit_code, 0) << answer.out;
  EXPECT_TRUE(job.counting->copies().empty()) << answer.err;
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
  expect_restored(job, job.dir(), answer, number);
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

std::string name_of_kill(const testing::TestParamInfo<RuntimeKill>& info) {
  return std::string(std::get<0>(info.param).name) + std::get<1>(info.param).name + "IsKilled";
}

INSTANTIATE_TEST_SUITE_P(Kills, RuntimeDumpKillsTest,
                         testing::Combine(testing::ValuesIn(kDumpPoints),
                                          testing::ValuesIn(kOfPodman)),
                         name_of_kill);
INSTANTIATE_TEST_SUITE_P(KillsOfRunc, RuntimeRestoreKillsTest,
                         testing::Combine(testing::ValuesIn(kRestorePoints),
                                          testing::ValuesIn(kOfKymod)),
                         name_of_kill);

INSTANTIATE_TEST_SUITE_P(KillsOfCriu, CriuOfRuntimeTest,
                         testing::Values(Victim{"Runc", "criu", Kind::runc},
                                         Victim{"Podman", "criu", Kind::podman},
                                         Victim{"Containerd", "criu", Kind::containerd}),
                         [](const auto& one) { return std::string(one.param.name); });

INSTANTIATE_TEST_SUITE_P(KillsOfItsParent, StuckRestoreTest,
                         testing::Combine(testing::Values(kRestorePoints[2]),
                                          testing::ValuesIn(kOfKymod)),
                         name_of_kill);

}  // namespace
}  // namespace kymo::test
