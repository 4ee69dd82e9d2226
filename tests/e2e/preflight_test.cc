// Healthy processes of many kinds. kymo check process must refuse none of them, and they are really
// dumped and restored.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/proc/process.h"
#include "base/sanitizers.h"
#include "checkpoint/preflight/target.h"
#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using nlohmann::json;

// Each program prints a line when it is ready, and then more and more lines.
struct Healthy {
  const char* name;
  std::vector<std::string> words;
  // A shell command that prints `answer`, also after the restore. It runs in the working directory
  // of the first process. May be empty.
  std::string query{};
  std::string answer{};
};

std::ostream& operator<<(std::ostream& out, const Healthy& healthy) {
  return out << healthy.name;
}

constexpr char kCount[] = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done";
constexpr char kPythonCount[] =
    "import time\n"
    "while True:\n"
    "    print(time.monotonic(), flush=True)\n"
    "    time.sleep(0.05)\n";

std::vector<std::string> python(const std::string& before) {
  return {"/usr/bin/python3", "-c", before + "\n" + kPythonCount};
}

std::vector<Healthy> healthy_programs() {
  return {
      {"Shell", {"/bin/sh", "-c", kCount}},
      {"Bash", {"/bin/bash", "-c", kCount}},
      {"Pipeline", {"/bin/sh", "-c", std::string("(") + kCount + ") | cat"}},
      {"JobsOfAShell", {"/bin/sh", "-c", std::string("sleep 600 & sleep 600 & ") + kCount}},
      {"Awk",
       {"/usr/bin/awk", "BEGIN { while (1) { print ++i; fflush(); system(\"sleep 0.05\") } }"}},
      {"Perl",
       {"/usr/bin/perl", "-e",
        "$| = 1; while (1) { print ++$i, \"\\n\"; select(undef, undef, undef, 0.05) }"}},
      {"Python", python("")},
      {"HundredsOfThreads",
       python("import threading, time\n"
              "for _ in range(300):\n"
              "    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()")},
      {"SharedMemoryOfFortyProcesses", {"/usr/bin/python3", SUBJECT_PROGRAM, "share", "40"}},
      {"ListeningSockets",
       python("import socket\n"
              "held = [socket.create_server(('127.0.0.1', 0)) for _ in range(5)]\n"
              "held.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))\n"
              "held[-1].bind(('127.0.0.1', 0))")},
      {"UnixPairs",
       python("import os, socket\n"
              "held = [socket.socketpair(), socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)]\n"
              "if os.fork() == 0:\n"
              "    held[0][1].recv(1)")},
      {"ConnectedUnixServer", python("import os, socket, tempfile\n"
                                     "server = socket.socket(socket.AF_UNIX)\n"
                                     "server.bind(os.path.join(tempfile.mkdtemp(), 'socket'))\n"
                                     "server.listen()\n"
                                     "client = socket.socket(socket.AF_UNIX)\n"
                                     "client.connect(server.getsockname())\n"
                                     "accepted = server.accept()")},
      {"KernelObjects",
       python("import os, select, ctypes\n"
              "libc = ctypes.CDLL(None)\n"
              "held = [select.epoll(), os.eventfd(0), libc.inotify_init(), libc.timerfd_create(1, "
              "0),\n"
              "        os.memfd_create('memory'), os.pipe(), os.pidfd_open(os.getpid())]\n"
              "os.ftruncate(held[4], 8 << 20)\n"
              "os.write(held[4], bytes(4 << 20))\n"
              "held[0].register(held[1], select.EPOLLIN)")},
      {"SmallDeletedFile", python("import os, tempfile\n"
                                  "held = tempfile.TemporaryFile()\n"
                                  "held.write(bytes(1000))\n"
                                  "held.flush()")},
      {"DevicesOfMemory",
       python("held = [open(path, 'rb') for path in ('/dev/null', '/dev/zero', '/dev/urandom')]")},
      {"AZombieChild", python("import os\nif os.fork() == 0: os._exit(0)")},
      {"ATerminalOfItsOwn", python("import os\nheld = os.openpty()")},
      {"Node",
       {"/usr/bin/node", "-e",
        "let i = 0; require('net').createServer().listen(0, '127.0.0.1');"
        "setInterval(() => console.log(++i), 50)"}},
      {"Sqlite", python("import sqlite3, tempfile, os\n"
                        "held = sqlite3.connect(os.path.join(tempfile.mkdtemp(), 'db'))\n"
                        "held.execute('create table t (x)')\n"
                        "held.execute('begin immediate')\n"
                        "held.execute('insert into t values (1)')")},
      {"BusyboxShell", {"/bin/busybox", "sh", "-c", kCount}},
      {"HttpServer",
       python("import http.server, threading\n"
              "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0),\n"
              "                                         http.server.BaseHTTPRequestHandler)\n"
              "threading.Thread(target=server.serve_forever, daemon=True).start()")},
      {"PoolOfWorkers", python("import multiprocessing\n"
                               "pool = multiprocessing.Pool(4)\n"
                               "assert pool.map(abs, range(-8, 0)) == list(range(8, 0, -1))")},
      {"AsyncioServer", python("import asyncio, threading\n"
                               "async def serve():\n"
                               "    async with await asyncio.start_server(print, '127.0.0.1', 0):\n"
                               "        await asyncio.sleep(600)\n"
                               "threading.Thread(target=asyncio.run, args=(serve(),),\n"
                               "                 daemon=True).start()")},
      {"TimersAndSignals", python("import signal\n"
                                  "signal.signal(signal.SIGALRM, lambda *_: None)\n"
                                  "signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)\n"
                                  "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])")},
      {"LockedFile", python("import fcntl, tempfile\n"
                            "held = tempfile.NamedTemporaryFile()\n"
                            "fcntl.flock(held, fcntl.LOCK_EX)")},
      {"MappedFiles", python("import mmap, tempfile\n"
                             "held = tempfile.NamedTemporaryFile()\n"
                             "held.truncate(1 << 20)\n"
                             "shared = mmap.mmap(held.fileno(), 0)\n"
                             "private = mmap.mmap(held.fileno(), 0, mmap.MAP_PRIVATE)\n"
                             "shared[:5] = private[5:10] = b'hello'")},
      {"WaitingChild", python("import os, signal\n"
                              "if os.fork() == 0: signal.pause()\n")},
      {"NodeWorker",
       {"/usr/bin/node", "-e",
        "const { Worker } = require('worker_threads');"
        "new Worker('setInterval(() => {}, 50)', { eval: true });"
        "let i = 0; setInterval(() => console.log(++i), 50)"}},
      {"PerlWithAChild",
       {"/usr/bin/perl", "-MSocket", "-e",
        "$| = 1; socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); if (fork == 0) { <B>; exit }"
        "while (1) { print ++$i, \"\\n\"; select(undef, undef, undef, 0.05) }"}},
      {"CppProgram", {CHURN_PROGRAM, "--mib", "4"}},
      {"Java",
       {"/usr/bin/java", "-XX:+UseSerialGC",
        std::filesystem::path(SUBJECT_PROGRAM).parent_path() / "Count.java"}},
      // A database that is written in Go, with its files and its server.
      {"Prometheus",
       {"/bin/sh", "-c",
        std::string("d=$(mktemp -d); /usr/bin/prometheus --config.file=/dev/null "
                    "--storage.tsdb.path=$d --web.listen-address=127.0.0.1:0 >/dev/null 2>&1 & "
                    "until [ -e $d/wal ]; do sleep 0.05; done; ") +
            kCount}},
      // A database with a server. Redis saves nothing to the disk here, so all data is in memory.
      {"Redis",
       {"/bin/sh", "-c",
        std::string("d=$(mktemp -d) && cd $d && [ -x /usr/bin/redis-server ] || exit 1; "
                    "/usr/bin/redis-server --port 0 --unixsocket $d/socket --save '' --dir $d "
                    ">/dev/null 2>&1 & "
                    "until [ \"$(redis-cli -s socket set kept before 2>&1)\" = OK ]; do "
                    "sleep 0.05; done; ") +
            kCount},
       "redis-cli -s socket get kept && redis-cli -s socket set kept after && "
       "redis-cli -s socket set kept before",
       "before\nOK\nOK\n"},
  };
}

