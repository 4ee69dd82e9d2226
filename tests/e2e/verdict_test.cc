// The tests make a dump or restore slow for a known reason. The verdict must name this reason first.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include "base/proc/process.h"
#include "base/spawn.h"
#include "loop_disk.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/containers.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

// The rules that found something, in the order of the verdict.
std::vector<std::string> rules_in(const nlohmann::json& verdict) {
  std::vector<std::string> rules;
  for (const auto& finding : verdict["findings"]) rules.push_back(finding["rule"]);
  return rules;
}

// What the test prints if it fails: the lines, the findings and the phases.
std::string shown(const nlohmann::json& record) {
  nlohmann::json phases;
  for (const auto& phase : record["phases"]) {
    phases.push_back(
        {phase["name"], (phase["end_ns"].get<double>() - phase["begin_ns"].get<double>()) / 1e6});
  }
  return record["verdict"].dump(1) + phases.dump() + record.value("stats", nlohmann::json()).dump();
}

// Programs that read files again and again in a cgroup that has too little memory to keep them.
class Thrashers {
 public:
  explicit Thrashers(const TemporaryDirectory& folder)
      : cgroup_("/sys/fs/cgroup/memory/kymo-verdict-" + std::to_string(::getpid())) {
    std::error_code error;
    made_ = fs::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes") &&
            fs::create_directory(cgroup_, error);
    limited_ = made_ && static_cast<bool>(std::ofstream(cgroup_ + "/memory.limit_in_bytes")
                                          << (16 << 20) << std::flush);
    for (int i = 0; limited_ && i < 3; ++i) {
      const Result<pid_t> pid =
          spawn({.file = "sh",
                 .words = {"sh", "-c",
                           "echo $$ >\"$0/cgroup.procs\" && exec 2>/dev/null && "
                           "dd if=/dev/zero of=\"$1\" bs=1M count=64 conv=fsync && "
                           "while :; do dd if=\"$1\" of=/dev/null bs=1M; done",
                           cgroup_, folder.path() + "/read-" + std::to_string(i)}});
      if (pid) programs_.push_back(*pid);
    }
  }
  ~Thrashers() {
    for (const pid_t pid : programs_) ::kill(pid, SIGKILL);
    for (const pid_t pid : programs_) ::waitpid(pid, nullptr, 0);
    if (!made_) return;
    // A cgroup cannot be removed before all its processes have ended.
    EXPECT_TRUE(eventually([&] {
      std::ifstream members(cgroup_ + "/cgroup.procs");
      for (pid_t pid = 0; members >> pid;) ::kill(pid, SIGKILL);
      return ::rmdir(cgroup_.c_str()) == 0;
    }));
  }
  Thrashers(const Thrashers&) = delete;
  Thrashers& operator=(const Thrashers&) = delete;
  [[nodiscard]] bool work() const { return limited_ && !programs_.empty(); }
  // How long some program of the machine has waited for memory, in microseconds. Nothing if the
  // kernel does not count it.
  static std::optional<std::uint64_t> waited_us() {
    constexpr std::string_view kTotal = "total=";
    const std::string text = read_file("/proc/pressure/memory");
    const std::size_t at = text.find(kTotal);
    if (at == std::string::npos) return {};
    return std::strtoull(text.c_str() + at + kTotal.size(), nullptr, 10);
  }

 private:
  std::string cgroup_;
  bool made_ = false;
  bool limited_ = false;
  std::vector<pid_t> programs_;
};

class VerdictTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    // Other tests run at the same time, and the CPU time that they take would be a cause, too.
    ::setpriority(PRIO_PROCESS, 0, -20);
    kymod_.start();
  }
  void TearDown() override {
    disk_.reset();
    ::setpriority(PRIO_PROCESS, 0, 0);
    for (const pid_t pid : busy_) ::kill(pid, SIGKILL);
    for (const pid_t pid : busy_) ::waitpid(pid, nullptr, 0);
  }
  // Starts a program as the job "work", and waits until it is ready. Returns the file with its output.
  std::string start(const std::vector<std::string>& words) {
    std::vector<std::string> command{"run", "process", "--name", "work", "--"};
    command.insert(command.end(), words.begin(), words.end());
    const std::string out = kymod_.kymo_json(command).value("stdout_path", "");
    EXPECT_TRUE(eventually([&] { return !read_file(out).empty(); })) << out;
    return out;
  }
  void start_shape(std::vector<std::string> words) {
    words.insert(words.begin(), {"python3", SHAPE_PROGRAM});
    static_cast<void>(start(words));
  }
  // Dumps the job "work". Returns its checkpoint.json.
  nlohmann::json dump(const std::vector<std::string>& more = {}) {
    std::vector<std::string> command{"dump", "process", "work"};
    command.insert(command.end(), more.begin(), more.end());
    directory_ = kymod_.kymo_json(std::move(command)).value("directory", "");
    return nlohmann::json::parse(read_file(directory_ + "/checkpoint.json"), nullptr, false);
  }
  // Restores the job. Returns what the metadata of the recording says about it.
  nlohmann::json restore() {
    const nlohmann::json reply = kymod_.kymo_json({"restore", "process", directory_});
    return ended_metadata(reply["recording"])["about"];
  }
  // The verdict may also name what other programs do to CPUs, disks and memory. The test ignores these
  // rules.
  static void expect_first(const nlohmann::json& record, const std::string& rule) {
    std::vector<std::string> rules = rules_in(record["verdict"]);
    for (const char* const of_others : {"cpu-wait", "steal", "disk-wait", "dirty-throttled", "swap",
                                        "memory-pressure", "cross-cpu", "host-memory"}) {
      if (rule != of_others) std::erase(rules, of_others);
    }
    ASSERT_FALSE(rules.empty()) << shown(record);
    EXPECT_EQ(rules.front(), rule) << shown(record);
  }
  void keep_cpus_busy(unsigned loops) {
    for (unsigned i = 0; i < loops; ++i) {
      const Result<pid_t> pid = spawn({.file = "sh", .words = {"sh", "-c", "while :; do :; done"}});
      ASSERT_TRUE(pid.ok());
      busy_.push_back(*pid);
    }
  }

  Kymod kymod_;
  std::optional<LoopDisk> disk_;  // for the images
  std::string directory_;
  std::vector<pid_t> busy_;
};

TEST_F(VerdictTest, BusyLoopsOnAllCpusLeaveCriuWaitingForOne) {
  static_cast<void>(kymod_.churn(128, "work"));
  keep_cpus_busy(6 * std::max(1U, std::thread::hardware_concurrency()));
  expect_first(dump(), "cpu-wait");
}

// "finish" took 11 ms in the reply and 5 ms in the record.
TEST_F(VerdictTest, TheReplyAndTheRecordTellTheSamePhases) {
  static_cast<void>(kymod_.churn(8, "work"));
  const nlohmann::json reply = kymod_.kymo_json({"dump", "process", "work"});
  const nlohmann::json record = nlohmann::json::parse(
      read_file(reply["directory"].get<std::string>() + "/checkpoint.json"), nullptr, false);
  nlohmann::json phases = reply["phases"];
  ASSERT_GT(phases.size(), 1U) << reply;
  EXPECT_EQ(phases.back()["name"], "save the record");
  EXPECT_EQ(phases.back()["end_ns"], reply["duration_ns"]);
  phases.erase(phases.size() - 1);
  EXPECT_EQ(phases, record["phases"]);
  EXPECT_EQ(phases.back()["end_ns"], record["duration_ns"]);
  EXPECT_EQ(record["verdict"]["duration_ns"], record["duration_ns"]);
}

TEST_F(VerdictTest, ADiskThatWritesAtOnceLeavesCriuWaitingForIt) {
  const LoopDisk& disk = disk_.emplace(kymod_.folder(), ",sync");
  if (!disk.mounted()) GTEST_SKIP() << "no loop device here";
  static_cast<void>(kymod_.churn(64, "work"));
  const nlohmann::json record = dump({"--dir", disk.path() + "/one"});
  // The kernel may also delay CRIU because of dirty pages of the file below the loop device.
  const std::vector<std::string> rules = rules_in(record["verdict"]);
  const bool throttled = std::find(rules.begin(), rules.end(), "dirty-throttled") != rules.end();
  expect_first(record, throttled ? "dirty-throttled" : "disk-wait");
}

TEST_F(VerdictTest, DirtyPagesThatMustBeWrittenFirstAreToldFromASlowDisk) {
  const LoopDisk& disk = disk_.emplace(kymod_.folder(), "");
  if (!disk.mounted() || !disk.bound_dirty_pages()) GTEST_SKIP() << "no such loop device here";
  static_cast<void>(kymod_.churn(32, "work"));
  // CRIU writes the images itself: of kymod's writing it is not known what it waits for.
  expect_first(dump({"--dir", disk.path() + "/one", "--no-stream"}), "dirty-throttled");
}

