// Stack profiles of all programs that kymod takes all the time (kymod --profiles, kymo profiles).

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/lock.h"
#include "base/proc/process.h"
#include "base/spawn.h"
#include "keeper_watch.h"
#include "profiler/stacks/named_profile.h"
#include "programs.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class KeptProfilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to take stacks";
    fs::copy_file(FUNCTIONS_PROGRAM, program_);
  }

  void TearDown() override {
    if (busy_ > 0) ::kill(busy_, SIGKILL);  // its kymod has been stopped already
  }

  [[nodiscard]] std::vector<std::string> flags() const {
    // To find the names of all programs of a busy machine would take long, so only some services are
    // kept. The second one has the samples of the job that were not known to be of the job.
    return {"--profiles",
            directory_,
            "--profiles-rate=999",
            "--profiles-only=job:busy",
            "--profiles-only=process:" + process_,
            "--http-profiles"};
  }
  // Starts a job that uses a CPU in the function turn(), and waits until it has used kUsed seconds.
  void run_busy(const Kymod& kymod) {
    std::vector<std::string> words{"run",    "process", "--name",    "busy",     "--",
                                   program_, "work",    "/dev/null", "100000000"};
    busy_ = kymod.kymo_json(words)["pid"];
    EXPECT_TRUE(eventually([&] { return cpu_seconds(busy_) >= kUsed; }, std::chrono::seconds(120)))
        << busy_;
  }
  // The profile of a service, as kymo profiles shows it.
  [[nodiscard]] json shown(const std::string& service) const {
    const Outcome outcome =
        run({KYMO_PROGRAM, "profiles", service, "--directory", directory_, "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  // Expects that most of the time is in turn(), as the program itself reports.
  void expect_busy() const {
    const json busy = shown("busy");
    ASSERT_TRUE(busy.is_object()) << busy;
    EXPECT_EQ(busy["service"], "job:busy");
    EXPECT_GT(busy["profile"]["samples"], 50);  // about 500 samples are expected
    double share = 0;
    for (const json& function : busy["profile"]["functions"]) {
      const std::string name = function["function"];
      if (name.find("turn(") != std::string::npos) share = function["total_share"];
    }
    EXPECT_GT(share, 0.8) << busy["profile"]["functions"];
    std::uint64_t of_minutes = 0;
    for (const json& minute : busy["minutes"]) of_minutes += minute["samples"].get<std::uint64_t>();
    EXPECT_EQ(of_minutes, busy["profile"]["samples"]);
  }
  // The services that have samples of CPU time, and how many.
  [[nodiscard]] std::map<std::string, std::uint64_t> services() const {
    const Outcome outcome = run({KYMO_PROGRAM, "profiles", "--directory", directory_, "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const json list = json::parse(outcome.out, nullptr, false);
    std::map<std::string, std::uint64_t> samples;
    if (!list.is_object()) return samples;
    for (const json& one : list["services"]) {
      samples[one["service"].get<std::string>()] = one["samples"].get<std::uint64_t>();
    }
    return samples;
  }
  // Stops kymod, and waits until no process of it writes profiles any more. Returns its exit code.
  static int stop(Kymod& kymod, int signal = SIGTERM) {
    KeeperWatch keeper(kymod.pid());
    const int code = kymod.stop(signal);
    EXPECT_TRUE(keeper.ended());
    return code;
  }
  // Why profiles are not kept, as kymo status says it. Empty if it does not say that.
  static std::string why_not_kept(const Kymod& kymod) {
    const Outcome status = kymod.kymo({"status"});
    EXPECT_NE(status.out, "") << status.err;
    const std::string begin = "stack profiles are not kept: ";
    const std::size_t at = status.out.find(begin);
    if (at == std::string::npos) return {};
    EXPECT_EQ(status.exit_code, 1) << status.err;
    EXPECT_NE(status.out.find("NOT GOOD"), std::string::npos) << status.out;
    const std::size_t from = at + begin.size();
    return status.out.substr(from, status.out.find('\n', from) - from);
  }
  static bool counted_as_not_kept(const Kymod& kymod) {
    return ask(kymod, "/metrics").text.find("\nkymo_profiles_not_kept 1") != std::string::npos;
  }
  static double cpu_seconds(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 2)));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    double user = 0;
    fields >> user;
    return user / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

  TemporaryDirectory folder_;
  static constexpr double kUsed = 0.5;  // seconds of CPU time
  std::string directory_ = folder_.path() + "/profiles";
  // The name of the busy process. No other test may have it, because kymod sees all processes of the machine.
  const std::string process_ = "busy-" + std::to_string(::getpid());
  const std::string program_ = folder_.path() + "/" + process_;
  pid_t busy_ = 0;
};

class KeptOnAMoodyDiskTest : public KeptProfilesTest {
 protected:
  void SetUp() override {
    KeptProfilesTest::SetUp();
    ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here";
    directory_ = disk_.path() + "/profiles";
  }
  const MoodyDisk disk_{folder_};
};

TEST_F(KeptProfilesTest, WhatRanIsFoundByItsJob) {
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(kymod.logs("stack profiles are kept in " + directory_)) << kymod.log();
  run_busy(kymod);
  EXPECT_EQ(stop(kymod), 0);
  EXPECT_EQ(kymod.log().find("minute is not written"), std::string::npos) << kymod.log();
  expect_busy();
  EXPECT_EQ(fs::status(directory_ + "/profiles.db").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  const std::string file = folder_.path() + "/busy.pb.gz";
  const Outcome written =
      run({KYMO_PROGRAM, "profiles", "job:busy", "--directory", directory_, "-o", file});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  const auto profile = stacks::read_pprof(read_file(file), file);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->sum().samples, shown("busy")["profile"]["samples"]);
  EXPECT_EQ(profile->period_ns, 1'000'000'000U / 999);
}

TEST_F(KeptProfilesTest, AKymodThatIsKilledLosesNoMinute) {
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(kymod.logs("stack profiles are kept in"));
  run_busy(kymod);
  EXPECT_EQ(stop(kymod, SIGKILL), -1);
  const Outcome all = run({KYMO_PROGRAM, "profiles", "--all", "--directory", directory_});
  EXPECT_NE(all.out.find("turn("), std::string::npos) << all.out << all.err;
  kymod.start();
  const json list = kymod.kymo_json({"profiles"});
  EXPECT_EQ(list["type"], "cpu");
  EXPECT_GE(list["kept"]["minutes"], 1);
  const std::string from = list["kept"]["oldest_unix_ns"].dump();
  const std::string query = "?from_unix_ns=" + from + "&to_unix_ns=" + std::to_string(unix_ns());
  const Answer page = ask(kymod, "/api/profile" + query);
  EXPECT_EQ(page.status, 200) << page.text;
  EXPECT_NE(page.text.find("turn("), std::string::npos) << page.text;
}

// Its samples were of the service of its process until the list of jobs changed.
TEST_F(KeptProfilesTest, AJobThatRunsWhenKymodStartsHasItsNameFromTheFirstSample) {
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(kymod.logs("stack profiles are kept in")) << kymod.log();
  run_busy(kymod);
  EXPECT_EQ(stop(kymod), 0);
  fs::remove_all(directory_);
  kymod.start();
  ASSERT_TRUE(kymod.logs("stack profiles are kept in")) << kymod.log();
  const double before = cpu_seconds(busy_);
  EXPECT_TRUE(
      eventually([&] { return cpu_seconds(busy_) >= before + kUsed; }, std::chrono::seconds(120)));
  EXPECT_EQ(stop(kymod), 0);
  expect_busy();
  EXPECT_EQ(services().count("process:" + process_), 0U);
}

// A kymod that was started again could keep no profiles as long as the keeper of the killed one wrote. A kymod that is
// killed may not have said yet that the job runs, so the samples may be of its process.
TEST_F(KeptOnAMoodyDiskTest, AKilledKymodLeavesTheFolderFreeWhileItsKeeperStillWrites) {
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(kymod.logs("stack profiles are kept in")) << kymod.log();
  run_busy(kymod);
  const FileDescriptor folder(::open(directory_.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(lock_within(folder.get(), std::chrono::milliseconds(0)), EWOULDBLOCK);
  KeeperWatch keeper(kymod.pid());
  disk_.be("stalls");
  EXPECT_EQ(kymod.stop(SIGKILL), -1);
  EXPECT_EQ(lock_within(folder.get(), std::chrono::seconds(60)), 0);
  disk_.be("well");
  EXPECT_TRUE(keeper.ended());
  std::uint64_t samples = 0;
  for (const auto& [service, count] : services()) samples += count;
  EXPECT_GT(samples, 50U);
}

TEST_F(KeptProfilesTest, OnlyWhatWasAskedForIsKeptAndAlsoWaits) {
  std::vector<std::string> all = flags();
  all.emplace_back("--profiles-off-cpu");
  Kymod kymod(all);
  kymod.start();
  ASSERT_TRUE(kymod.logs("stack profiles are kept in"));
  run_busy(kymod);
  EXPECT_EQ(stop(kymod), 0);
  expect_busy();
  for (const auto& [service, count] : services()) {
    EXPECT_TRUE(service == "job:busy" || service == "process:" + process_) << service;
  }
  const Outcome waits =
      run({KYMO_PROGRAM, "profiles", "busy", "--off-cpu", "--directory", directory_, "--json"});
  EXPECT_EQ(waits.exit_code, 0) << waits.err;  // the first thread waits for the others
  EXPECT_EQ(json::parse(waits.out)["profile"]["kind"], "wait");
}

// A cgroup that exists as long as this object. Its processes must have ended before.
class Cgroup {
 public:
  Cgroup() {
    for (const char* root : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
      const std::string path = std::string(root) + "/kymo-kept-" + std::to_string(::getpid());
      if (!fs::exists(std::string(root) + "/cgroup.procs") || ::mkdir(path.c_str(), 0755) != 0) {
        continue;
      }
      path_ = path;
      return;
    }
  }
  ~Cgroup() {
    if (path_.empty()) return;
    EXPECT_TRUE(eventually([&] { return ::rmdir(path_.c_str()) == 0; }));
  }
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_F(KeptProfilesTest, AllOfACgroupIsKeptAndNothingElse) {
  const Cgroup cgroup;
  if (cgroup.path().empty()) GTEST_SKIP() << "no cgroup can be made here";
  Kymod kymod(
      {"--profiles", directory_, "--profiles-rate=999", "--profiles-only=cgroup:" + cgroup.path()});
  kymod.start();
  ASSERT_TRUE(kymod.logs("stack profiles are kept in")) << kymod.log();
  const std::string command = "echo $$ > " + cgroup.path() + "/cgroup.procs; exec " + program_ +
                              " work /dev/null 100000000";
  const Result<pid_t> pid = spawn({.file = "/bin/sh", .words = {"sh", "-c", command}});
  ASSERT_TRUE(pid) << pid.error().message;
  EXPECT_TRUE(eventually([&] { return cpu_seconds(*pid) >= kUsed; }, std::chrono::seconds(120)));
  EXPECT_EQ(stop(kymod), 0);
  ::kill(*pid, SIGKILL);
  ::waitpid(*pid, nullptr, 0);
  std::map<std::string, std::uint64_t> kept = services();
  EXPECT_GT(kept["process:" + process_], 50U);
  kept.erase("process:" + process_);
  kept.erase("process:sh");
  EXPECT_TRUE(kept.empty()) << kept.begin()->first;
}

// The command of a container whose shell uses a CPU.
std::vector<std::string> busy_container_shell() {
  return {"/bin/busybox", "sh", "-c", "while :; do :; done"};
}

// Keeps the profiles of two containers, by the names that their runtime gives them. One of them does
// not exist.
class KeptContainerTest : public KeptProfilesTest {
 protected:
  // `run_words` are the words with which kymo starts the container as this job.
  void expect_kept_by_name(const std::string& runtime, const std::string& name,
                           const std::string& job, const std::vector<std::string>& run_words,
                           const std::vector<std::string>& kymod_flags = {}) {
    std::vector<std::string> all{"--profiles", directory_, "--profiles-rate=999",
                                 "--profiles-only=" + runtime + ":" + name,
                                 "--profiles-only=" + runtime + ":kymo-none"};
    all.insert(all.end(), kymod_flags.begin(), kymod_flags.end());
    Kymod kymod(all);
    kymod.start();
    ASSERT_TRUE(kymod.logs("stack profiles are kept in")) << kymod.log();
    EXPECT_TRUE(kymod.logs("stack profiles of " + runtime + ":kymo-none: none are kept now: "))
        << kymod.log();
    const pid_t pid = kymod.kymo_json(run_words)["pid"];
    // kymod looks for the container every ten seconds.
    const std::string found =
        "stack profiles of " + runtime + ":" + name + ": those of its cgroup ";
    EXPECT_TRUE(eventually([&] { return kymod.log().find(found) != std::string::npos; },
                           std::chrono::seconds(120)))
        << kymod.log();
    const double before = cpu_seconds(pid);
    // The keeper gets the cgroup within a second, so most of this CPU time is after that.
    EXPECT_TRUE(eventually([&] { return cpu_seconds(pid) >= before + 5 * kUsed; },
                           std::chrono::seconds(120)));
    EXPECT_EQ(stop(kymod), 0);
    std::map<std::string, std::uint64_t> kept = services();
    EXPECT_GT(kept["job:" + job], 50U);
    kept.erase("job:" + job);
    EXPECT_TRUE(kept.empty()) << kept.begin()->first;
  }

  // The id of a container is the name of its cgroup: another container on this machine must not have it.
  const std::string id_ = "kymo-" + process_;
};

TEST_F(KeptContainerTest, StacksOfARuncContainerAreKept) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = make_bundle(runc.folder(), "bundle", busy_container_shell());
  expect_kept_by_name("runc", id_, "kymo-kept",
                      {"run", "runc", "--bundle", bundle, "--id", id_, "--name", "kymo-kept"},
                      {"--runc-root", runc.path()});
}

TEST_F(KeptContainerTest, StacksOfAPodmanContainerAreKept) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  std::vector<std::string> words{"run", "podman", "--name", "kymo-e2e", "--"};
  for (const std::string& word : podman.arguments("kymo-e2e", busy_container_shell()))
    words.push_back(word);
  expect_kept_by_name("podman", "kymo-e2e", "kymo-e2e", words,
                      {"--podman-flags=" + PodmanContainers::flags()});
}

TEST_F(KeptContainerTest, StacksOfADockerContainerAreKept) {
  KYMO_NEEDS_DOCKER();
  const Docker docker(fs::path(criu_path()).parent_path());
  std::vector<std::string> words{"run", "docker", "--name", "kymo-kept", "--"};
  for (const std::string& word : Docker::arguments(busy_container_shell())) words.push_back(word);
  expect_kept_by_name("docker", "kymo-kept", "kymo-kept", words);
}

TEST_F(KeptContainerTest, StacksOfAContainerdContainerAreKept) {
  KYMO_NEEDS_CONTAINERD();
  const Containerd containerd(fs::path(criu_path()).parent_path());
  std::vector<std::string> words{"run", "containerd", "--name", id_, "--", Containerd::image()};
  for (const std::string& word : busy_container_shell()) words.push_back(word);
  expect_kept_by_name("containerd", id_, id_, words);
}

// A user who may run a program determines the content of the files that the keeper's child reads.
TEST_F(KeptProfilesTest, WhoReadsProgramsHasNoRightsAndCannotAnswerForTheKeeper) {
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(kymod.logs("stack profiles are kept in"));
  const pid_t keeper = keeper_of(kymod.pid());
  const auto has_reader = [&] { return !probe::children_of(keeper).value().empty(); };
  ASSERT_TRUE(eventually(has_reader));
  const pid_t reader = probe::children_of(keeper).value().front();
  const std::string status = read_file("/proc/" + std::to_string(reader) + "/status");
  EXPECT_NE(status.find("\nUid:\t65534\t65534\t65534\t0\n"), std::string::npos) << status;
  EXPECT_NE(status.find("\nSeccomp:\t2\n"), std::string::npos) << status;
  for (const pid_t pid : {keeper, reader}) {
    EXPECT_EQ(fs::read_symlink("/proc/" + std::to_string(pid) + "/fd/1"), "/dev/null");
  }
  const fs::directory_iterator keepers("/proc/" + std::to_string(keeper) + "/fd");
  std::set<std::string> pipes;
  for (const auto& entry : keepers) {
    const std::string target = fs::read_symlink(entry.path());
    if (target.starts_with("pipe:")) pipes.insert(target);
  }
  EXPECT_GE(pipes.size(), 2U) << "a pipe for orders and one for answers";
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(reader) + "/fd")) {
    EXPECT_FALSE(pipes.contains(fs::read_symlink(entry.path()))) << entry.path();
  }
}

TEST_F(KeptProfilesTest, AKeeperThatIsKilledIsStartedAgain) {
  Kymod kymod(flags());
  kymod.start();
  pid_t first = 0;
  ASSERT_TRUE(eventually([&] { return (first = keeper_of(kymod.pid())) != 0; }));
  ASSERT_TRUE(kymod.logs("stack profiles are kept in"));
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_TRUE(kymod.logs("the process that takes them was ended by signal 9")) << kymod.log();
  EXPECT_TRUE(eventually([&] {
    const pid_t now = keeper_of(kymod.pid());
    return now != 0 && now != first;
  })) << kymod.log();
}

TEST_F(KeptProfilesTest, TwoOnOneFolderSayItOnceAndServe) {
  Kymod first(flags());
  first.start();
  ASSERT_TRUE(first.logs("stack profiles are kept in"));
  Kymod second(flags());
  second.start();
  const std::string why = directory_ + " is used by another kymod";
  EXPECT_TRUE(second.logs(why)) << second.log();
  EXPECT_NE(why_not_kept(second).find(why), std::string::npos);
  EXPECT_TRUE(counted_as_not_kept(second));
  EXPECT_EQ(why_not_kept(first), "");
  EXPECT_FALSE(counted_as_not_kept(first));
  EXPECT_EQ(second.kymo({"ps"}).exit_code, 0);
}

TEST_F(KeptProfilesTest, WithoutTheRightToUseBpfAllElseGoesOn) {
  Kymod kymod(flags(), {WITHOUT_BPF_PROGRAM});
  kymod.start();
  // --inside needs the same right, and logs that earlier.
  const std::string missing = "CAP_BPF and CAP_PERFMON";
  EXPECT_TRUE(eventually([&] { return why_not_kept(kymod).find(missing) != std::string::npos; }));
  EXPECT_TRUE(kymod.logs("stack profiles (--profiles): " + why_not_kept(kymod))) << kymod.log();
  EXPECT_EQ(kymod.kymo({"ps"}).exit_code, 0);
}

TEST_F(KeptProfilesTest, AFullDiskIsSaidAndCounted) {
  fs::create_directory(directory_);
  ASSERT_EQ(::mount("kymo", directory_.c_str(), "tmpfs", 0, "size=160k,mode=0700"), 0);
  Kymod kymod(flags());
  kymod.start();
  EXPECT_TRUE(kymod.logs("stack profiles are kept in")) << kymod.log();
  std::ofstream(directory_ + "/filler") << std::string(1 << 20, 'x');
  run_busy(kymod);
  EXPECT_EQ(kymod.stop(SIGTERM), 0);
  EXPECT_TRUE(kymod.logs("a minute is not written: cannot ")) << kymod.log();
  EXPECT_EQ(::umount(directory_.c_str()), 0);
}

// Requests of the page that read profiles wait for the stalled disk. No other request may wait for
// them.
TEST_F(KeptOnAMoodyDiskTest, AStalledDiskHoldsUpOnlyThoseWhoReadProfiles) {
  Kymod kymod(flags());
  kymod.start();
  ASSERT_TRUE(kymod.logs("stack profiles are kept in")) << kymod.log();
  const std::string query = "/api/profiles?from_unix_ns=0&to_unix_ns=" + std::to_string(unix_ns());
  disk_.be("stalls");
  std::atomic<int> refused = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 12; ++i) {
    readers.emplace_back([&] { refused += ask(kymod, query).status == 503 ? 1 : 0; });
  }
  EXPECT_TRUE(eventually([&] { return refused >= 4; }))
      << "at most two requests read and six wait, the others are refused";
  EXPECT_EQ(ask(kymod, "/api/jobs").status, 200);
  disk_.be("well");
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(kymod.stop(SIGTERM), 0);
}

// kymod must go on serving, and must log that the disk stalls. When the disk answers again, the minute
// must be written.
TEST_F(KeptOnAMoodyDiskTest, AStalledDiskHoldsNobodyUpAndLosesNothing) {
  Kymod kymod(flags());
  disk_.be("stalls");
  kymod.start();
  EXPECT_TRUE(kymod.logs("they are not taken yet: the disk of")) << kymod.log();
  EXPECT_NE(why_not_kept(kymod).find("they are not taken yet: the disk of"), std::string::npos);
  EXPECT_EQ(kymod.kymo({"ps"}).exit_code, 0);
  disk_.be("well");
  ASSERT_TRUE(kymod.logs("stack profiles are kept in")) << kymod.log();
  EXPECT_EQ(why_not_kept(kymod), "");
  run_busy(kymod);
  disk_.be("stalls");
  std::thread answers([&] {
    EXPECT_TRUE(kymod.logs("stopping: SIGTERM"));
    disk_.be("well");
  });
  EXPECT_EQ(stop(kymod), 0);
  answers.join();
  expect_busy();
}

TEST_F(KeptProfilesTest, AnotherDatabaseIsLeftAlone) {
  fs::create_directory(directory_);
  fs::permissions(directory_, fs::perms::owner_all);
  static_cast<void>(folder_.file("profiles/profiles.db", std::string(5000, 'x')));
  Kymod kymod(flags());
  kymod.start();
  EXPECT_TRUE(kymod.logs("file is not a database")) << kymod.log();
  EXPECT_EQ(read_file(directory_ + "/profiles.db"), std::string(5000, 'x'));
  EXPECT_EQ(kymod.kymo({"ps"}).exit_code, 0);
  EXPECT_EQ(kymod.kymo({"profiles"}).exit_code, 1);
}

}  // namespace
}  // namespace kymo::test