// Ends a process and all its descendants, which would otherwise live on.
class WholeTree {
 public:
  explicit WholeTree(pid_t root) : root_(root) {}
  ~WholeTree() {
    for (const pid_t pid : probe::process_tree(root_)) kill(pid, SIGKILL);
  }
  WholeTree(const WholeTree&) = delete;
  WholeTree& operator=(const WholeTree&) = delete;

 private:
  const pid_t root_;
};

class PreflightTest : public testing::TestWithParam<Healthy> {};

TEST_P(PreflightTest, AHealthyProcessIsNotRefusedAndIsDumpedAndRestored) {
  KYMO_NEEDS_CRIU();
  const Healthy& healthy = GetParam();
  if (access(healthy.words.front().c_str(), X_OK) != 0) {
    GTEST_SKIP() << healthy.words.front() << " is not installed";
  }
  Kymod kymod;
  kymod.start();
  std::vector<std::string> words{"run", "process", "--name", "healthy", "--"};
  words.insert(words.end(), healthy.words.begin(), healthy.words.end());
  const json job = kymod.kymo_json(words);
  const WholeTree tree(job["pid"].get<pid_t>());
  ASSERT_TRUE(kymod.goes_on(job)) << read_file(job["stderr_path"]);
  const Outcome looked = kymod.kymo({"check", "process", job["pid"].dump()});
  EXPECT_EQ(looked.exit_code, 0) << looked.out << looked.err;
  EXPECT_EQ(looked.out.find("refuses: "), std::string::npos) << looked.out;
  EXPECT_EQ(looked.out.find("warns: "), std::string::npos) << looked.out;
  if (KYMO_SANITIZER) return;  // the test of the release build dumps and restores it
  const Outcome dumped =
      kymod.kymo({"dump", "process", "healthy", "--dir", kymod.path("checkpoint")});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const Outcome restored = kymod.kymo({"restore", kymod.path("checkpoint")});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(kymod.goes_on(kymod.job("healthy")));
  if (healthy.query.empty()) return;
  const Outcome asked =
      run({"/bin/sh", "-c", "cd /proc/" + job["pid"].dump() + "/cwd && " + healthy.query});
  EXPECT_EQ(asked.out, healthy.answer) << asked.err;
}

