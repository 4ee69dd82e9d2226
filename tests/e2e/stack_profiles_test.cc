// Stack profiles of dumps and restores (kymod --profiling-stacks).

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/proc/process.h"
#include "base/spawn.h"
#include "profiler/stacks/named_profile.h"
#include "programs.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using stacks::NamedProfile;
using Stack = NamedProfile::Stack;

// So many samples per second that a phase of a few milliseconds has some.
constexpr const char* kOften = "--profiling-stacks=999";

// Waits until the profile that belongs to a recording is written, and reads it.
NamedProfile profile_of(const std::string& recording) {
  const std::string path = recording.substr(0, recording.size() - 4) + ".pb.gz";
  EXPECT_TRUE(eventually([&] { return fs::exists(path); }, std::chrono::seconds(60))) << path;
  const auto profile = stacks::read_pprof(read_file(path), path);
  EXPECT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  return profile ? *profile : NamedProfile();
}

std::uint64_t count(const NamedProfile& profile, const std::function<bool(const Stack&)>& is) {
  std::uint64_t samples = 0;
  for (const Stack& stack : profile.stacks) samples += is(stack) ? stack.weight.samples : 0;
  return samples;
}

bool has(const NamedProfile& profile, const Stack& stack, const std::string& name) {
  return std::any_of(stack.functions.begin(), stack.functions.end(), [&](std::uint32_t id) {
    return profile.functions[id].name.find(name) != std::string::npos;
  });
}

std::uint64_t samples_of(const NamedProfile& profile, const std::string& role,
                         const std::string& function = {}) {
  return count(profile, [&](const Stack& stack) {
    return stack.role == role && (function.empty() || has(profile, stack, function));
  });
}

// Whether the profile has names of functions in the program criu.
bool names_criu(const NamedProfile& profile) {
  return count(profile, [&](const Stack& stack) {
           return stack.role == "criu" &&
                  std::any_of(stack.functions.begin(), stack.functions.end(),
                              [&](std::uint32_t id) {
                                const NamedProfile::Function& function = profile.functions[id];
                                return function.known && function.module.ends_with("/criu");
                              });
         }) > 0;
}

// Each sample must be in a phase of the request. There must be samples of CRIU and of the target.
void expect_divided(const NamedProfile& profile, const nlohmann::json& phases) {
  EXPECT_GT(samples_of(profile, "criu"), 0U);
  EXPECT_GT(samples_of(profile, "target"), 0U);
  for (const Stack& stack : profile.stacks) {
    EXPECT_TRUE(stack.role == "criu" || stack.role == "target") << stack.role;
    const bool known = std::any_of(phases.begin(), phases.end(),
                                   [&](const auto& phase) { return phase["name"] == stack.phase; });
    EXPECT_TRUE(known) << "'" << stack.phase << "' is none of " << phases.dump();
  }
}

nlohmann::json json_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

// The JSON of a checkpoint must have the same values as the profile of the dump, for each phase.
void expect_told(const nlohmann::json& told, const NamedProfile& dumped) {
  const nlohmann::json& dump = told["stacks"][0];
  EXPECT_EQ(dump["recording"], "dump");
  EXPECT_EQ(told["stacks"][1]["recording"], "restore");
  std::uint64_t criu = 0;
  std::vector<std::string> phases;
  for (const auto& phase : dump["phases"]) {
    phases.push_back(phase["phase"]);
    criu += phase["criu"]["samples"].get<std::uint64_t>();
    EXPECT_LE(phase["criu"]["functions"].size(), 3U);
  }
  EXPECT_EQ(phases, stacks::phases_in(dumped));
  EXPECT_EQ(criu, samples_of(dumped, "criu"));
}

// The child of kymod that takes stacks, or 0 if there is none.
pid_t collector_of(pid_t kymod) {
  for (const pid_t pid : probe::all_processes()) {
    const auto seen = probe::read_process(pid);
    if (seen && seen->parent == kymod && seen->name == "kymod-stacks") return pid;
  }
  return 0;
}

