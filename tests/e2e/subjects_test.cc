// Processes that are difficult to checkpoint, dumped and restored through kymod with the real CRIU.
// After each restore, the program must go on as before.
#include "subjects.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iomanip>
#include <memory>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/file.h"
#include "base/proc/process.h"
#include "own_cgroups.h"
#include "programs.h"
#include "support/loopback.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A connection to a server on this machine.
class Connection {
 public:
  explicit Connection(int port) : fd_(connect_to_loopback(port)) {
    const timeval patience{30, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  void say(const std::string& text) const {
    EXPECT_EQ(send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::string hear(std::size_t size) const {
    std::string text(size, '\0');
    const ssize_t got = recv(fd_.get(), text.data(), text.size(), MSG_WAITALL);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }
  [[nodiscard]] std::string ask(const std::string& text) const {
    say(text);
    return hear(text.size());
  }

 private:
  FileDescriptor fd_;
};

// Whether this port has a connection that is open, or that only the other end has closed.
bool has_connection(int port) {
  std::ostringstream ending;
  ending << ':' << std::uppercase << std::hex << std::setw(4) << std::setfill('0') << port;
  std::ifstream table("/proc/net/tcp");
  std::string slot, local, remote, state;
  for (std::string line; std::getline(table, line);) {
    std::istringstream(line) >> slot >> local >> remote >> state;
    if (local.ends_with(ending.str()) && (state == "01" || state == "08")) return true;
  }
  return false;
}

TEST_F(SubjectsTest, AListeningServerAnswersAfterItsRestore) {
  const int port = start({"listen"})["port"];
  EXPECT_EQ(Connection(port).ask("before"), "BEFORE");
  ASSERT_TRUE(eventually([&] { return !has_connection(port); }))
      << "the server must close the connection, too";
  dump();
  restore();
  EXPECT_EQ(Connection(port).ask("after"), "AFTER");
}

TEST_F(SubjectsTest, AnEstablishedConnectionGoesOnAndLosesNoByte) {
  const int port = start({"listen"})["port"];
  const Connection connection(port);
  EXPECT_EQ(connection.ask("before"), "BEFORE");
  expect_refused_for_want_of("--tcp-established");
  EXPECT_EQ(connection.ask("refused"), "REFUSED");
  dump({"--tcp-established"});
  connection.say("meanwhile");  // no process listens: the kernel keeps the text and sends it again
  restore({});                  // the checkpoint keeps the flags of the dump
  EXPECT_EQ(connection.hear(9), "MEANWHILE");
  EXPECT_EQ(connection.ask("after"), "AFTER");
  EXPECT_EQ(Connection(port).ask("another"), "ANOTHER");
}

TEST_F(SubjectsTest, ServersWithConnectionsGoOnWhereTheyAreLeftRunning) {
  const int port = start({"listen"})["port"];
  const Connection connection(port);
  EXPECT_EQ(connection.ask("before"), "BEFORE");
  const Outcome dumped = kymod_.kymo({"dump", "process", "subject", "--dir", checkpoint(),
                                      "--tcp-established", "--leave-running"});
  EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_EQ(connection.ask("after"), "AFTER");
}

// A way in which CRIU blocks the packets of connections.
struct Lock {
  const char* name;
  // A command that prints CRIU's rules for the packets of a port (for iptables: those with its mark).
  // The port is appended.
  const char* rules;
  const char* log_mark;  // the text that CRIU writes to its log for each connection
};
constexpr Lock kIptables{"iptables", "iptables -w -S | grep -- '--mark 0xc114 .*port ", "Locked "};
constexpr Lock kNftables{"nftables",
                         "nft -n list ruleset inet | grep -A20 '^table inet CRIU-' | grep ' ",
                         "Running nftables [add element"};

bool is_locked(const Lock& lock, int port) {
  const std::string command = lock.rules + std::to_string(port) + " ' >/dev/null";
  return std::system(command.c_str()) == 0;
}

// A dump of a server with connections. CRIU is stopped while it blocks some of them.
class HeldConnectionsTest : public SubjectsTest, public testing::WithParamInterface<Lock> {
 protected:
  void begin() {
    port_ = start({"listen"})["port"];
    for (int i = 0; i < 5; ++i) {
      connections_.emplace_back(port_);
      EXPECT_EQ(connections_.back().ask("before"), "BEFORE");
    }
    ASSERT_FALSE(is_locked(GetParam(), port_));
    // Stops CRIU at the second such text, when it has done what the first one announced.
    criu_.break_at(GetParam().log_mark, SIGSTOP, 1);
    client_ = std::thread([this] {
      outcome_ =
          kymod_.kymo({"dump", "process", "subject", "--dir", checkpoint(), "--tcp-established",
                       "--log-level", "4", "--network-lock", GetParam().name});
    });
    ASSERT_NE(criu_.stopped(), 0) << kymod_.log();
    criu_.mend();
    EXPECT_TRUE(is_locked(GetParam(), port_));
  }
  void TearDown() override {
    if (client_.joinable()) client_.join();
  }
  void expect_connections_go_on() {
    for (const Connection& connection : connections_) {
      EXPECT_EQ(connection.ask("after"), "AFTER");
    }
    EXPECT_FALSE(is_locked(GetParam(), port_));
    EXPECT_EQ(kymod_.job("subject")["state"], "running");
    EXPECT_EQ(read_file(job_["stderr_path"]), "");
  }

  int port_ = 0;
  std::vector<Connection> connections_;
  std::thread client_;
  Outcome outcome_;
};

TEST_P(HeldConnectionsTest, ACancellationGivesThemBack) {
  ASSERT_NO_FATAL_FAILURE(begin());
  EXPECT_EQ(kymod_.kymo({"cancel", "subject"}).exit_code, 0);
  client_.join();
  EXPECT_EQ(outcome_.exit_code, 1);
  EXPECT_NE(outcome_.err.find("the process runs on"), std::string::npos) << outcome_.err;
  expect_connections_go_on();
}

TEST_P(HeldConnectionsTest, AKymodThatWasKilledGivesThemBackWhenItIsStartedAgain) {
  ASSERT_NO_FATAL_FAILURE(begin());
  EXPECT_EQ(kymod_.stop(SIGKILL), -1);
  kymod_.start();
  expect_connections_go_on();
}

INSTANTIATE_TEST_SUITE_P(Lock, HeldConnectionsTest, testing::Values(kIptables, kNftables),
                         [](const auto& lock) { return std::string(lock.param.name); });

// How CRIU blocks packets, and the text in its log for each way.
class NetworkLockTest : public SubjectsTest, public testing::WithParamInterface<const char*> {};

TEST_P(NetworkLockTest, AConnectionGoesOnAfterADumpWithIt) {
  const int port = start({"listen"})["port"];
  const Connection connection(port);
  EXPECT_EQ(connection.ask("before"), "BEFORE");
  dump({"--tcp-established", "--log-level", "4", "--network-lock", GetParam()});
  const std::string log = read_file(checkpoint() + "/work/dump.log");
  for (const Lock& lock : {kIptables, kNftables}) {
    EXPECT_EQ(log.find(lock.log_mark) != std::string::npos, GetParam() == std::string(lock.name))
        << lock.name;
  }
  restore();
  EXPECT_EQ(connection.ask("after"), "AFTER");
  EXPECT_FALSE(is_locked(kIptables, port) || is_locked(kNftables, port));
}

INSTANTIATE_TEST_SUITE_P(Each, NetworkLockTest, testing::Values("iptables", "nftables", "skip"),
                         [](const auto& lock) { return std::string(lock.param); });

TEST_F(SubjectsTest, TheLogHasTheLevelThatWasAskedFor) {
  // CRIU writes this text from this log level on.
  const std::string information = "Dumping processes (pid: ";
  const std::string debugging = "Daemon waits for command";
  start({"listen"});
  for (const char level : {'1', '3', '4'}) {
    const std::string folder = kymod_.path(std::string("at-") + level);
    const Outcome dumped = kymod_.kymo(
        {"dump", "process", "subject", "--dir", folder, "--leave-running", "--log-level", {level}});
    EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
    const std::string log = read_file(folder + "/work/dump.log");
    EXPECT_EQ(log.find(information) != std::string::npos, level >= '3') << level;
    EXPECT_EQ(log.find(debugging) != std::string::npos, level >= '4') << level;
  }
  dump();
  restore({"--log-level", "2"});
  EXPECT_EQ(read_file(checkpoint() + "/work/restore.log").find("Reading image tree"),
            std::string::npos);
}

TEST_F(SubjectsTest, ConnectionsThatAreNotKeptAreClosedAndOthersCome) {
  const int port = start({"listen"})["port"];
  const Connection connection(port);
  EXPECT_EQ(connection.ask("before"), "BEFORE");
  dump({"--tcp-close"});
  restore();  // the checkpoint keeps the flags of the dump
  EXPECT_EQ(Connection(port).ask("another"), "ANOTHER");
}

TEST_F(SubjectsTest, AConnectionThatIsNotAcceptedIsLeftOutOnRequest) {
  const std::string now = kymod_.path("now");
  const int port = start({"late", now})["port"];
  const Connection waiting(port);
  expect_refused_for_want_of("--skip-in-flight");
  dump({"--skip-in-flight"});
  restore();
  std::ofstream(now) << "accept";
  EXPECT_EQ(Connection(port).ask("another"), "ANOTHER");
}

// What the job prints must still change. Then it runs, and its file is as before.
void expect_goes_on(const std::string& output) {
  const std::string before = last_line_in(output);
  EXPECT_TRUE(eventually([&] { return last_line_in(output) != before; })) << before;
}

TEST_F(SubjectsTest, ALargeDeletedFileIsInTheImagesOnRequest) {
  start({"ghost", kymod_.path("deleted"), "3000000"});
  expect_refused_for_want_of("--ghost-limit");
  dump({"--ghost-limit", "4M"});
  restore();
  expect_goes_on(output());
}

TEST_F(SubjectsTest, ADeletedNameIsMadeAnewOnRequest) {
  const std::string path = kymod_.path("name");
  start({"renamed", path});
  expect_refused_for_want_of("--link-remap");
  dump({"--link-remap"});
  restore();
  expect_goes_on(output());
  EXPECT_FALSE(fs::exists(path));
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(path).parent_path())) {
    EXPECT_EQ(entry.path().filename().string().find("link_remap"), std::string::npos) << entry;
  }
}

TEST_F(SubjectsTest, CgroupsAreMadeAnewOnRequest) {
  if (!fs::exists("/sys/fs/cgroup/cpu/tasks")) GTEST_SKIP() << "no cgroups of version 1 here";
  const OwnCgroups cgroups;
  start({"listen"});
  const auto pid = job_["pid"].get<pid_t>();
  cgroups.take(pid);
  ASSERT_EQ(cgroups.holding(pid), cgroups.count());
  dump({"--manage-cgroups", "soft"});
  ASSERT_TRUE(cgroups.removed());
  restore();
  EXPECT_EQ(cgroups.holding(pid), cgroups.count());
  kill(pid, SIGKILL);  // the cgroups can be removed only without processes
}

// CRIU's own choice made cgroups anew that had been removed, also foreign ones below those of the process.
TEST_F(SubjectsTest, CgroupsAreLeftAloneOtherwise) {
  if (!fs::exists("/sys/fs/cgroup/cpu/tasks")) GTEST_SKIP() << "no cgroups of version 1 here";
  const OwnCgroups cgroups;
  start({"listen"});
  const auto pid = job_["pid"].get<pid_t>();
  cgroups.take(pid);
  ASSERT_EQ(cgroups.holding(pid), cgroups.count());
  dump();
  ASSERT_TRUE(cgroups.removed());
  restore();
  EXPECT_EQ(cgroups.holding(pid), 0U);
  EXPECT_TRUE(cgroups.removed());
}

TEST_F(SubjectsTest, FileLocksAreHeldAfterTheRestore) {
  const std::string path = kymod_.path("locked");
  start({"locks", path});
  const FileDescriptor whole(open(path.c_str(), O_RDWR | O_CLOEXEC));
  const FileDescriptor record(open((path + ".posix").c_str(), O_RDWR | O_CLOEXEC));
  const auto expect_held = [&] {
    EXPECT_EQ(flock(whole.get(), LOCK_EX | LOCK_NB), -1);
    EXPECT_EQ(errno, EWOULDBLOCK);
    struct flock asked {};
    asked.l_type = F_WRLCK;
    EXPECT_EQ(fcntl(record.get(), F_GETLK, &asked), 0);
    EXPECT_EQ(asked.l_type, F_WRLCK);
    EXPECT_EQ(asked.l_pid, job_["pid"].get<pid_t>());
  };
  expect_held();
  dump();
  EXPECT_EQ(flock(whole.get(), LOCK_EX | LOCK_NB), 0)
      << "no process holds the lock while the subject is dumped";
  flock(whole.get(), LOCK_UN);
  restore();
  expect_held();
}

TEST_F(SubjectsTest, ALockThatSomebodyElseHoldsIsNamedAndNothingWaitsForIt) {
  const std::string path = kymod_.path("file");
  start({"locks", path});
  dump();
  for (const std::string& locked : {path, path + ".posix"}) {
    const FileDescriptor other(open(locked.c_str(), O_RDWR | O_CLOEXEC));
    if (locked == path) {
      ASSERT_EQ(flock(other.get(), LOCK_SH), 0);
    } else {
      struct flock asked {};
      asked.l_type = F_WRLCK;
      ASSERT_EQ(fcntl(other.get(), F_SETLK, &asked), 0);
    }
    const std::string place = std::to_string(getpid());
    const Outcome checked = kymod_.kymo({"check", checkpoint(), "--criu", criu_path()});
    EXPECT_EQ(checked.exit_code, 1) << checked.out;
    EXPECT_NE(checked.out.find("(failure lock-wait)"), std::string::npos) << checked.out;
    EXPECT_NE(checked.out.find("process " + place), std::string::npos) << checked.out;
    const Outcome refused = kymod_.kymo({"restore", checkpoint()});
    EXPECT_EQ(refused.exit_code, 1) << refused.err;
    EXPECT_NE(refused.err.find("process " + place), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("which holds a lock of " + locked), std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("(failure lock-wait)"), std::string::npos) << refused.err;
  }
  restore();
}

// A bind mount that exists as long as this object.
class BindMount {
 public:
  BindMount(const std::string& from, std::string to) : to_(std::move(to)) {
    fs::create_directories(to_);
    EXPECT_EQ(mount(from.c_str(), to_.c_str(), nullptr, MS_BIND, nullptr), 0);
    EXPECT_EQ(mount(nullptr, to_.c_str(), nullptr, MS_PRIVATE, nullptr), 0);
  }
  ~BindMount() { umount2(to_.c_str(), MNT_DETACH); }
  BindMount(const BindMount&) = delete;
  BindMount& operator=(const BindMount&) = delete;

 private:
  std::string to_;
};

TEST_F(SubjectsTest, AnExternalMountIsReplacedByAnotherAtTheRestore) {
  const std::string before = kymod_.path("before");
  const std::string after = kymod_.path("after");
  const std::string inside = kymod_.path("inside");
  for (const std::string& folder : {before, after, inside}) fs::create_directories(folder);
  start({"mount", before, inside});
  ASSERT_TRUE(eventually([&] { return fs::exists(before + "/count"); }));
  dump({"--external", "mnt[" + inside + "]:data"});
  const std::uintmax_t count = fs::file_size(before + "/count");
  const BindMount root("/", kymod_.path("root"));
  restore({"--external", "mnt[data]:" + after, "--root", kymod_.path("root")});
  EXPECT_TRUE(eventually([&] {
    std::error_code none_yet;
    const std::uintmax_t now = fs::file_size(after + "/count", none_yet);
    return !none_yet && now > count;
  }));
  EXPECT_TRUE(fs::is_empty(inside)) << "the folder must be mounted only in the subject's namespace";
  EXPECT_EQ(fs::file_size(before + "/count"), count);
}

// A service with PrivateTmp=yes is such a process.
TEST_F(SubjectsTest, AProcessWithMountsOfItsOwnIsRestoredWithoutBeingToldItsRoot) {
  const std::string inside = kymod_.path("inside");
  fs::create_directories(inside);
  const json ready = start({"mount", "tmpfs", inside});
  const std::string path =
      "/proc/" + std::to_string(ready["pid"].get<int>()) + "/root" + inside + "/count";
  const auto count = [&] {
    std::error_code none;
    const std::uintmax_t size = fs::file_size(path, none);
    return none ? 0 : size;
  };
  ASSERT_TRUE(eventually([&] { return count() > 0; }));
  const std::uintmax_t before = count();
  dump();
  restore();
  EXPECT_TRUE(eventually([&] { return count() > before; })) << path;
  EXPECT_TRUE(fs::is_empty(inside)) << "the folder must be mounted only in the subject's namespace";
}

TEST_F(SubjectsTest, ANumberThatGoesToASocketOfOthersGoesOn) {
  const std::string path = kymod_.path("socket");
  const FileDescriptor ours(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(ours.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const timeval patience{30, 0};
  setsockopt(ours.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const auto receive = [&](int flags) {
    std::array<char, 32> text{};
    return recv(ours.get(), text.data(), text.size() - 1, flags) > 0 ? std::atoi(text.data()) : 0;
  };
  start({"send", path});
  EXPECT_GT(receive(0), 0);
  expect_refused_for_want_of("--ext-unix-sk");
  dump({"--ext-unix-sk"});
  int last = 0;
  while (const int number = receive(MSG_DONTWAIT)) last = number;
  restore({"--ext-unix-sk"});
  EXPECT_GT(receive(0), last)
      << "messages that do not fit into the queue may be lost, but the numbers must go on";
}

constexpr std::size_t kProcesses = 40;

std::vector<std::uint64_t> cells_in(const std::string& output) {
  const json cells = json::parse(last_line_in(output), nullptr, false);
  return cells.is_array() ? cells.get<std::vector<std::uint64_t>>()
                          : std::vector<std::uint64_t>(kProcesses);
}

// Whether all cells grow beyond `before`, except those of the processes that have ended.
bool all_go_on(const std::string& output, const std::vector<std::uint64_t>& before,
               const std::vector<std::size_t>& but = {}) {
  return eventually([&] {
    const std::vector<std::uint64_t> now = cells_in(output);
    for (std::size_t i = 0; i < kProcesses; ++i) {
      const bool looked_at = std::find(but.begin(), but.end(), i) == but.end();
      if (looked_at && now[i] <= before[i]) return false;
    }
    return true;
  });
}

TEST_F(SubjectsTest, FortyProcessesGoOnInTheMemoryThatTheyShare) {
  const json ready = start({"share", std::to_string(kProcesses)});
  ASSERT_EQ(ready["children"].size(), kProcesses);
  ASSERT_TRUE(all_go_on(output(), std::vector<std::uint64_t>(kProcesses)));
  dump();
  const std::vector<std::uint64_t> before = cells_in(output());
  const auto lines = read_file(output()).size();
  restore();
  ASSERT_TRUE(eventually([&] { return read_file(output()).size() > lines; }));
  const std::vector<std::uint64_t> after = cells_in(output());
  for (std::size_t i = 0; i < kProcesses; ++i) EXPECT_GE(after[i], before[i]) << i;
  EXPECT_TRUE(all_go_on(output(), after));
  for (const json& child : ready["children"]) {
    const std::string parent = "\nPPid:\t" + std::to_string(job_["pid"].get<int>()) + "\n";
    const std::string status = read_file("/proc/" + std::to_string(child.get<int>()) + "/status");
    EXPECT_NE(status.find(parent), std::string::npos) << status;
  }
}

// Kills the process when CRIU is about to write the text to its log, and returns the result of the
// dump.
Outcome dump_and_kill(const Kymod& kymod, const BreakableCriu& criu, const std::string& directory,
                      const std::string& mark, pid_t victim) {
  criu.break_at(mark, SIGSTOP);
  auto dump = std::async(std::launch::async, [&] {
    return kymod.kymo({"dump", "process", "subject", "--dir", directory});
  });
  const pid_t stopped = criu.stopped();
  EXPECT_NE(stopped, 0) << kymod.log();
  criu.mend();
  kill(victim, SIGKILL);
  if (stopped != 0) kill(stopped, SIGCONT);
  return dump.get();
}

// There are two permitted results: the checkpoint is complete and can be restored, or the other
// processes run on and no image is left. CRIU may also end a second process with SIGTRAP, if it
// worked in it when the first one died. Then the error names both, or the first process of the tree,
// without which the others end.
class DeathTest : public SubjectsTest, public testing::WithParamInterface<const char*> {
 protected:
  // The cells of the children that have ended, according to this error.
  static std::vector<std::size_t> ended_by(const std::string& error, const json& children) {
    constexpr std::string_view kSaid = " ended meanwhile: ";
    std::vector<std::size_t> cells;
    const std::size_t at = error.find(kSaid);
    if (at == std::string::npos) return cells;
    const std::string list = ", " + error.substr(at + kSaid.size());
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::size_t named = list.find(", " + std::to_string(children[i].get<int>()));
      if (named != std::string::npos) cells.push_back(i);
    }
    return cells;
  }
};

TEST_P(DeathTest, OneOfManyThatDiesDuringTheDumpLeavesACheckpointOrTheOthersRunning) {
  const json ready = start({"share", std::to_string(kProcesses)});
  constexpr std::size_t kVictim = 17;
  ASSERT_TRUE(all_go_on(output(), std::vector<std::uint64_t>(kProcesses)));
  const Outcome dump = dump_and_kill(kymod_, criu_, checkpoint(), GetParam(),
                                     ready["children"][kVictim].get<pid_t>());
  std::vector<std::size_t> ended{kVictim};
  if (dump.exit_code == 0) {
    restore();
  } else {
    EXPECT_EQ(dump.exit_code, 1) << dump.err;
    EXPECT_FALSE(fs::exists(checkpoint() + "/images")) << dump.err;
    EXPECT_FALSE(fs::exists(checkpoint() + "/images.partial")) << dump.err;
    const json job = kymod_.job("subject");
    if (dump.err.find("; the process has ended") != std::string::npos) {
      EXPECT_EQ(job["state"], "exited");
      EXPECT_EQ(job["exit_signal"], SIGTRAP)
          << "the first process must have been ended by CRIU's trap: " << dump.err;
      return;
    }
    EXPECT_EQ(job["state"], "running") << dump.err;
    ended = ended_by(dump.err, ready["children"]);
    EXPECT_NE(std::find(ended.begin(), ended.end(), kVictim), ended.end()) << dump.err;
    EXPECT_LE(ended.size(), 2U) << dump.err;
  }
  EXPECT_TRUE(all_go_on(output(), cells_in(output()), ended)) << dump.err;
}

TEST_P(DeathTest, AProcessThatDiesDuringItsDumpEndsAsAJobThatWasKilledOrDumped) {
  start({"share", std::to_string(kProcesses)});
  ASSERT_TRUE(all_go_on(output(), std::vector<std::uint64_t>(kProcesses)));
  const Outcome dump =
      dump_and_kill(kymod_, criu_, checkpoint(), GetParam(), job_["pid"].get<pid_t>());
  if (dump.exit_code == 0) {
    EXPECT_EQ(kymod_.job("subject")["state"], "dumped");
    restore();
    EXPECT_TRUE(all_go_on(output(), cells_in(output())));
    return;
  }
  EXPECT_FALSE(fs::exists(checkpoint() + "/images")) << dump.err;
  EXPECT_TRUE(eventually([&] { return kymod_.job("subject")["state"] == "exited"; })) << dump.err;
  EXPECT_EQ(kymod_.job("subject")["exit_signal"], SIGKILL)
      << "the job must know the signal that ended it";
}

INSTANTIATE_TEST_SUITE_P(AtMarksOfCriusLog, DeathTest,
                         testing::Values("Seized task", "Dumping pages (type", "Dumping core",
                                         "Writing stats"));

}  // namespace
}  // namespace kymo::test