INSTANTIATE_TEST_SUITE_P(Healthy, PreflightTest, testing::ValuesIn(healthy_programs()),
                         [](const auto& of) { return std::string(of.param.name); });

// What a process of tests/checkpoint/preflight/target.py has open, and how its dump fails.
struct Held {
  const char* what;
  const char* failure;
  const char* grade;
};

std::ostream& operator<<(std::ostream& out, const Held& held) {
  return out << held.what;
}

class ForeseenTest : public testing::TestWithParam<Held> {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
  }
  // The grade of the finding with this id, or "missed" if there is none.
  std::string foreseen(pid_t pid, const std::string& failure) const {
    const Outcome looked = kymod_.kymo({"check", "process", std::to_string(pid), "--json"});
    const json report = json::parse(looked.out, nullptr, false);
    EXPECT_TRUE(report.is_object()) << looked.out << looked.err;
    for (const json& finding : report["findings"]) {
      if (finding["failure"] == failure) return finding["grade"];
    }
    return "missed: " + looked.out;
  }
  void expect_fails(pid_t pid, const std::string& failure) const {
    const Outcome dumped =
        kymod_.kymo({"dump", "process", std::to_string(pid), "--force", "--dir", kymod_.path("c")});
    EXPECT_EQ(dumped.exit_code, 1);
    EXPECT_NE(dumped.err.find("(failure " + failure + "; CRIU: "), std::string::npos) << dumped.err;
  }

  Kymod kymod_;
};

TEST_P(ForeseenTest, CriuFailsAsForeseen) {
  const Target target(
      {"/usr/bin/python3", TARGET_PROGRAM, GetParam().what, kymod_.folder().path()});
  if (!target.is_ready()) {
    ASSERT_TRUE(target.printed().starts_with("cannot: ")) << target.printed();
    GTEST_SKIP() << target.printed();
  }
  const pid_t pid = target.child() != 0 ? target.child() : target.pid();
  EXPECT_EQ(foreseen(pid, GetParam().failure), GetParam().grade);
  expect_fails(pid, GetParam().failure);
}

