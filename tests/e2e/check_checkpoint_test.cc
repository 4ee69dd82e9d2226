// kymo check DIR foresees why the restore of a real checkpoint will fail, and the restore is refused for this reason.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// A program that listens on a port and on a unix socket, and has a file open from which it reads.
constexpr char kServer[] =
    "import socket, sys, time\n"
    "server = socket.create_server(('127.0.0.1', 0))\n"
    "data = open(sys.argv[1])\n"
    "local = socket.socket(socket.AF_UNIX)\n"
    "local.bind(sys.argv[2])\n"
    "local.listen()\n"
    "print(server.getsockname()[1], flush=True)\n"
    "while True:\n"
    "    print(time.monotonic(), flush=True)\n"
    "    time.sleep(0.05)\n";

class CheckCheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
    std::ofstream(file()) << "content";
    fs::create_directory(folder());
    const json job =
        kymod_.kymo_json({"run", "process", "--name", "server", "--", "/usr/bin/python3", "-c",
                          kServer, file(), folder() + "/socket"});
    ASSERT_TRUE(kymod_.goes_on(job)) << read_file(job["stderr_path"]);
    port_ = std::stoi(read_file(job["stdout_path"]));
  }
  void dump(const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words{"dump", "process", "server", "--dir", checkpoint()};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome dumped = kymod_.kymo(words);
    ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  }
  [[nodiscard]] Outcome check() const {
    return kymod_.kymo({"check", checkpoint(), "--criu", criu_path()});
  }
  // Expects that the check refuses only because of this failure, and that the restore is refused by it, before anything
  // is begun.
  void expect_foreseen(const std::string& failure, const std::string& place) const {
    expect_check_refuses(failure, place);
    const std::string said = expect_restore_refused(": it would fail: ");
    EXPECT_NE(said.find("(failure " + failure), std::string::npos) << said;
    EXPECT_NE(said.find(place), std::string::npos) << said;
  }
  void expect_check_refuses(const std::string& failure, const std::string& place) const {
    const Outcome checked = check();
    EXPECT_EQ(checked.exit_code, 1) << checked.out << checked.err;
    const std::size_t at = checked.out.find("(failure " + failure + ")");
    EXPECT_NE(at, std::string::npos) << checked.out;
    EXPECT_NE(checked.out.find(place), std::string::npos) << checked.out;
    EXPECT_NE(checked.out.find("1 finding makes the restore fail"), std::string::npos)
        << checked.out;
  }
  // Returns what it said.
  std::string expect_restore_refused(const std::string& because) const {
    const Outcome refused = kymod_.kymo({"restore", checkpoint()});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find(because), std::string::npos) << refused.err;
    EXPECT_FALSE(fs::exists(log())) << "CRIU was started";
    return refused.err;
  }
  void expect_restored() const {
    const Outcome checked = check();
    EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
    EXPECT_NE(checked.out.find("nothing found that makes a restore fail"), std::string::npos)
        << checked.out;
    const Outcome restored = kymod_.kymo({"restore", checkpoint()});
    EXPECT_EQ(restored.exit_code, 0) << restored.err;
    EXPECT_TRUE(kymod_.goes_on(kymod_.job("server")));
  }

  [[nodiscard]] std::string file() const { return kymod_.path("data"); }
  [[nodiscard]] std::string folder() const { return kymod_.path("sockets"); }
  [[nodiscard]] std::string checkpoint() const { return kymod_.path("checkpoint"); }

  [[nodiscard]] fs::path log() const { return fs::path(checkpoint()) / "work" / "restore.log"; }

  Kymod kymod_;
  int port_ = 0;
};

TEST_F(CheckCheckpointTest, AFileThatIsGoneOrChangedIsForeseenUntilItIsBack) {
  dump();
  fs::rename(file(), file() + ".away");
  expect_foreseen("file-missing", file());
  std::ofstream(file()) << "longer content";
  expect_foreseen("file-size", file() + ", 7 bytes then, 14 now");
  fs::rename(file() + ".away", file());
  fs::permissions(file(), fs::perms::owner_exec, fs::perm_options::add);
  expect_foreseen("file-mode", file());
  fs::permissions(file(), fs::perms::owner_exec, fs::perm_options::remove);
  expect_restored();
}