TEST_F(VerdictTest, HighCompressionLeavesCriuWaitingForIt) {
  static_cast<void>(kymod_.churn(8, "work"));
  const nlohmann::json record =
      dump({"--stream", "--compression", "zstd", "--compression-level", "15"});
  expect_first(record, "compression");
  // kymo diff and kymo history compare these.
  const nlohmann::json& shares = record["verdict"]["shares"];
  EXPECT_GE(shares.value("compression", 0.0), 0.5) << shown(record);
  EXPECT_TRUE(shares.contains("kymod_disk_wait")) << shown(record);
}

// Nearly all of a dump at this level was called "freeze", because the log has no line after it.
TEST_F(VerdictTest, AtLogLevel1TheFreezeIsAsLongAsCriuSays) {
  start_shape({"mappings", "15000", "1"});
  const nlohmann::json record = dump({"--log-level", "1"});
  std::map<std::string, std::uint64_t> phases;
  for (const nlohmann::json& phase : record["phases"]) {
    phases[phase["name"]] +=
        phase["end_ns"].get<std::uint64_t>() - phase["begin_ns"].get<std::uint64_t>();
  }
  const std::uint64_t us = record["stats"]["freezing_time_us"];
  EXPECT_EQ(phases["freeze"], us * 1000) << shown(record);
  EXPECT_GT(phases["collect, processes and files"], 0U) << shown(record);
  EXPECT_GT(phases["memory: finding pages"], 0U) << shown(record);
  const std::string evidence = record["verdict"].dump();
  EXPECT_NE(evidence.find(" mappings, and CRIU read each of them: this took "), std::string::npos)
      << shown(record);
}

TEST_F(VerdictTest, ManyMappingsAreNamed) {
  start_shape({"mappings", "15000", "1"});
  expect_first(dump(), "many-mappings");
  // The same result must come from the images alone, without kymod's record.
  fs::remove(directory_ + "/checkpoint.json");
  const Outcome explained = kymod_.kymo({"explain", directory_});
  EXPECT_NE(explained.out.find(" mappings, and CRIU read and logged each"), std::string::npos)
      << explained.out << explained.err;
}

TEST_F(VerdictTest, ScatteredMemoryIsNamed) {
  start_shape({"scattered", "64", "1"});
  const nlohmann::json record = dump();
  // Pieces cost 1.05 us at most. Where copying takes so long that this is below the threshold, they are not the reason.
  constexpr double kPiecesUs = 1.05 * 16'384;
  const double stood_still_us = record["verdict"]["frozen_ns"].get<double>() / 1e3;
  if (kPiecesUs > 0.12 * stood_still_us) {
    expect_first(record, "scattered-memory");
  } else if (kPiecesUs < 0.08 * stood_still_us) {
    EXPECT_EQ(record["verdict"].dump().find("scattered-memory"), std::string::npos)
        << shown(record);
  }
}

// It was counted as "collect", without a rate.
TEST_F(VerdictTest, SharedMemoryIsAPhaseOfMemory) {
  start_shape({"shared", "64"});
  const nlohmann::json record = dump();
  EXPECT_GE(record["stats"]["shpages_written"], 64 * 256) << shown(record);
  std::uint64_t memory_ns = 0;
  for (const nlohmann::json& phase : record["phases"]) {
    if (phase["name"] != "memory: shared memory") continue;
    memory_ns += phase["end_ns"].get<std::uint64_t>() - phase["begin_ns"].get<std::uint64_t>();
    EXPECT_TRUE(phase["frozen"]) << shown(record);
  }
  EXPECT_GT(memory_ns, 0U) << shown(record);
}

TEST_F(VerdictTest, ManyFilesAreNamed) {
  start_shape({"files", "3600"});
  expect_first(dump(), "many-files");
}