INSTANTIATE_TEST_SUITE_P(Each, ForeseenTest,
                         testing::Values(Held{"traced-child", "freeze-timeout", "refuses"},
                                         Held{"nested-names", "nested-ns", "refuses"},
                                         Held{"lost-mount", "mount-lookup", "refuses"},
                                         Held{"inherited-files", "mount-lookup", "refuses"},
                                         Held{"slave-mount", "mnt-sharing", "warns"},
                                         Held{"probed", "uprobes", "warns"},
                                         Held{"netlink-unread", "netlink-data", "warns"},
                                         Held{"epoll-closed", "epoll", "warns"},
                                         Held{"big-deleted-mapping", "ghost-big", "refuses"},
                                         Held{"secret-memory", "secret-memory", "refuses"},
                                         Held{"secret-mapping", "secret-memory", "refuses"},
                                         Held{"huge-pages", "huge-pages", "warns"},
                                         Held{"few-files", "nofile-low", "refuses"},
                                         Held{"time-of-children", "nested-ns", "refuses"},
                                         Held{"other-user", "limits-unseen", "refuses"},
                                         Held{"tcp-closing", "tcp-established", "refuses"},
                                         Held{"kvm", "fd-unsupported", "refuses"}),
                         [](const auto& of) {
                           std::string name = of.param.what;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class PreflightOfTest : public ForeseenTest {};

TEST_F(PreflightOfTest, AProcessInTheSessionOfAnotherIsRefused) {
  const Target target(kInASession);
  ASSERT_TRUE(target.is_ready());
  EXPECT_EQ(foreseen(target.child(), "tty-session"), "refuses");
  expect_fails(target.child(), "tty-session");
}

TEST_F(PreflightOfTest, AFrozenProcessIsRefusedUntilItIsUnfrozen) {
  const json job = kymod_.churn(1, "cold");
  const json frozen = kymod_.kymo_json({"freeze", "process", "cold"});
  if (frozen["how"].get<std::string>().find("SIGSTOP") != std::string::npos) {
    ASSERT_EQ(kymod_.kymo({"unfreeze", "process", "cold"}).exit_code, 0);
    GTEST_SKIP() << "it is in no cgroup that can be frozen";
  }
  const pid_t pid = job["pid"].get<pid_t>();
  EXPECT_EQ(foreseen(pid, "freeze-timeout"), "refuses");
  const Outcome dumped = kymod_.kymo({"dump", "process", "cold", "--dir", kymod_.path("frozen")});
  EXPECT_EQ(dumped.exit_code, 1);
  EXPECT_NE(dumped.err.find("it is frozen"), std::string::npos) << dumped.err;
  EXPECT_EQ(kymod_.kymo({"unfreeze", "process", "cold"}).exit_code, 0);
  EXPECT_EQ(foreseen(pid, "freeze-timeout").rfind("missed", 0), 0U);
}

// CRIU reads these configuration files in each dump.
class ConfiguredTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    home_.folder(".criu");
    home_.file(".criu/default.conf", "ghost-limit 512M\n");
    setenv("HOME", home_.path().c_str(), 1);  // kymod inherits it
    kymod_.start();
  }
  void TearDown() override { setenv("HOME", before_.c_str(), 1); }

  TemporaryDirectory home_;
  Kymod kymod_;

 private:
  std::string before_ = std::getenv("HOME") == nullptr ? "/root" : std::getenv("HOME");
};

TEST_F(ConfiguredTest, WhatCriuIsConfiguredToDumpIsNotRefused) {
  const Target target({"/usr/bin/python3", TARGET_PROGRAM, "big-deleted-mapping", home_.path()});
  ASSERT_TRUE(target.is_ready()) << target.printed();
  const std::string pid = std::to_string(target.pid());
  const Outcome looked = kymod_.kymo({"check", "process", pid});
  EXPECT_EQ(looked.exit_code, 0) << looked.out << looked.err;
  const Outcome dumped =
      kymod_.kymo({"dump", "process", pid, "--leave-running", "--dir", kymod_.path("c")});
  EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
}

class StateTest : public ForeseenTest {
 protected:
  // The names of what a restore does not bring back, by `kymo check`.
  std::set<std::string> named(pid_t pid) const {
    const Outcome looked = kymod_.kymo({"check", "process", std::to_string(pid), "--json"});
    const std::string begin = "a restore does not bring back ";
    const json report = json::parse(looked.out);
    std::set<std::string> names;
    for (const json& finding : report["findings"]) {
      EXPECT_EQ(finding["failure"], "not-restored") << looked.out;
      std::string rest = finding["what"].get<std::string>().substr(begin.size()) + ", ";
      for (std::size_t at = 0; (at = rest.find(", ")) != std::string::npos;) {
        names.insert(rest.substr(0, at));
        rest.erase(0, at + 2);
      }
    }
    return names;
  }
  json told(const std::string& name) const {
    const std::string path = kymod_.path("state") + "/" + name;
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(path); })) << path;
    return json::parse(read_file(path), nullptr, false);
  }
};

