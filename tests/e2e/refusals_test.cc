// Wrong input gets one clear line and the right exit code, and nothing is lost.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

void expect_refusal(const Outcome& outcome, int exit_code, const std::string& says) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
  // kymod logs its configuration first. The refusal is the last line.
  const std::size_t at = outcome.err.find("\nkymo");
  const std::string line = at == std::string::npos ? outcome.err : outcome.err.substr(at + 1);
  EXPECT_EQ(line.rfind("kymo", 0), 0U) << outcome.err;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << outcome.err;
}

// Runs a kymod that must not start.
Outcome kymod_with(const TemporaryDirectory& folder, std::vector<std::string> flags) {
  const auto set = [&](const char* flag, const std::string& value) {
    if (std::find(flags.begin(), flags.end(), flag) == flags.end()) {
      flags.insert(flags.end(), {flag, value});
    }
  };
  set("--socket", folder.path() + "/refused.sock");
  set("--state-dir", folder.path() + "/refused");
  set("--http", "127.0.0.1:0");
  set("--criu", criu_path());
  flags.insert(flags.begin(), KYMOD_PROGRAM);
  Outcome outcome = run(flags);
  EXPECT_FALSE(fs::exists(folder.path() + "/refused.sock"))
      << "a kymod that does not start must leave no socket";
  return outcome;
}

// Copies kymo to a folder where every user may run it, because the build folder may be closed to
// others.
std::string kymo_for_everybody(const Kymod& kymod) {
  std::string program = kymod.path("kymo");
  fs::copy_file(KYMO_PROGRAM, program, fs::copy_options::skip_existing);
  EXPECT_EQ(chmod(program.c_str(), 0755), 0);
  EXPECT_EQ(chmod(kymod.folder().path().c_str(), 0755), 0);
  return program;
}

TEST(RefusalsTest, WrongFlagsOfTheDaemonAreRefused) {
  const TemporaryDirectory folder;
  expect_refusal(kymod_with(folder, {"--profiling-metrics", "pages_writen"}), 2,
                 "did you mean pages_written?");
  expect_refusal(kymod_with(folder, {"--profiling-metrics-rate-us", "0"}), 2, "at least 1");
  expect_refusal(kymod_with(folder, {"--profiling-metrics-rate-us", "fast"}), 2,
                 "--profiling-metrics-rate-us");
  expect_refusal(kymod_with(folder, {"--profiling-metrics-log", folder.path() + "/missing/x.tsv"}),
                 1, "does not exist");
  expect_refusal(kymod_with(folder, {"--http", "nowhere"}), 2, "HOST:PORT");
  expect_refusal(kymod_with(folder, {"--http", "127.0.0.1:70000"}), 2, "65535");
  expect_refusal(kymod_with(folder, {"--socket-group", "no-such-group"}), 2, "no such group");
  expect_refusal(kymod_with(folder, {"--socket", folder.path() + "/" + std::string(200, 'x')}), 2,
                 "longer than");
  expect_refusal(kymod_with(folder, {"--bogus"}), 2, "--bogus");
}

TEST(RefusalsTest, AnEmptyListOfMetricsPrintsTheChoices) {
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {KYMOD_PROGRAM, "--profiling-metrics="}, {KYMOD_PROGRAM, "--profiling-metrics", ""}}) {
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.exit_code, 2);
    for (const char* name : {"pages_written", "image_written_bytes", "profiler_rows"}) {
      EXPECT_NE(outcome.err.find(name), std::string::npos) << outcome.err;
    }
  }
}

TEST(RefusalsTest, AMissingCriuAndOneThatFailsAreNamed) {
  const TemporaryDirectory folder;
  expect_refusal(kymod_with(folder, {"--criu", folder.path() + "/criu"}), 1, "no such program");
  expect_refusal(kymod_with(folder, {"--criu", "no-such-criu"}), 1, "not found on PATH");
  const std::string failing = folder.file("failing", "#!/bin/sh\nexit 1\n", 0755);
  expect_refusal(kymod_with(folder, {"--criu", failing}), 1, failing);
}

TEST(RefusalsTest, TheSocketOrStateDirectoryOfAnotherDaemonIsRefused) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const TemporaryDirectory folder;
  Outcome second = kymod_with(folder, {"--socket", kymod.socket()});
  expect_refusal(second, 1, "is already served");
  expect_refusal(kymod_with(folder, {"--state-dir", kymod.state()}), 1, "is in use");
  expect_refusal(kymod_with(folder, {"--http", kymod.http()}), 1, "the port is in use");
  EXPECT_EQ(kymod.kymo({"ps"}).exit_code, 0) << "the first one is unharmed";
}