// The threads were called mappings, of which there are more. And kymod looked at all of them so often that it took the CPUs
// from CRIU, and named other programs for that.
TEST_F(VerdictTest, ManyThreadsAreNamedAndCostNoMoreLooks) {
  start_shape({"threads", "1000"});
  const nlohmann::json record = dump();
  expect_first(record, "many-threads");
  const auto looks_share = [](const nlohmann::json& about) {
    return about["inside"]["cpu_ns"].get<double>() / about["phases"].back()["end_ns"].get<double>();
  };
  constexpr double kTwiceWhatIsAllowed = 0.05;
  const nlohmann::json dumped = ended_metadata(directory_ + "/recordings/dump.tsv")["about"];
  EXPECT_LT(looks_share(dumped), kTwiceWhatIsAllowed) << dumped["inside"];
  const nlohmann::json restored = restore();
  EXPECT_LT(looks_share(restored), kTwiceWhatIsAllowed) << restored["inside"];
}

TEST_F(VerdictTest, AThreadInUninterruptibleSleepMakesFreezingSlow) {
  const std::string out = start({TASKS_PROGRAM, "sleeper"});
  const std::size_t slept = read_file(out).size();
  ASSERT_TRUE(eventually([&] { return read_file(out).size() > slept; }))
      << "the program must fall asleep again";
  const nlohmann::json record = dump();
  expect_first(record, "slow-freeze");
  EXPECT_NE(record["verdict"]["findings"][0]["evidence"].get<std::string>().find("state D"),
            std::string::npos)
      << shown(record);
}

TEST_F(VerdictTest, ADaemonThatIsStoppedAnswersLate) {
  const nlohmann::json job = kymod_.churn(64, "work");
  const auto pid = job["pid"].get<pid_t>();
  std::thread stopper([&] {
    // When the target is stopped, kymod is stopped too, until CRIU must have reached a notification.
    const bool frozen = eventually([&] {
      const Result<probe::Process> seen = probe::read_process(pid);
      return seen && seen->state == 't';
    });
    if (!frozen) return;
    ::kill(kymod_.pid(), SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    ::kill(kymod_.pid(), SIGCONT);
  });
  const nlohmann::json record = dump();
  stopper.join();
  expect_first(record, "late-answers");
}

TEST_F(VerdictTest, ManyProcessesAreCreatedSlowly) {
  static_cast<void>(start({TASKS_PROGRAM, "children", "64"}));
  const auto tree = probe::process_tree(kymod_.job("work")["pid"].get<pid_t>());
  ASSERT_EQ(tree.size(), 65U);
  static_cast<void>(dump());
  // Their pids are free only when somebody has reaped them, and the restore would wait for that.
  ASSERT_TRUE(eventually([&] {
    return std::all_of(tree.begin(), tree.end(),
                       [](pid_t pid) { return !probe::read_process(pid); });
  }));
  expect_first(restore(), "many-processes");
}

// Further causes.
class MoreVerdictTest : public VerdictTest {
 protected:
  static void pin(pid_t process, int cpu) {
    const Outcome pinned = run({"taskset", "--all-tasks", "--cpu-list", "--pid",
                                std::to_string(cpu), std::to_string(process)});
    ASSERT_EQ(pinned.exit_code, 0) << pinned.err;
  }
  static std::uint64_t phase_ns(const nlohmann::json& about, const std::string& name) {
    std::uint64_t sum = 0;
    for (const auto& phase : about["phases"]) {
      if (phase["name"] != name) continue;
      sum += phase["end_ns"].get<std::uint64_t>() - phase["begin_ns"].get<std::uint64_t>();
    }
    return sum;
  }
};

TEST_F(MoreVerdictTest, AScriptOfCriuAloneIsNamedFromItsImagesAndLog) {
  const nlohmann::json job = kymod_.churn(8, "work");
  const std::string images = kymod_.folder().folder("images");
  const std::string script = kymod_.path("script");
  std::ofstream(script) << "#!/bin/sh\n[ \"$CRTOOLS_SCRIPT_ACTION\" != post-dump ] || sleep 2\n";
  fs::permissions(script, fs::perms::owner_all);
  const Outcome dumped =
      run({criu_path(), "dump", "--tree", job["pid"].dump(), "--images-dir", images, "--log-file",
           "dump.log", "-v4", "--leave-running", "--action-script", script});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err << read_file(images + "/dump.log");
  const nlohmann::json explained = kymod_.kymo_json({"explain", images});
  ASSERT_GT(explained["lines"].size(), 2U) << explained;
  EXPECT_NE(explained["lines"][2].get<std::string>().find("for scripts or for the program"),
            std::string::npos)
      << explained;
}

// The kernel wakes CRIU and the target on two CPUs by turns.
TEST_F(MoreVerdictTest, CriuAndATargetOnAnotherCpuWaitForEachOther) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "only one CPU";
  const nlohmann::json job = kymod_.churn(256, "work");
  pin(kymod_.pid(), 0);
  pin(job["pid"].get<pid_t>(), 1);
  const nlohmann::json record = dump({"--no-stream"});
  // A CPU of a real machine may be awake at once. Of this share, the target itself works a part.
  constexpr double kSlowToWake = 0.3;
  if (record["verdict"]["shares"].value("target_wait", 0.0) < kSlowToWake) {
    GTEST_SKIP() << "CPUs wake up fast here: " << shown(record);
  }
  expect_first(record, "cross-cpu");
}

