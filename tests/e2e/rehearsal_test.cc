// Restores that are really made and taken back before anything runs: by `kymo verify --rehearse`, and by
// `kymo dump --prove` before the process ends.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "counted_job.h"
#include "programs.h"
#include "support/containers.h"
#include "support/real_criu.h"
#include "support/shell.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> dump_of(const CountedJob& job, Kind kind) {
  std::vector<std::string> words{"dump", "process", job.counting->name(), "--dir", job.dir()};
  if (kind == Kind::connected) words.emplace_back("--tcp-established");
  return words;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

class RehearsalTest : public testing::TestWithParam<Kind> {};

std::string name_of(const testing::TestParamInfo<Kind>& kind) {
  static constexpr const char* kNames[] = {"Process", "Connected",  "Runc",
                                           "Podman",  "Containerd", "Docker"};
  return kNames[static_cast<std::size_t>(kind.param)];
}

INSTANTIATE_TEST_SUITE_P(Rehearsals, RehearsalTest,
                         testing::Values(Kind::process, Kind::connected, Kind::runc, Kind::podman,
                                         Kind::containerd, Kind::docker),
                         name_of);

TEST_P(RehearsalTest, ItIsTakenBackAndNothingOfItIsLeft) {
  KYMO_NEEDS(GetParam());
  CountedJob job(GetParam());
  Kymod& kymod = *job.kymod;
  static_cast<void>(kymod.kymo_json(dump_of(job, GetParam())));
  ASSERT_TRUE(eventually([&] { return job.counting->copies().empty(); }));
  const std::set<std::string> before = names_in(job.dir());

  if (GetParam() == Kind::containerd || GetParam() == Kind::docker) {
    const Outcome refused = kymod.kymo({"verify", "--rehearse", job.dir()});
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find("has its root only while it runs"), std::string::npos)
        << refused.err;
    return;
  }
  for (int i = 0; i < 2; ++i) {
    const json verified = kymod.kymo_json({"verify", "--rehearse", job.dir()});
    EXPECT_EQ(verified["rehearsal"]["restorable"], true) << verified;
    EXPECT_EQ(verified["rehearsal"]["warnings"], json::array()) << verified;
    EXPECT_TRUE(job.counting->copies().empty());
  }
  EXPECT_EQ(names_in(job.dir()), before);
  EXPECT_EQ(kymod.kymo_json({"history", job.counting->name(), "--restores"})["runs"].size(), 0U);
  EXPECT_EQ(kymod.job(job.counting->name())["state"], "dumped");

  static_cast<void>(kymod.kymo_json({"restore", job.dir()}));
  EXPECT_TRUE(eventually([&] { return job.counting->counts(); })) << kymod.log();
  EXPECT_EQ(job.counting->connections(), GetParam() == Kind::connected ? 1 : 0);
}

TEST_P(RehearsalTest, OneThatRunsOnIsNotTouched) {
  KYMO_NEEDS(GetParam());
  CountedJob job(GetParam());
  std::vector<std::string> words = dump_of(job, GetParam());
  words.emplace_back("--leave-running");
  static_cast<void>(job.kymod->kymo_json(words));
  const json verified = job.kymod->kymo_json({"verify", "--rehearse", job.dir()});
  EXPECT_EQ(verified["rehearsal"]["restorable"], true) << verified;
  EXPECT_EQ(verified["rehearsal"]["warnings"].size(), 1U) << verified;  // it runs
  EXPECT_TRUE(job.counting->counts());
}

TEST_P(RehearsalTest, ADumpThatIsProvedEndsItAndIsRestored) {
  KYMO_NEEDS(GetParam());
  CountedJob job(GetParam());
  std::vector<std::string> words = dump_of(job, GetParam());
  words.emplace_back("--prove");
  const json dumped = job.kymod->kymo_json(words);
  ASSERT_TRUE(eventually([&] { return job.counting->copies().empty(); }));
  std::set<std::string> phases;
  std::uint64_t rehearsed_ns = 0;
  for (const json& phase : dumped["phases"]) {
    const std::uint64_t begin_ns = phase["begin_ns"];
    if (phase["frozen"] == true) phases.insert(phase["name"]);
    if (phase["name"] == "rehearsal")
      rehearsed_ns += phase["end_ns"].get<std::uint64_t>() - begin_ns;
  }
  EXPECT_EQ(phases.count("rehearsal"), 1U) << dumped["phases"];
  EXPECT_GT(dumped["stood_still_ns"].get<std::uint64_t>(), rehearsed_ns) << dumped["phases"];
  static_cast<void>(job.kymod->kymo_json({"restore", job.dir()}));
  EXPECT_TRUE(eventually([&] { return job.counting->counts(); })) << job.kymod->log();
  EXPECT_EQ(job.counting->connections(), GetParam() == Kind::connected ? 1 : 0);
}