TEST(RefusalsTest, AFileInTheSocketsPlaceIsKept) {
  const TemporaryDirectory folder;
  const std::string file = folder.file("file", "precious");
  expect_refusal(kymod_with(folder, {"--socket", file}), 1, "this file is not a socket");
  EXPECT_EQ(read_file(file), "precious");
}

TEST(RefusalsTest, EachWrongRequestIsRefusedWithItsReason) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  const auto refused = [&](const std::vector<std::string>& args, const std::string& says) {
    expect_refusal(kymod.kymo(args), 1, says);
  };
  refused({"dump", "process", "999999999"}, "999999999");
  if (read_file("/proc/2/comm") == "kthreadd\n") {  // a container shows no kernel threads
    refused({"dump", "process", "2"}, "kernel thread");
  }
  refused({"dump", "process", "nobody"}, "no job is named nobody");
  refused({"dump", "process", "work", "--dir", kymod.state()}, "keeps files of its own there");
  refused({"dump", "process", "work", "--dir", "/usr"}, "is not empty");
  refused({"dump", "process", "work", "--dir", "/proc/kymo"}, "/proc/kymo");
  refused({"restore", "process", kymod.path("missing")}, "No such file");
  EXPECT_EQ(
      kymod.kymo({"restore", "no-job"}).err,
      "kymo: restore no-job: there is no job, checkpoint or folder of that name: kymo checkpoints "
      "lists the checkpoints\n");
  refused({"restore", "process", kymod.state()}, "neither a checkpoint nor CRIU images");
  refused({"run", "process", "--", kymod.path("missing")}, "No such file");
  refused({"run", "process", "--name", "work", "--", "true"}, "exists already");
  refused({"run", "process", "--name", "a/b", "--", "true"}, "a name has");
  // Control characters must be shown, and must not reach the terminal.
  refused({"run", "process", "--name", "a\x1b[31m\u202e", "--", "true"}, "'a?[31m?'");
  refused({"dump", "process", "work\n\x1b]0;title\x07"}, "work??]0;title?");
  EXPECT_TRUE(kymod.goes_on(job));
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work", "--leave-running"});
  const std::string dir = dump["directory"];
  ended_metadata(dump["recording"]);
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(dir)) names.insert(entry.path());
    return names;
  };
  const std::set<std::string> before = files();
  refused({"restore", "process", dir}, "in use");
  refused({"restore", "process", dir + "/images"}, "in use");
  EXPECT_EQ(files(), before);
  EXPECT_FALSE(fs::exists(kymod.state() + "/restores"))
      << "a refused restore of images without a checkpoint must leave nothing, either";
  EXPECT_TRUE(kymod.logs("in use"));
  EXPECT_EQ(kymod.log().find('\x1b'), std::string::npos) << kymod.log();
}

TEST(RefusalsTest, DamagedAndNewerRecordsAreRefused) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const std::string dir = kymod.folder().folder("old");
  static_cast<void>(kymod.folder().file("old/checkpoint.json", R"({"format_version": 99})"));
  expect_refusal(kymod.kymo({"restore", "process", dir}), 1, "format_version 99");
  static_cast<void>(kymod.folder().file("old/checkpoint.json", "{\"form"));
  expect_refusal(kymod.kymo({"restore", "process", dir}), 1, "damaged");
}

// Reads and writes wait two seconds for another process that has the database locked. The next
// request must work again.
TEST(RefusalsTest, ADatabaseThatAnotherProcessHasLockedIsRefused) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  const std::string locked = kymod.path("locked");
  const std::string let_go = kymod.path("let-go");
  std::thread holder([&] {
    static_cast<void>(run({"/usr/bin/python3", "-c",
                           "import os, sqlite3, sys, time\n"
                           "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
                           "db.execute('BEGIN EXCLUSIVE')\n"
                           "open(sys.argv[2], 'w').close()\n"
                           "while not os.path.exists(sys.argv[3]): time.sleep(0.01)\n",
                           kymod.state() + "/kymo.db", locked, let_go}));
  });
  EXPECT_TRUE(eventually([&] { return fs::exists(locked); }));
  expect_refusal(kymod.kymo({"dump", "process", "work", "--dir", kymod.path("c")}), 1, "kymo.db");
  static_cast<void>(kymod.folder().file("let-go", ""));
  holder.join();
  EXPECT_TRUE(kymod.goes_on(job));
  static_cast<void>(kymod.kymo_json({"dump", "process", "work", "--dir", kymod.path("c2")}));
}