// Dumps a process that is no job of `kymod`, and ends it: a job inherits the limits of its kymod, and
// CRIU cannot dump a limit that it has itself.
nlohmann::json dump_of_no_job(const Kymod& kymod) {
  const Result<pid_t> pid = spawn({.file = "/bin/sleep",
                                   .words = {"sleep", "1000"},
                                   .descriptors = {kDevNull, kDevNull, kDevNull},
                                   .leads = Program::Leads::session});
  EXPECT_TRUE(pid.ok()) << (pid ? "" : pid.error().message);
  if (!pid) return {};
  nlohmann::json dump =
      kymod.kymo_json({"dump", "process", std::to_string(*pid), "--leave-running"});
  ::kill(*pid, SIGKILL);
  ::waitpid(*pid, nullptr, 0);
  return dump;
}

// A program that uses CPUs in one function with a known name, turn().
std::vector<std::string> busy_program() {
  return {FUNCTIONS_PROGRAM, "work", "/dev/null", "100000000"};
}

nlohmann::json start_busy(const Kymod& kymod) {
  std::vector<std::string> words{"run", "process", "--name", "busy", "--"};
  for (const std::string& word : busy_program()) words.push_back(word);
  nlohmann::json job = kymod.kymo_json(words);
  // The program is busy when it has two threads besides the first one.
  const pid_t pid = job["pid"];
  EXPECT_TRUE(eventually([&] { return probe::threads_of(pid).size() == 3; }));
  return job;
}

TEST(StackProfilesTest, OfADumpAndARestoreAreDividedByTheirPhases) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({kOften});
  kymod.start();
  static_cast<void>(start_busy(kymod));
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "busy"});
  EXPECT_EQ(dump["warnings"].size(), 0U) << dump["warnings"];
  const NamedProfile dumped = profile_of(dump["recording"]);
  expect_divided(dumped, dump["phases"]);
  EXPECT_TRUE(names_criu(dumped));
  EXPECT_GT(samples_of(dumped, "target", "turn("), 0U)
      << "the target must have samples from before the freeze";
  // While CRIU holds the target, it runs only CRIU's code.
  for (const Stack& stack : dumped.stacks) {
    if (stack.phase.starts_with("memory") && stack.role == "target") {
      EXPECT_FALSE(has(dumped, stack, "turn(")) << stack.phase;
    }
  }

  const nlohmann::json restore = kymod.kymo_json({"restore", "process", dump["directory"]});
  EXPECT_EQ(restore["warnings"].size(), 0U) << restore["warnings"];
  const NamedProfile restored = profile_of(restore["recording"]);
  expect_divided(restored, restore["phases"]);
  EXPECT_TRUE(names_criu(restored));

  const nlohmann::json sum = json_of(kymod.kymo({"profile", "--json", "--checkpoints", "busy"}));
  EXPECT_EQ(sum["samples"], dumped.sum().samples + restored.sum().samples);
  const std::string phase = dumped.stacks.front().phase;
  const nlohmann::json part =
      json_of(kymod.kymo({"profile", "--json", "--checkpoints", "busy", "--phase", phase}));
  EXPECT_EQ(part["samples"], stacks::of_phase(dumped, phase).sum().samples +
                                 stacks::of_phase(restored, phase).sum().samples);
  expect_told(kymod.kymo_json({"inspect", dump["directory"]}), dumped);
  expect_told(kymod.kymo_json({"explain", dump["directory"]}), dumped);
}