// A program that is in a folder which was removed, and whose parent is a file now. CRIU dumps it, and cannot make the
// folder again.
constexpr char kInALostFolder[] = R"(
import os, sys, time
home = sys.argv[1]
os.makedirs(home + '/a/b')
os.chdir(home + '/a/b')
os.rmdir(home + '/a/b')
os.rmdir(home + '/a')
open(home + '/a', 'w').close()
print('ready', flush=True)
while True: time.sleep(1)
)";

class ProofTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
    fs::create_directories(home_);
  }
  // Starts a program of Python, which gets a folder and says when it is ready.
  void start(const char* program) {
    job_ = kymod_.kymo_json(
        {"run", "process", "--name", "it", "--", "/usr/bin/python3", "-c", program, home_});
    ASSERT_TRUE(eventually([&] { return read_file(job_["stdout_path"]) == "ready\n"; }))
        << read_file(job_["stderr_path"]);
  }

  const BreakableCriu criu_;
  Kymod kymod_{{"--criu", criu_.path()}};
  const std::string home_ = kymod_.path("home");
  const std::string dir_ = kymod_.path("c");
  json job_;
};

TEST_F(ProofTest, WhatCannotBeRestoredRunsOn) {
  start(kInALostFolder);
  const Outcome refused = kymod_.kymo({"dump", "process", "it", "--prove", "--dir", dir_});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("the rehearsal of its restore failed"), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("Not a directory"), std::string::npos) << refused.err;
  EXPECT_EQ(kymod_.job("it")["state"], "running");
  EXPECT_TRUE(fs::is_regular_file(home_ + "/a"));

  // The control: without a proof it ends, and never comes back.
  ASSERT_EQ(kymod_.kymo({"dump", "process", "it", "--dir", kymod_.path("d")}).exit_code, 0);
  const Outcome verified = kymod_.kymo({"verify", "--rehearse", kymod_.path("d")});
  EXPECT_EQ(verified.exit_code, 1) << verified.out;
  EXPECT_NE(verified.err.find("Not a directory"), std::string::npos) << verified.err;
  EXPECT_EQ(kymod_.kymo({"restore", kymod_.path("d")}).exit_code, 1);
}

// Its child listens at the same port, or has the same lock, as after socket activation.
constexpr char kWithChild[] = R"(
import fcntl, os, signal, socket, sys, time
home = sys.argv[1]
port = socket.socket()
port.bind(('127.0.0.1', 0))
port.listen()
locked = open(home + '/locked', 'w')
fcntl.flock(locked, fcntl.LOCK_EX)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setsid()
    (port if os.path.exists(home + '/lock') else locked).close()
    while True: time.sleep(1)
open(home + '/child', 'w').write(str(child))
print('ready', flush=True)
while True: time.sleep(1)
)";

class HeldByAnotherTest : public ProofTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Each, HeldByAnotherTest, testing::Values("port", "lock"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(HeldByAnotherTest, AProofDoesNotEndItAndTheHolderIsNamed) {
  std::ofstream(home_ + "/" + GetParam()).close();
  start(kWithChild);
  const std::string child = read_file(home_ + "/child");
  const std::string holder = "also of process " + job_["pid"].dump() + " (";
  const Outcome checked = kymod_.kymo({"check", "process", child});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_NE(checked.out.find(holder), std::string::npos) << checked.out;
  const Outcome refused = kymod_.kymo({"dump", "process", child, "--prove", "--dir", dir_});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find(holder), std::string::npos) << refused.err;
  EXPECT_TRUE(fs::exists("/proc/" + child));

  const Outcome dumped = kymod_.kymo({"dump", "process", child, "--dir", kymod_.path("d")});
  EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_NE((dumped.out + dumped.err).find(holder), std::string::npos) << dumped.out << dumped.err;
  const Outcome rehearsed = kymod_.kymo({"verify", "--rehearse", kymod_.path("d")});
  EXPECT_EQ(rehearsed.exit_code, 0) << rehearsed.err;
  EXPECT_NE((rehearsed.out + rehearsed.err).find("now it would fail: "), std::string::npos)
      << rehearsed.out << rehearsed.err;
  const Outcome failed = kymod_.kymo({"restore", kymod_.path("d")});
  EXPECT_EQ(failed.exit_code, 1) << failed.out;
  const bool port = GetParam() == std::string("port");
  EXPECT_NE(failed.err.find(port ? "TCP 127.0.0.1:" : home_ + "/locked"), std::string::npos)
      << failed.err;
  static_cast<void>(kymod_.kymo({"kill", "it"}));
  ASSERT_TRUE(eventually([&] { return kymod_.job("it")["state"] == "exited"; }));
  EXPECT_EQ(kymod_.kymo({"restore", kymod_.path("d")}).exit_code, 0) << kymod_.log();
  kill(std::stoi(child), SIGKILL);
}