TEST(RefusalsTest, ADamagedDatabaseIsMovedAsideAndSaid) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  EXPECT_EQ(kymod.stop(SIGTERM), 0);
  const std::string database = kymod.state() + "/kymo.db";
  static_cast<void>(kymod.folder().file("state/kymo.db", std::string(8192, 'x')));
  kymod.start();
  EXPECT_EQ(read_file(database + ".corrupt-1"), std::string(8192, 'x'));
  EXPECT_TRUE(kymod.logs("moved to " + database + ".corrupt-1")) << kymod.log();
  EXPECT_TRUE(kymod.kymo_json({"ps"}).empty());
}

TEST(RefusalsTest, WithoutADaemonACommandSaysSo) {
  const TemporaryDirectory folder;
  expect_refusal(run({KYMO_PROGRAM, "ps", "--socket", folder.path() + "/none"}), 1, "start kymod");
}

TEST(RefusalsTest, ASocketThatIsNotKymodsIsSaid) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/socket";
  const auto expect_refused = [&](const std::string& server, const std::string& says) {
    SCOPED_TRACE(says);
    std::filesystem::remove(path);
    std::filesystem::remove(path + ".ready");
    const Outcome started = run({"sh", "-c", server + " >/dev/null 2>&1 & echo $!"});
    const pid_t pid = std::stoi(started.out);
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(path + ".ready"); }));
    expect_refusal(run({KYMO_PROGRAM, "ps", "--socket", path}), 1, says);
    kill(pid, SIGKILL);
  };
  const std::string python =
      "exec python3 -c 'import socket, time\ns = socket.socket(socket.AF_UNIX)\n"
      "s.bind(\"" +
      path + "\")\ns.listen(0)\nopen(\"" + path + ".ready\", \"w\")\n";
  expect_refused(python + "time.sleep(1000)'", "nothing is sent");
  expect_refused(
      "exec python3 -c 'import socket, time\ns = socket.socket(socket.AF_UNIX)\n"
      "s.bind(\"" +
          path +
          "\")\ns.listen(0)\nc = socket.socket(socket.AF_UNIX)\n"
          "c.connect(\"" +
          path + "\")\nopen(\"" + path + ".ready\", \"w\")\ntime.sleep(1000)'",
      "no connection is accepted");
  expect_refused(python + "c, a = s.accept(); c.send(b\"220 mail ready\\r\\n\"); time.sleep(1000)'",
                 "the answer is not gRPC");
  expect_refused(python + "c, a = s.accept(); c.close(); time.sleep(1000)'",
                 "the connection was closed");
}

TEST(RefusalsTest, AnotherUserIsRefusedByModeAndByCredentials) {
  KYMO_NEEDS_CRIU();
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  Kymod kymod;
  kymod.start();
  struct stat info {};
  ASSERT_EQ(stat(kymod.socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  const std::vector<std::string> as_nobody{
      "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", kymo_for_everybody(kymod),
      "ps",      "--socket",      kymod.socket()};
  expect_refusal(run(as_nobody), 1, "permission denied");
  // The mode of the socket now lets every user connect, but kymod also checks who calls.
  ASSERT_EQ(chmod(kymod.socket().c_str(), 0666), 0);
  expect_refusal(run(as_nobody), 1, "refused this user");
  EXPECT_TRUE(kymod.logs("refused a caller"));
  EXPECT_TRUE(kymod.logs("uid 65534"));
}

TEST(RefusalsTest, TheSocketsGroupMayConnect) {
  KYMO_NEEDS_CRIU();
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  Kymod kymod({"--socket-group", "daemon"});
  kymod.start();
  struct stat info {};
  ASSERT_EQ(stat(kymod.socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0660U);
  const std::string group = std::to_string(info.st_gid);
  const auto as_member = [&, kymo = kymo_for_everybody(kymod)](std::vector<std::string> words) {
    words.insert(words.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--groups=" + group,
                                 kymo, "--socket", kymod.socket()});
    return run(words);
  };
  const Outcome member = as_member({"ps"});
  EXPECT_EQ(member.exit_code, 0) << member.err;
  // These options would give a restored process files of the machine.
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{"--inherit-fd", "a=/etc/shadow"},
        {"--external", "mnt[a]:/"},
        {"--root", "/"}}) {
    std::vector<std::string> words{"restore", kymod.path("c")};
    words.insert(words.end(), option.begin(), option.end());
    expect_refusal(as_member(words), 1, option[0] + " gives the restored process files");
    expect_refusal(kymod.kymo(words), 1, "No such file");
  }
}

}  // namespace
}  // namespace kymo::test