// All of it was lost, and nothing said so.
TEST_F(StateTest, WhatARestoreLosesIsNamedBeforeTheDumpAndNothingElseIs) {
  std::filesystem::create_directory(kymod_.path("state"));
  Target target({"/usr/bin/python3", LOSSY_PROGRAM, kymod_.path("state")});
  const json before = told("before");
  const pid_t pid = target.pid();
  const std::set<std::string> names = named(pid);
  const Outcome dumped =
      kymod_.kymo({"dump", "process", std::to_string(pid), "--dir", kymod_.path("checkpoint")});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_NE((dumped.out + dumped.err).find("EFD_SEMAPHORE"), std::string::npos) << dumped.err;
  target.end();
  const Outcome restored = kymod_.kymo({"restore", kymod_.path("checkpoint")});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  const WholeTree tree(pid);
  std::ofstream(kymod_.path("state") + "/go").close();
  const json after = told("after");
  std::set<std::string> lost;
  for (const auto& [name, value] : before.items()) {
    if (after[name] != value) lost.insert(name.substr(0, name.find('@')));
  }
  std::vector<std::string> differ;
  std::set_symmetric_difference(names.begin(), names.end(), lost.begin(), lost.end(),
                                std::back_inserter(differ));
  EXPECT_EQ(differ, std::vector<std::string>())
      << "named but not lost, or lost but not named; named: " << json(names)
      << "\nbefore: " << before << "\nafter: " << after;
  EXPECT_GE(lost.size(), 70U) << "the program could not set what is known to be lost";
}

class DumpPreflightTest : public ForeseenTest {
 protected:
  Outcome dump(pid_t pid, const std::vector<std::string>& flags) const {
    std::vector<std::string> words{
        "dump", "process", std::to_string(pid), "--leave-running", "--dir", kymod_.path("of")};
    words.insert(words.end(), flags.begin(), flags.end());
    return kymod_.kymo(words);
  }
};

TEST_F(DumpPreflightTest, ARefusedDumpMakesNothingAndIsNoFailure) {
  const Target target({"/usr/bin/python3", TARGET_PROGRAM, "lost-mount", kymod_.folder().path()});
  ASSERT_TRUE(target.is_ready()) << target.printed();
  const Outcome refused = dump(target.pid(), {});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("it would fail: "), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("(failure mount-lookup). Pass --force to skip this check"),
            std::string::npos)
      << refused.err;
  EXPECT_NE(access(kymod_.path("of").c_str(), F_OK), 0);
  EXPECT_EQ(kymod_.kymo_json({"checkpoints"}), json::array());
  const std::string metrics = run({"curl", "-s", "http://" + kymod_.http() + "/metrics"}).out;
  EXPECT_EQ(metrics.find("kymo_failures_total{request=\"dump\",reason=\"mount-lookup\"} 1"),
            std::string::npos);
  const Outcome forced = dump(target.pid(), {"--force"});
  EXPECT_NE(forced.err.find("(failure mount-lookup; CRIU: "), std::string::npos) << forced.err;
}

TEST_F(DumpPreflightTest, AWarningIsLeftToCriu) {
  const Target target({"/usr/bin/python3", "-c",
                       "import os, time\n"
                       "ends = os.pipe2(os.O_DIRECT)\n"
                       "print('ready', flush=True)\n"
                       "time.sleep(600)"});
  ASSERT_TRUE(target.is_ready()) << target.printed();
  EXPECT_EQ(foreseen(target.pid(), "pipe-packet"), "warns");
  const Outcome dumped = dump(target.pid(), {});
  EXPECT_NE(dumped.err.find("(failure pipe-packet; CRIU: "), std::string::npos) << dumped.err;
}

TEST_F(DumpPreflightTest, TheOptionsOfTheDumpTakeFindingsAway) {
  const Target target(
      {"/usr/bin/python3", TARGET_PROGRAM, "big-deleted-mapping", kymod_.folder().path()});
  ASSERT_TRUE(target.is_ready()) << target.printed();
  const Outcome refused = dump(target.pid(), {});
  EXPECT_NE(refused.err.find("(failure ghost-big)"), std::string::npos) << refused.err;
  const Outcome dumped = dump(target.pid(), {"--ghost-limit", "64M"});
  EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
}