TEST(StackProfilesTest, AJobIsProfiledByItsNameOrId) {
  KYMO_NEEDS_CRIU();
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to take stacks";
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = start_busy(kymod);
  for (const std::string& name : {std::string("busy"), job["id"].get<std::string>()}) {
    const nlohmann::json seen = json_of(kymod.kymo(
        {"profile", "--name", name, "-d", "500ms", "-r", "999", "--rows", "1000", "--json"}));
    ASSERT_TRUE(seen.is_object()) << seen;
    EXPECT_GT(seen["samples"], 0);
    double share = 0;
    for (const nlohmann::json& function : seen["functions"]) {
      const std::string text = function["function"];
      if (text.find("turn(") != std::string::npos) share = function["total_share"];
    }
    EXPECT_GT(share, 0.8) << "the profile must have the stacks of this job only: "
                          << seen["functions"];
  }
  const Outcome nobody = kymod.kymo({"profile", "--name", "nobody", "-d", "100ms"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_NE(nobody.err.find("nobody"), std::string::npos) << nobody.err;
  ::kill(job["pid"].get<pid_t>(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return kymod.job("busy")["state"] != "running"; }));
  const Outcome ended = kymod.kymo({"profile", "--name", "busy", "-d", "100ms"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.err.find("cannot profile busy: it is no job that runs; see kymo ps"),
            std::string::npos)
      << ended.err;
}

TEST(StackProfilesTest, WithoutTheRightToUseBpfADumpSucceedsWithAWarning) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({kOften}, {WITHOUT_BPF_PROGRAM});
  kymod.start();
  // --inside needs the same right, and logs that in a line of its own.
  const std::string warning = "--profiling-stacks: ";
  ASSERT_TRUE(kymod.logs(warning)) << kymod.log();
  const std::string log = kymod.log();
  const std::size_t at = log.find(warning);
  EXPECT_NE(log.substr(at, log.find('\n', at) - at).find("CAP_BPF and CAP_PERFMON"),
            std::string::npos)
      << log;
  const nlohmann::json dump = dump_of_no_job(kymod);
  ASSERT_EQ(dump["warnings"].size(), 1U) << dump["warnings"];
  EXPECT_NE(dump["warnings"][0].get<std::string>().find("no stack profile"), std::string::npos);
  const nlohmann::json about = ended_metadata(dump["recording"])["about"];
  EXPECT_NE(about["stacks"]["missing"].get<std::string>().find("CAP_BPF"), std::string::npos);
  const std::string recordings = dump["directory"].get<std::string>() + "/recordings";
  for (const auto& entry : fs::directory_iterator(recordings)) {
    EXPECT_FALSE(entry.path().string().ends_with(".pb.gz")) << entry.path();
  }
}

TEST(StackProfilesTest, WithoutTheRightToUseBpfWhatHappensInsideIsStillSeenByFilesOfTheKernel) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({}, {WITHOUT_BPF_PROGRAM});
  kymod.start();
  EXPECT_TRUE(kymod.logs("--inside: dumps and restores have no columns of system calls"));
  const nlohmann::json dump = dump_of_no_job(kymod);
  EXPECT_TRUE(dump["warnings"].empty()) << dump["warnings"];
  const nlohmann::json inside = ended_metadata(dump["recording"])["about"]["inside"];
  const std::string missing = inside["missing"].dump();
  EXPECT_NE(missing.find("system calls and exact times"), std::string::npos) << missing;
  EXPECT_NE(missing.find("CAP_BPF and CAP_PERFMON"), std::string::npos) << missing;
  const auto columns = read_recording(dump["recording"]);
  EXPECT_EQ(columns.count("criu_run_ns"), 0U);
  EXPECT_EQ(columns.count("criu_cpu_ns"), 1U);
}

TEST(StackProfilesTest, AKymodThatIsKilledLeavesNoCollector) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({kOften});
  kymod.start();
  static_cast<void>(kymod.churn(64, "work"));
  ASSERT_TRUE(eventually([&] { return collector_of(kymod.pid()) == 0; }))
      << "the collector of the start-up must have ended";
  Outcome dumped;
  std::thread dump([&] { dumped = kymod.kymo({"dump", "process", "work", "--leave-running"}); });
  pid_t collector = 0;
  EXPECT_TRUE(eventually([&] { return (collector = collector_of(kymod.pid())) != 0; }));
  EXPECT_EQ(kymod.stop(SIGKILL), -1);
  dump.join();
  EXPECT_NE(dumped.exit_code, 0);
  EXPECT_TRUE(eventually([&] { return !probe::process_lives(collector, 0); })) << collector;
  kymod.start();  // it lets the process of the unfinished dump go on
}