// A program with all that a restore makes in the file system, or that only one process can have.
constexpr char kWithFiles[] = R"(
import fcntl, os, socket, sys, time
home = sys.argv[1]
listener = socket.socket(socket.AF_UNIX)
listener.bind(home + '/socket')
listener.listen()
port = socket.socket()
port.bind(('127.0.0.1', 0))
port.listen()
locked = open(home + '/locked', 'w')
fcntl.flock(locked, fcntl.LOCK_EX)
deleted = open(home + '/deleted', 'w')
deleted.write('gone')
deleted.flush()
os.unlink(home + '/deleted')
print('ready', flush=True)
while True:
    peer, _ = listener.accept()
    peer.send(b'here')
    peer.close()
)";

// What a program says that listens at the socket.
std::string heard_from(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  std::string said(4, '\0');
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::recv(fd, said.data(), said.size(), MSG_WAITALL) != 4) {
    said = "nothing";
  }
  ::close(fd);
  return said;
}

TEST_F(ProofTest, TheFilesOfOneThatRunsAreNotChanged) {
  start(kWithFiles);
  struct stat before {};
  ASSERT_EQ(::stat((home_ + "/socket").c_str(), &before), 0);
  for (const bool compressed : {false, true}) {
    const std::string dir = dir_ + (compressed ? "z" : "");
    const json dumped =
        kymod_.kymo_json({"dump", "process", "it", "--leave-running", "--prove", "--dir", dir,
                          "--compression", compressed ? "zstd" : "none"});
    const json verified = kymod_.kymo_json({"verify", "--rehearse", dir});
    EXPECT_EQ(verified["rehearsal"]["restorable"], true) << verified;
    // A restore needs its pid.
    EXPECT_EQ(verified["rehearsal"]["warnings"].size(), 1U) << verified;
  }
  struct stat after {};
  ASSERT_EQ(::stat((home_ + "/socket").c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_EQ(names_in(home_), (std::set<std::string>{"locked", "socket"}));
  EXPECT_EQ(heard_from(home_ + "/socket"), "here");

  static_cast<void>(
      kymod_.kymo_json({"dump", "process", "it", "--prove", "--dir", kymod_.path("d")}));
  static_cast<void>(kymod_.kymo_json({"restore", kymod_.path("d")}));
  EXPECT_EQ(heard_from(home_ + "/socket"), "here");
}

TEST_F(ProofTest, WhatCannotBeRehearsedIsRefusedAtOnce) {
  start(kWithFiles);
  const Outcome external = kymod_.kymo(
      {"dump", "process", "it", "--prove", "--dir", dir_, "--external", "mnt[/proc]:proc"});
  EXPECT_EQ(external.exit_code, 1);
  EXPECT_NE(external.err.find("the restore needs --external again"), std::string::npos)
      << external.err;
  EXPECT_FALSE(fs::exists(dir_));
}

// A rehearsal that hangs.
class HangingProofTest : public ProofTest {
 protected:
  // Starts the program and its dump, and waits until CRIU rehearses the restore.
  void dump_until_it_hangs() {
    start(kWithFiles);
    criu_.let_do("case \"$*\" in *rehearsal.log*) echo $$ >" + reached_ +
                 "; exec sleep 1000;; esac");
    dump_ = std::thread([this] {
      dumped_ = kymod_.kymo({"dump", "process", "it", "--prove", "--dir", dir_});
    });
    ASSERT_TRUE(eventually([&] { return fs::exists(reached_); })) << kymod_.log();
    ASSERT_FALSE(sleepers().empty());
  }
  // Expects that the program runs on, and that nothing of the rehearsal does.
  void expect_undone() {
    EXPECT_TRUE(eventually([&] { return sleepers().empty(); }));
    EXPECT_EQ(heard_from(home_ + "/socket"), "here");
    EXPECT_FALSE(fs::exists(dir_ + "/images"));
  }
  [[nodiscard]] static std::string sleepers() {
    return run({"pgrep", "--full", "^sleep 1000$"}).out;
  }

  const std::string reached_ = kymod_.path("reached");
  std::thread dump_;
  Outcome dumped_;
};

TEST_F(HangingProofTest, IfItIsCancelledTheProcessRunsOn) {
  dump_until_it_hangs();
  EXPECT_EQ(kymod_.kymo({"cancel", "it"}).exit_code, 0);
  dump_.join();
  EXPECT_NE(dumped_.err.find("the process runs on"), std::string::npos) << dumped_.err;
  expect_undone();
  EXPECT_EQ(kymod_.job("it")["state"], "running");
}

TEST_F(HangingProofTest, IfKymodIsKilledTheProcessRunsOn) {
  dump_until_it_hangs();
  EXPECT_EQ(kymod_.stop(SIGKILL), -1);
  dump_.join();
  expect_undone();
  kymod_.start();
  EXPECT_EQ(kymod_.job("it")["state"], "running");
}

// What a criu does that restores on a stage for a rehearsal of a container.
std::string on_the_stage(const std::string& what) {
  return "case \"$CRIU_CONFIG_FILE\" in *kymo-rehearsal*) " + what + ";; esac";
}

class ContainerProofTest : public testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(Containers, ContainerProofTest,
                         testing::Values(Kind::runc, Kind::podman, Kind::containerd, Kind::docker),
                         name_of);

TEST_P(ContainerProofTest, IfItFailsItRunsOnAndCanBeDumpedAgain) {
  KYMO_NEEDS(GetParam());
  CountedJob job(GetParam());
  std::vector<std::string> words = dump_of(job, GetParam());
  words.emplace_back("--prove");
  job.criu.let_do(on_the_stage("exit 1"));
  const Outcome refused = job.kymod->kymo(words);
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("the rehearsal of its restore failed"), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find(": CRIU version check failed: "), std::string::npos) << refused.err;
  EXPECT_TRUE(eventually([&] { return job.counting->counts(); })) << job.kymod->log();

  job.criu.let_do("");
  words[words.size() - 2] += "-2";  // another folder
  static_cast<void>(job.kymod->kymo_json(words));
  static_cast<void>(job.kymod->kymo_json({"restore", words[words.size() - 2]}));
  EXPECT_TRUE(eventually([&] { return job.counting->counts(); })) << job.kymod->log();
}

TEST_P(ContainerProofTest, IfKymodIsKilledItRunsOnAndCanBeDumpedAgain) {
  KYMO_NEEDS(GetParam());
  CountedJob job(GetParam());
  std::vector<std::string> words = dump_of(job, GetParam());
  words.emplace_back("--prove");
  const std::string reached = job.kymod->path("reached");
  job.criu.let_do(on_the_stage("echo $$ >" + reached + "; exec sleep 1000"));
  std::thread dump([&] { static_cast<void>(job.kymod->kymo(words)); });
  EXPECT_TRUE(eventually([&] { return fs::exists(reached); })) << job.kymod->log();
  EXPECT_EQ(job.kymod->stop(SIGKILL), -1);
  dump.join();
  job.criu.let_do("");
  job.kymod->start();
  EXPECT_TRUE(eventually([&] { return job.counting->counts(); })) << job.kymod->log();

  words[words.size() - 2] += "-2";  // another folder
  static_cast<void>(job.kymod->kymo_json(words));
  static_cast<void>(job.kymod->kymo_json({"restore", words[words.size() - 2]}));
  EXPECT_TRUE(eventually([&] { return job.counting->counts(); })) << job.kymod->log();
}

// podman has its root mounted only while it runs.
TEST(RehearsalOfAnImageTest, TheRootOfAContainerThatHasEndedIsMadeOfItsLayers) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string name = "kymo-layers";
  const std::string image = "localhost/" + name;
  std::vector<std::string> words = podman.arguments(name);
  const std::string archive = podman.root_of(name) + ".tar";
  static_cast<void>(shell("tar -C " + podman.root_of(name) + " -cf " + archive + " ."));
  const std::string said = podman.podman("import " + archive + " " + image);
  const auto root = std::find(words.begin(), words.end(), "--rootfs");
  ASSERT_NE(root, words.end());
  *words.erase(root) = image;
  words.insert(words.begin(), {"run", "podman", "--name", name, "--"});
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags(), "--criu", criu_path()});
  kymod.start();
  const Outcome ran = kymod.kymo(words);
  ASSERT_EQ(ran.exit_code, 0) << ran.err << said;
  const std::string dir = kymod.path("c");
  static_cast<void>(kymod.kymo_json({"dump", "podman", name, "--dir", dir}));
  const json verified = kymod.kymo_json({"verify", "--rehearse", dir});
  EXPECT_EQ(verified["rehearsal"]["restorable"], true) << verified;
  static_cast<void>(kymod.kymo_json({"restore", dir}));
  EXPECT_EQ(podman.status(name), "running");
  static_cast<void>(podman.podman("rm -f -t 0 " + name));
  static_cast<void>(podman.podman("rmi " + image));
}

}  // namespace
}  // namespace kymo::test