// On one CPU nobody waits to be woken on another one, and CRIU's work is most of what is left.
TEST_F(MoreVerdictTest, CopyingOnOneCpuIsNamed) {
  const nlohmann::json job = kymod_.churn(512, "work");
  pin(kymod_.pid(), 0);
  pin(job["pid"].get<pid_t>(), 0);
  const nlohmann::json record = dump({"--no-stream", "--leave-running"});
  const std::vector<std::string> rules = rules_in(record["verdict"]);
  constexpr double kMostly = 0.65;
  if (record["verdict"]["shares"].value("cpu", 0.0) < kMostly ||
      std::find(rules.begin(), rules.end(), "host-memory") != rules.end()) {
    GTEST_SKIP() << "CRIU does more than copy memory at its usual pace: " << shown(record);
  }
  expect_first(record, "copying");
}

// CRIU is stopped until the kernel has counted so much waiting.
TEST_F(MoreVerdictTest, AMachineThatWaitsForMemoryIsNamed) {
  if (!Thrashers::waited_us()) GTEST_SKIP() << "the kernel does not count this (PSI)";
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  static_cast<void>(kymod.churn(16, "work"));
  const Thrashers thrashers(kymod_.folder());
  if (!thrashers.work()) GTEST_SKIP() << "no memory cgroup of version 1";
  criu.break_at("Dumping pages (type", SIGSTOP);
  auto dumping = std::async(std::launch::async, [&] {
    return kymod.kymo_json({"dump", "process", "work", "--no-stream"});
  });
  const pid_t stopped = criu.stopped();
  ASSERT_NE(stopped, 0) << kymod.log();
  criu.mend();
  const std::uint64_t before = *Thrashers::waited_us();
  const bool waits = eventually([&] { return *Thrashers::waited_us() > before + 1'000'000; },
                                std::chrono::seconds(10));
  ::kill(stopped, SIGCONT);
  const std::string directory = dumping.get()["directory"];
  if (!waits) GTEST_SKIP() << "the disk is too fast here: programs hardly wait for memory";
  expect_first(nlohmann::json::parse(read_file(directory + "/checkpoint.json")), "memory-pressure");
}