// The dump said only how to bring it back, which CRIU then refused.
TEST_F(DumpPreflightTest, AForcedDumpSaysWhatItsRestoreLacks) {
  const Target target({"/usr/bin/python3", "-c",
                       "import ctypes, struct, time\n"
                       "deadline = struct.pack('IIQiIQQQ', 48, 6, 0, 0, 0, 10**7, 10**8, 10**8)\n"
                       "failed = ctypes.CDLL(None).syscall(314, 0, deadline, 0)\n"
                       "print('cannot: sched_setattr' if failed else 'ready', flush=True)\n"
                       "time.sleep(600)"});
  if (!target.is_ready()) GTEST_SKIP() << target.printed();
  const Outcome refused = dump(target.pid(), {});
  EXPECT_NE(refused.err.find("(failure sched-policy)"), std::string::npos) << refused.err;
  const Outcome forced = dump(target.pid(), {"--force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_NE(forced.err.find("policy SCHED_DEADLINE"), std::string::npos) << forced.err;
}

// The list of an epoll set, open a hundred times, needs more than the 64 MiB that kymod permits for
// this.
TEST_F(DumpPreflightTest, ATargetThatIsTooLargeToLookAtIsDumped) {
  const Target target({"/usr/bin/python3", "-c",
                       "import os, resource, select, time\n"
                       "resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))\n"
                       "polled = select.epoll()\n"
                       "held = [os.dup(polled.fileno()) for _ in range(100)]\n"
                       "event = os.eventfd(0)\n"
                       "for _ in range(11000): polled.register(os.dup(event), select.EPOLLIN)\n"
                       "print('ready', flush=True)\n"
                       "time.sleep(600)"});
  ASSERT_TRUE(target.is_ready()) << target.printed();
  const Outcome dumped = dump(target.pid(), {});
  EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_TRUE(kymod_.logs("what could make it fail was not checked: ")) << kymod_.log();
}

TEST_F(PreflightOfTest, ADryRunSaysTheSameAndDumpsNothing) {
  const json job = kymod_.churn(1, "dry");
  const Outcome checked = kymod_.kymo({"check", "process", "dry"});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("nothing found that makes a dump fail"), std::string::npos);
  const Outcome dry =
      kymod_.kymo({"dump", "process", "dry", "--dry-run", "--dir", kymod_.path("none")});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_NE(dry.out.find("nothing found that makes a dump fail"), std::string::npos) << dry.out;
  EXPECT_NE(access(kymod_.path("none").c_str(), F_OK), 0);
  EXPECT_TRUE(kymod_.goes_on(job));
  const Outcome unknown = kymod_.kymo({"check", "process", "nobody"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("nobody"), std::string::npos) << unknown.err;
}

TEST_F(PreflightOfTest, TheForecastIsJudgedByEarlierDumps) {
  static_cast<void>(kymod_.churn(4, "work"));
  const auto forecast = [&] { return kymod_.kymo_json({"check", "process", "work"})["forecast"]; };
  EXPECT_EQ(forecast()["dumps"], 0);
  static_cast<void>(kymod_.churn(4, "other"));
  for (const char* name : {"other", "work", "work"}) {
    static_cast<void>(kymod_.kymo_json({"dump", "process", name, "--leave-running"}));
    EXPECT_EQ(forecast()["of_others"], name == std::string("other")) << forecast();
  }
  const json last = forecast();
  EXPECT_EQ(last["dumps"], 2);
  EXPECT_GE(last["written_bytes"]["low"].get<std::uint64_t>(), std::uint64_t{4} << 20U) << last;
  for (const char* what : {"stood_still_ns", "total_ns"}) {
    EXPECT_GT(last[what]["low"], 0) << last;
    EXPECT_LE(last[what]["low"], last[what]["expected"]) << last;
    EXPECT_LE(last[what]["expected"], last[what]["high"]) << last;
  }
  const Outcome shown = kymod_.kymo({"dump", "process", "work", "--dry-run"});
  EXPECT_NE(shown.out.find("judged by 2 earlier dumps, which wrote "), std::string::npos)
      << shown.out;
}

}  // namespace
}  // namespace kymo::test