TEST_F(CheckCheckpointTest, APortThatIsTakenIsForeseenUntilItIsFree) {
  dump();
  {
    const FileDescriptor taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(taken.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(taken.get(), 1), 0);
    expect_foreseen("inet-address", "TCP 127.0.0.1:" + std::to_string(port_));
  }
  expect_restored();
}

TEST_F(CheckCheckpointTest, APidInUseIsForeseen) {
  dump({"--leave-running"});
  const Outcome checked = check();
  EXPECT_EQ(checked.exit_code, 1) << checked.out;
  EXPECT_NE(checked.out.find("(failure pid-taken)"), std::string::npos) << checked.out;
  EXPECT_EQ(kymod_.kymo({"restore", checkpoint()}).exit_code, 1);
  EXPECT_EQ(kymod_.kymo({"kill", "server"}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return check().exit_code == 0; })) << check().out;
}

TEST_F(CheckCheckpointTest, PagesThatAreCutShortAreForeseen) {
  dump();
  for (const fs::directory_entry& image : fs::directory_iterator(checkpoint() + "/images")) {
    if (!image.path().filename().string().starts_with("pages-")) continue;
    fs::resize_file(image.path(), image.file_size() - 4096);
    break;
  }
  expect_check_refuses("pages-cut", "pages-");
  expect_restore_refused(": its images are damaged: pages-");
}

TEST_F(CheckCheckpointTest, JsonAndTheMachineOfTheDump) {
  dump();
  const json record = json::parse(read_file(checkpoint() + "/checkpoint.json"));
  EXPECT_FALSE(record["machine"]["kernel"].get<std::string>().empty());
  EXPECT_FALSE(record["machine"]["cpu_flags"].get<std::string>().empty());
  const json report = kymod_.kymo_json({"check", checkpoint(), "--criu", criu_path()});
  EXPECT_EQ(report["checked"], "restore");
  EXPECT_EQ(report["path"], checkpoint());
  EXPECT_EQ(report["processes"], 1);
  EXPECT_EQ(report["refusing"], 0);
  EXPECT_EQ(report["findings"], json::array());
  EXPECT_GT(report["image_bytes"].get<std::uint64_t>(), 0U);
}

TEST_F(CheckCheckpointTest, AFullRunIsSaidBefore) {
  dump();
  const Outcome checked =
      run({"unshare", "--mount", "sh", "-c",
           "mount -t tmpfs -o size=64k none /run && exec \"$0\" check \"$1\" --criu \"$2\"",
           KYMO_PROGRAM, checkpoint(), criu_path()});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("warns: /run is full"), std::string::npos) << checked.out;
  EXPECT_NE(checked.out.find("(failure disk-full)"), std::string::npos) << checked.out;
}

// A restore on an older kernel or a CPU with fewer features may work. If it fails, the answer names
// these differences as possible causes.
TEST_F(CheckCheckpointTest, TheMachineOfTheDumpIsComparedByTheRestore) {
  dump();
  json record = json::parse(read_file(checkpoint() + "/checkpoint.json"));
  record["machine"]["kernel"] = "999.1";
  record["machine"]["cpu_flags"] = "flag_of_no_cpu";
  std::ofstream(checkpoint() + "/checkpoint.json") << record;
  const auto expect_both = [](const std::string& text) {
    EXPECT_NE(text.find("the kernel is older than that of the dump (Linux 999.1 then, "),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("flag_of_no_cpu"), std::string::npos) << text;
  };
  fs::rename(folder(), folder() + ".away");  // where CRIU would bind the unix socket
  const Outcome failed = kymod_.kymo({"restore", checkpoint()});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_TRUE(fs::exists(log())) << failed.err;
  expect_both(failed.err);
  fs::rename(folder() + ".away", folder());
  expect_both(kymod_.kymo_json({"restore", checkpoint()})["warnings"].dump());
}

TEST_F(CheckCheckpointTest, WhatIsNoCheckpointIsAnError) {
  const Outcome none = kymod_.kymo({"check", kymod_.path("none")});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find(kymod_.path("none")), std::string::npos) << none.err;
}

}  // namespace
}  // namespace kymo::test