// The command of a container whose shell uses a CPU.
std::vector<std::string> busy_shell() {
  return {"/bin/busybox", "sh", "-c", "echo > /ready; while :; do :; done"};
}

// Dumps the container and restores it. Both profiles must have samples of CRIU, whoever started it.
void expect_criu_of_container(const Kymod& kymod, const std::string& kind, const std::string& name,
                              const std::string& root) {
  ASSERT_TRUE(eventually([&] { return fs::exists(root + "/ready"); })) << root;
  const std::string dir = kymod.path("one");
  const nlohmann::json dump = kymod.kymo_json({"dump", kind, name, "--dir", dir});
  const NamedProfile dumped = profile_of(dump["recording"]);
  expect_divided(dumped, dump["phases"]);
  EXPECT_TRUE(names_criu(dumped));
  const nlohmann::json restore = kymod.kymo_json({"restore", dir});
  const NamedProfile restored = profile_of(restore["recording"]);
  expect_divided(restored, restore["phases"]);
  EXPECT_TRUE(names_criu(restored));
}

TEST(StackProfilesTest, ADumpOfARuncContainerHasStacks) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  Kymod kymod({"--runc-root", runc.path(), kOften});
  kymod.start();
  const std::string bundle = make_bundle(runc.folder(), "bundle", busy_shell());
  static_cast<void>(
      kymod.kymo_json({"run", "runc", "--bundle", bundle, "--id", "kymo-web", "--name", "web"}));
  expect_criu_of_container(kymod, "runc", "kymo-web", bundle + "/rootfs");
}

TEST(StackProfilesTest, ADumpOfAPodmanContainerHasStacks) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags(), kOften});
  kymod.start();
  std::vector<std::string> run{"run", "podman", "--name", "kymo-e2e", "--"};
  for (const std::string& word : podman.arguments("kymo-e2e", busy_shell())) run.push_back(word);
  static_cast<void>(kymod.kymo_json(run));
  expect_criu_of_container(kymod, "podman", "kymo-e2e", podman.root_of("kymo-e2e"));
}

// As with containerd, its CRIU is not a descendant of kymod.
TEST(StackProfilesTest, ADumpOfADockerContainerHasStacks) {
  KYMO_NEEDS_DOCKER();
  const Docker docker(fs::path(criu_path()).parent_path());
  Kymod kymod({kOften});
  kymod.start();
  std::vector<std::string> run{"run", "docker", "--name", "kymo-web", "--"};
  for (const std::string& word : Docker::arguments(busy_shell())) run.push_back(word);
  static_cast<void>(kymod.kymo_json(run));
  expect_criu_of_container(kymod, "docker", "kymo-web", docker.root_of("kymo-web"));
}

// Its CRIU is not a descendant of kymod.
TEST(StackProfilesTest, ADumpOfAContainerdContainerHasStacks) {
  KYMO_NEEDS_CONTAINERD();
  const Containerd containerd(fs::path(criu_path()).parent_path());
  Kymod kymod({kOften});
  kymod.start();
  std::vector<std::string> run{"run",      "containerd", "--name",
                               "kymo-web", "--",         Containerd::image()};
  for (const std::string& word : busy_shell()) run.push_back(word);
  static_cast<void>(kymod.kymo_json(run));
  const std::string pid = std::to_string(kymod.job("kymo-web")["pid"].get<int>());
  expect_criu_of_container(kymod, "containerd", "kymo-web", "/proc/" + pid + "/root");
}

}  // namespace
}  // namespace kymo::test
