// kymod pulls profiles that Go programs make of themselves, and keeps them (kymod --profiles-pull).

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/proc/process.h"
#include "base/spawn.h"
#include "keeper_watch.h"
#include "programs.h"

namespace kymo::test {
namespace {

using nlohmann::json;

// A Go program that serves its profiles. What it does is known (tests/profiler/stacks/go/serves_profiles.go).
class PulledProfilesTest : public ::testing::Test {
 protected:
  void SetUp() override { start({SERVES_PROFILES, rounds_, folder_.path()}); }
  void start(const std::vector<std::string>& words) {
    const auto pid = spawn({.file = SERVES_PROFILES, .words = words});
    ASSERT_TRUE(pid) << pid.error().message;
    pid_ = *pid;
    ASSERT_TRUE(eventually([&] { return !lines().empty(); }, kPatience));
  }
  void TearDown() override {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  // The output of the program: its port, and a line for each round.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    std::ifstream file(rounds_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  [[nodiscard]] std::string address() const { return "http://127.0.0.1:" + lines().at(0); }
  // Waits until this many rounds have ended.
  [[nodiscard]] bool rounds(std::size_t number) const {
    return eventually([&] { return lines().size() > number; }, kPatience);
  }
  void write_targets(const std::string& text) const { std::ofstream(targets_) << text; }
  [[nodiscard]] std::vector<std::string> flags() const {
    return {"--profiles",      directory_, "--profiles-only=job:none",
            "--profiles-pull", targets_,   "--profiles-pull-every=2"};
  }
  // Stops kymod, and waits until the current minute is written.
  static void stop(Kymod& kymod) {
    KeeperWatch keeper(kymod.pid());
    EXPECT_EQ(kymod.stop(SIGTERM), 0);
    EXPECT_TRUE(keeper.ended());
  }
  [[nodiscard]] json shown(const std::string& service, const std::string& kind) const {
    const Outcome outcome = run({KYMO_PROGRAM, "profiles", service, "--kind", kind, "--directory",
                                 directory_, "--rows", "10000", "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  // A value of a function, or -1 if the profile does not have the function.
  static std::int64_t value(const json& shown, const std::string& function,
                            const std::string& member) {
    for (const json& one : shown["profile"]["functions"]) {
      if (one["function"] == function) return one[member];
    }
    return -1;
  }

  // Expects that kymod says that this target cannot be pulled, for one of these reasons.
  static void expect_said(const Kymod& kymod, const std::string& name,
                          const std::vector<std::string>& reasons) {
    const std::string begin = "cannot pull profiles of target:" + name + " at 127.0.0.1, port ";
    const auto said = [&] {
      const std::string log = kymod.log();
      const std::size_t at = log.find(begin);
      if (at == std::string::npos) return false;
      const std::string line = log.substr(at, log.find('\n', at) - at);
      return std::any_of(reasons.begin(), reasons.end(), [&](const std::string& reason) {
        return line.find(reason) != std::string::npos;
      });
    };
    EXPECT_TRUE(eventually(said, kPatience)) << name << "\n" << kymod.log();
  }

  static constexpr std::chrono::seconds kPatience{120};
  TemporaryDirectory folder_;
  std::string rounds_ = folder_.path() + "/rounds";
  std::string targets_ = folder_.path() + "/targets";
  std::string directory_ = folder_.path() + "/profiles";
  pid_t pid_ = 0;
};

// What the program did before the first pull must not be stored. What it did afterwards must be.
TEST_F(PulledProfilesTest, EachKindHasWhatTheProgramDid) {
  write_targets("app " + address() + "  # a comment\n");
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(rounds(3));  // the second round is stored when the third has begun
  stop(kymod);
  const json alloc = shown("target:app", "go-alloc");
  EXPECT_EQ(value(alloc, "main.drop", "self_samples"), 100);
  EXPECT_EQ(value(alloc, "main.drop", "self_bytes"), 100 * 4096);
  EXPECT_EQ(value(alloc, "main.hold", "self_bytes"), -1)
      << "this memory was allocated before the first pull";
  const json heap = shown("app", "go-heap");
  EXPECT_EQ(value(heap, "main.hold", "self_bytes"), 50 * 8192)
      << "the memory in use is averaged over the pulls, not added";
  EXPECT_EQ(value(heap, "main.hold", "self_samples"), 50);
  const json goroutines = shown("app", "go-goroutine");
  EXPECT_EQ(value(goroutines, "main.park", "total_count"), 7);
  const json block = shown("app", "go-block");
  EXPECT_EQ(value(block, "main.wait", "total_samples"), 1);
  EXPECT_GE(value(block, "main.wait", "total_ns"), 150'000'000);
  EXPECT_EQ(block["profile"]["kind"], "delay");
  EXPECT_EQ(kymod.log().find("cannot pull"), std::string::npos) << kymod.log();
}

TEST_F(PulledProfilesTest, WithoutTheRightToUseBpfTheyAreStillPulledAndStatusSaysThatNoStacksAre) {
  write_targets("app " + address() + "\n");
  Kymod kymod(flags(), {WITHOUT_BPF_PROGRAM});
  kymod.start();
  EXPECT_TRUE(kymod.logs("; profiles are only pulled")) << kymod.log();
  const Outcome status = kymod.kymo({"status"});
  EXPECT_EQ(status.exit_code, 1) << status.err;
  EXPECT_NE(status.out.find("stack profiles are not kept: "), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("; profiles are only pulled"), std::string::npos) << status.out;
  ASSERT_TRUE(rounds(3));
  stop(kymod);
  EXPECT_EQ(value(shown("target:app", "go-alloc"), "main.drop", "self_samples"), 100);
}

// The same program with a part that uses a CPU, compared with `go tool pprof`.
class GoToolPprofTest : public PulledProfilesTest {
 protected:
  struct Values {
    double own = 0;
    double total = 0;
  };
  void SetUp() override { start({SERVES_PROFILES, rounds_, folder_.path(), "busy"}); }

  [[nodiscard]] Outcome pprof(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words{
        "env",   "HOME=" + folder_.path(), "PPROF_TMPDIR=" + folder_.path(), "go", "tool",
        "pprof", "-symbolize=none"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run(words);
  }
  [[nodiscard]] std::string url(const std::string& profile) const {
    return address() + "/debug/pprof/" + profile;
  }
  // Fetches a profile of the running program, and returns the path of the file.
  [[nodiscard]] std::string fetched(const std::string& profile) const {
    std::string file = folder_.path() + "/" + profile + ".pb.gz";
    const Outcome outcome = pprof({"-proto", "-output=" + file, url(profile)});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return file;
  }
  // The values that `go tool pprof -top` prints for the program's own functions and for all functions.
  [[nodiscard]] std::map<std::string, Values> top(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"-top", "-nodecount=100000", "-nodefraction=0"});
    const Outcome outcome = pprof(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::map<std::string, Values> functions;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string own;
      std::string total;
      std::string skipped;
      std::string name;
      words >> own >> skipped >> skipped >> total >> skipped >> name;
      const bool of_program = name.starts_with("main.") &&
                              name.find(".func") == std::string::npos && name != "main.main";
      if (of_program) functions[name] = {std::stod(own), std::stod(total)};
    }
    return functions;
  }
  // Expects the same values from kymo for these functions. Others, such as those of the server, change between two pulls.
  static void expect_same(const json& ours, const std::string& unit,
                          const std::map<std::string, Values>& go,
                          const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      ASSERT_TRUE(go.contains(name)) << name;
      const Values& values = go.at(name);
      // Go counts delays in CPU cycles, and measures how long a cycle is. So the results differ slightly.
      const double tolerance = unit == "ns" ? values.total / 100 + 1 : 0;
      const auto near = [&](const char* member, double wanted) {
        const std::int64_t got = value(ours, name, member + unit);
        EXPECT_NEAR(static_cast<double>(got), wanted, tolerance)
            << name << " " << member << "\n"
            << ours["profile"]["functions"].dump(1);
      };
      near("self_", values.own);
      near("total_", values.total);
    }
  }
};

TEST_F(GoToolPprofTest, EachKindIsWhatGoToolPprofFetchesItself) {
  const std::map<std::string, std::string> before{
      {"heap", fetched("heap")}, {"block", fetched("block")}, {"mutex", fetched("mutex")}};
  write_targets("app " + address() + "\n");
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(rounds(3));
  stop(kymod);
  const auto since = [&](const std::string& profile) { return "-base=" + before.at(profile); };
  expect_same(shown("app", "go-heap"), "bytes",
              top({"-sample_index=inuse_space", "-unit=B", url("heap")}), {"main.hold"});
  expect_same(shown("app", "go-goroutine"), "count",
              top({"-sample_index=goroutine", "-unit=count", url("goroutine")}), {"main.park"});
  // Compares what was added since kymod's first pull, because these counts begin with the program.
  expect_same(shown("app", "go-alloc"), "bytes",
              top({"-sample_index=alloc_space", "-unit=B", since("heap"), url("heap")}),
              {"main.drop", "main.wait", "main.contend"});
  expect_same(shown("app", "go-block"), "ns",
              top({"-sample_index=delay", "-unit=ns", since("block"), url("block")}),
              {"main.wait"});
  expect_same(shown("app", "go-mutex"), "ns",
              top({"-sample_index=delay", "-unit=ns", since("mutex"), url("mutex")}),
              {"main.contend"});
}

// Both take samples at different times, so their shares may differ by chance.
TEST_F(GoToolPprofTest, TheSharesOfCpuTimeAreThoseOfGoToolPprof) {
  write_targets("app " + address() + "\n");
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(rounds(4));
  stop(kymod);
  const json ours = shown("app", "go-cpu");
  constexpr double kPeriodNs = 10'000'000;  // Go takes a sample each 10 ms
  const auto go = top({"-sample_index=cpu", "-unit=ns", "-seconds=3", url("profile")});
  ASSERT_TRUE(go.contains("main.most") && go.contains("main.least"));
  const double most = go.at("main.most").total;
  const double all = most + go.at("main.least").total;
  const auto our_most = static_cast<double>(value(ours, "main.most", "total_ns"));
  const double our_all = our_most + static_cast<double>(value(ours, "main.least", "total_ns"));
  ASSERT_GT(our_all, 20 * kPeriodNs);
  ASSERT_GT(all, 20 * kPeriodNs);
  const double share = (most + our_most) / (all + our_all);
  const double deviation = std::sqrt(share * (1 - share) * (kPeriodNs / all + kPeriodNs / our_all));
  EXPECT_NEAR(our_most / our_all, most / all, 5 * deviation) << our_all << " " << all;
  EXPECT_NEAR(our_most / our_all, 0.75, 5 * deviation)
      << "the program spends three quarters of its time there";
}

// A list of pods in the format of Kubernetes.
TEST_F(PulledProfilesTest, PodsAreFoundByTheirAnnotations) {
  const json pod = {
      {"metadata",
       {{"name", "web-1"},
        {"namespace", "shop"},
        {"annotations",
         {{"coroot.com/profile-scrape", "true"}, {"coroot.com/profile-port", lines().at(0)}}}}},
      {"status", {{"podIP", "127.0.0.1"}}}};
  json other = pod;
  other["metadata"]["name"] = "other";
  other["metadata"]["annotations"]["coroot.com/profile-scrape"] = "false";
  write_targets(json{{"kind", "PodList"}, {"items", {pod, other}}}.dump());
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(rounds(2));
  stop(kymod);
  const Outcome usual = run({KYMO_PROGRAM, "profiles", "--directory", directory_});
  const std::size_t others = usual.out.find("other kinds in this time (--kind): ");
  ASSERT_NE(others, std::string::npos) << usual.out;
  EXPECT_NE(usual.out.find("go-heap", others), std::string::npos) << usual.out;
  const Outcome listed =
      run({KYMO_PROGRAM, "profiles", "--kind", "go-heap", "--directory", directory_, "--json"});
  const json services = json::parse(listed.out, nullptr, false)["services"];
  ASSERT_EQ(services.size(), 1U) << listed.out << listed.err;
  EXPECT_EQ(services[0]["service"], "pod:shop/web-1");
}

// One wrong pod must not keep kymod from pulling the others: the owner of a pod can write anything into its annotations.
TEST_F(PulledProfilesTest, TheApiOfKubernetesListsThePods) {
  const auto pod = [](const std::string& name, const std::string& port) {
    return json{{"metadata",
                 {{"name", name},
                  {"namespace", "shop"},
                  {"annotations",
                   {{"kymograph/profile-scrape", "true"}, {"kymograph/profile-port", port}}}}},
                {"status", {{"podIP", "127.0.0.1"}}}};
  };
  const json pods{{"kind", "PodList"}, {"items", {pod("bad", "x"), pod("web-1", lines().at(0))}}};
  std::ofstream(folder_.path() + "/pods.json") << pods.dump();
  const std::string token = folder_.path() + "/token";
  std::ofstream(token) << "wrong\n";
  // The process that pulls runs as nobody, and must be able to read the certificate.
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  const std::string api = "https://127.0.0.1:" + read_file(folder_.path() + "/api");
  Kymod kymod({"--profiles", directory_, "--profiles-only=job:none", "--profiles-pull", api,
               "--profiles-pull-token", token, "--profiles-pull-ca", folder_.path() + "/ca.pem",
               "--profiles-pull-every=2"});
  kymod.start();
  EXPECT_TRUE(kymod.logs(api + ": it answers with status 403")) << kymod.log();
  std::ofstream(token) << "secret\n";
  ASSERT_TRUE(rounds(2)) << kymod.log();
  EXPECT_TRUE(kymod.logs("the pod shop/bad is left out: its annotation profile-port is not a port"))
      << kymod.log();
  stop(kymod);
  const Outcome listed =
      run({KYMO_PROGRAM, "profiles", "--kind", "go-heap", "--directory", directory_, "--json"});
  const json services = json::parse(listed.out, nullptr, false)["services"];
  ASSERT_EQ(services.size(), 1U) << listed.out << listed.err;
  EXPECT_EQ(services[0]["service"], "pod:shop/web-1");
}

TEST_F(PulledProfilesTest, AnApiWhoseCertificateNobodySignedIsNotBelieved) {
  const std::string api = "https://127.0.0.1:" + read_file(folder_.path() + "/api");
  Kymod kymod({"--profiles", directory_, "--profiles-only=job:none", "--profiles-pull", api,
               "--profiles-pull-every=2"});
  kymod.start();
  EXPECT_TRUE(kymod.logs(api + ": its certificate is not signed by a trusted authority"))
      << kymod.log();
}

// None of these targets may keep kymod from pulling the others.
TEST_F(PulledProfilesTest, TargetsThatCannotBeBelievedAreSaidAndHarmNothing) {
  std::string text = "app " + address() + "\ngone http://127.0.0.1:1\n";
  for (const char* const name : {"redirect", "endless", "garbage"}) {
    text += std::string(name) + " " + address() + "/" + name + "\n";
  }
  write_targets(text);
  Kymod kymod(flags());
  kymod.start();
  // On a busy machine the time is over before 64 MiB have come.
  const std::map<std::string, std::vector<std::string>> reasons{
      {"gone", {"it takes no connection"}},
      {"redirect", {"it answers with status 302"}},
      {"endless", {"its answer is longer than 64 MiB", "it does not answer in time"}},
      {"garbage", {"its profile heap is no profile of pprof, or is damaged"}}};
  for (const auto& [name, any] : reasons) expect_said(kymod, name, any);
  ASSERT_TRUE(rounds(lines().size() + 1)) << "kymod must still pull the correct target";
  stop(kymod);
  EXPECT_EQ(value(shown("app", "go-goroutine"), "main.park", "total_count"), 7);
}

// Checks the process that sends the requests, because any user may run the program that it asks.
TEST_F(PulledProfilesTest, TheProcessThatAsksIsNobodyAndHasNoFiles) {
  write_targets("silent " + address() + "/silent\n");
  Kymod kymod(flags());
  kymod.start();
  pid_t asker = 0;
  const auto asks = [&] {
    const std::vector<pid_t> helpers = probe::children_of(kymod.pid()).value();
    for (const pid_t keeper : helpers) {
      const auto seen = probe::read_process(keeper);
      if (!seen || seen->name != "kymod-profiles") continue;
      // The nice value of this process, which the process that reads programs does not have.
      constexpr int kAskersNice = 19;
      const std::vector<pid_t> children = probe::children_of(keeper).value();
      for (const pid_t child : children) {
        if (getpriority(PRIO_PROCESS, static_cast<id_t>(child)) == kAskersNice) asker = child;
      }
      if (asker == 0) return false;
      // It gives up one right after the other.
      const std::string status = read_file("/proc/" + std::to_string(asker) + "/status");
      return status.find("Uid:\t65534\t65534\t65534\t65534") != std::string::npos &&
             status.find("CapPrm:\t0000000000000000\n") != std::string::npos &&
             status.find("NoNewPrivs:\t1\n") != std::string::npos;
    }
    return false;
  };
  ASSERT_TRUE(eventually(asks, kPatience));
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(asker)), 19);
  const std::string proc = "/proc/" + std::to_string(asker);
  const std::string status = read_file(proc + "/status");
  for (const char* const line : {"Groups:\t \n", "NoNewPrivs:\t1\n", "CapEff:\t0000000000000000\n",
                                 "CapPrm:\t0000000000000000\n"}) {
    EXPECT_NE(status.find(line), std::string::npos) << line << status;
  }
  for (const auto& entry : std::filesystem::directory_iterator(proc + "/fd")) {
    const std::string target = std::filesystem::read_symlink(entry.path());
    const bool own =
        target == "/dev/null" || target.starts_with("pipe:") || target.starts_with("socket:");
    EXPECT_TRUE(own) << entry.path() << " " << target;
  }
}

TEST_F(PulledProfilesTest, ATargetThatNeverAnswersHoldsNobodyUp) {
  write_targets("app " + address() + "\nsilent " + address() + "/silent\n");
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(rounds(2));
  expect_said(kymod, "silent", {"it does not answer in time"});
}

// Each pull is counted, also if the log does not mention it.
TEST_F(PulledProfilesTest, WhatWasPulledAndWhatFailedIsCounted) {
  write_targets("app " + address() + "\ngone http://127.0.0.1:1\nsilent " + address() +
                "/silent\n");
  Kymod kymod(flags());
  kymod.start();
  const auto counted = [&](const std::string& name) {
    const std::string text = "\nkymo_profile_" + name + "_total ";
    const std::string page = ask(kymod, "/metrics").text;
    const std::size_t at = page.find(text);
    return at == std::string::npos ? 0 : std::stod(page.substr(at + text.size()));
  };
  ASSERT_TRUE(eventually([&] { return counted("pulls_timed_out") >= 1; }, kPatience));
  ASSERT_TRUE(eventually([&] { return counted("pulled_bytes") > 1000; }, kPatience));
  EXPECT_GE(counted("pulls_failed"), 2)
      << "one target that does not exist, and one that does not answer";
  EXPECT_GT(counted("pulls"), counted("pulls_failed"));
  EXPECT_GT(counted("pulls_failed"), counted("pulls_timed_out"));
}

TEST_F(PulledProfilesTest, AnAnswerThatUnpacksToTooMuchIsRefused) {
  write_targets("bomb " + address() + "/bomb\n");
  Kymod kymod(flags());
  kymod.start();
  expect_said(kymod, "bomb", {"its profile heap is too large"});
}

TEST_F(PulledProfilesTest, AFileOfTargetsThatIsWrongIsSaid) {
  write_targets("app " + address() + "\nweb https://127.0.0.1:1\n");
  Kymod kymod(flags());
  kymod.start();
  EXPECT_TRUE(
      kymod.logs(targets_ + ", line 2: programs are asked by http:// only, not by https://"))
      << kymod.log();
  write_targets("app " + address() + "\n");
  ASSERT_TRUE(rounds(1)) << "kymod must read the file of targets again";
}

}  // namespace
}  // namespace kymo::test