// kymod was blamed for a restore, "kymod itself did not run", and a dump was told as saving files.
TEST_F(MoreVerdictTest, AnActionScriptOfTheUserIsNamed) {
  const TemporaryDirectory home;
  const std::string script = home.file("slow.sh",
                                       "#!/bin/sh\ncase $CRTOOLS_SCRIPT_ACTION in\n"
                                       "pre-dump) sleep 0.6;;\npost-dump) sleep 1.2;;\n"
                                       "pre-restore) sleep 1.2;;\nesac\n");
  fs::permissions(script, fs::perms::owner_all);
  fs::create_directory(home.path() + "/.criu");
  std::string file;
  const auto expect_the_script = [&](const nlohmann::json& record) {
    expect_first(record, "hooks");
    const std::string told = record["verdict"].dump();
    EXPECT_NE(told.find("the action script " + script + " (in " + file + ")"), std::string::npos)
        << shown(record);
    EXPECT_EQ(told.find("kymod itself did not run"), std::string::npos) << shown(record);
    EXPECT_GE(phase_ns(record, "hooks"), 1'190'000'000U) << shown(record);
  };
  for (const auto& [name, variable] :
       {std::pair("default.conf", "HOME=" + home.path()),
        std::pair("other.conf", "CRIU_CONFIG_FILE=" + home.path() + "/.criu/other.conf")}) {
    file = home.file(std::string(".criu/") + name, "action-script " + script + "\n");
    Kymod kymod({}, {"env", variable});
    kymod.start();
    static_cast<void>(kymod.churn(8, "work"));
    const std::string directory = kymod.kymo_json({"dump", "process", "work"})["directory"];
    const nlohmann::json dumped = nlohmann::json::parse(read_file(directory + "/checkpoint.json"));
    expect_the_script(dumped);
    for (const auto& phase : dumped["phases"]) {
      if (phase["name"] != "hooks") continue;
      EXPECT_FALSE(phase["frozen"]) << "CRIU freezes after the first script: " << shown(dumped);
      break;
    }
    const nlohmann::json restored = kymod.kymo_json({"restore", "process", directory});
    expect_the_script(ended_metadata(restored["recording"])["about"]);
  }
}

// "No cause stands out", below a table that said "start CRIU 90 %".
TEST_F(MoreVerdictTest, ACriuThatStartsSlowlyIsNamed) {
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const std::string directory = kymod.kymo_json({"dump", "process", "work"})["directory"];
  criu.let_do("sleep 2");
  const nlohmann::json restored = kymod.kymo_json({"restore", "process", directory});
  const nlohmann::json about = ended_metadata(restored["recording"])["about"];
  expect_first(about, "criu-start");
  EXPECT_NE(about["verdict"].dump().find("Find out what " + criu.path() + " does"),
            std::string::npos)
      << shown(about);
}

// "Other programs used the CPUs": the cgroup into which the process was restored was throttled.
TEST_F(MoreVerdictTest, AQuotaOfTheRestoredProcessesIsNamed) {
  const std::string group = "/sys/fs/cgroup/cpu/kymo-verdict-" + std::to_string(::getpid());
  std::error_code error;
  if (!fs::exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") || !fs::create_directory(group, error)) {
    GTEST_SKIP() << "no CPU cgroup of version 1";
  }
  const auto write = [&](const char* name, long value) {
    std::ofstream(group + "/" + name) << value << std::flush;
  };
  start_shape({"files", "3600"});
  write("cpu.cfs_quota_us", 10'000);
  write("cgroup.procs", kymod_.job("work")["pid"].get<long>());
  static_cast<void>(dump({"--manage-cgroups", "soft"}));
  const nlohmann::json reply =
      kymod_.kymo_json({"restore", "process", directory_, "--manage-cgroups", "soft"});
  const nlohmann::json about = ended_metadata(reply["recording"])["about"];
  expect_first(about, "cpu-quota");
  EXPECT_NE(about["verdict"].dump().find("held up the restored processes: " + group),
            std::string::npos)
      << shown(about);
  ::kill(kymod_.job("work")["pid"].get<pid_t>(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return ::rmdir(group.c_str()) == 0; }));
}

TEST_F(MoreVerdictTest, AKernelThatIsTestedEachTimeIsNamed) {
  // In a mount namespace of its own, in which /run is a folder of a disk.
  const TemporaryDirectory folder;
  Kymod kymod({}, {"unshare", "--mount", "sh", "-c", "mount --bind \"$0\" /run && exec \"$@\"",
                   folder.path()});
  kymod.start();
  static_cast<void>(kymod.churn(1, "work"));
  const std::string directory = kymod.kymo_json({"dump", "process", "work"})["directory"];
  const nlohmann::json restored = kymod.kymo_json({"restore", "process", directory});
  const nlohmann::json about = ended_metadata(restored["recording"])["about"];
  constexpr std::uint64_t kWorthTelling = 20'000'000;
  if (phase_ns(about, "look at the kernel") < kWorthTelling) {
    GTEST_SKIP() << "CRIU tests this kernel faster: " << shown(about);
  }
  expect_first(about, "kernel-probed");
  EXPECT_NE(about["verdict"].dump().find("CRIU repeats this each time"), std::string::npos)
      << shown(about);
}

TEST_F(MoreVerdictTest, ThePageFaultsOfALargeRestoreAreNamed) {
  static_cast<void>(kymod_.churn(256, "work"));
  static_cast<void>(dump());
  const nlohmann::json about = restore();
  // A host that first has to supply the memory takes several times as long for a fault.
  constexpr std::uint64_t kUsualNs = 256 * 256 * 3500 * 5 / 2;
  if (phase_ns(about, "memory: reading pages") > kUsualNs) {
    GTEST_SKIP() << "page faults are slow here: " << shown(about);
  }
  expect_first(about, "page-faults");
}

}  // namespace
}  // namespace kymo::test
