// A FIFO in the place of a file of a checkpoint: whoever opens it to read waits until somebody writes. No command
// and no thread of kymod may wait there, and kymod must stop when it is told to.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/loopback.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void put_fifo(const std::string& path) {
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0) << path;
}

// Sends a request for this path of the page, and returns the connection.
FileDescriptor look_at(const Kymod& kymod, const std::string& token, const std::string& path) {
  const std::string& address = kymod.http();
  FileDescriptor fd = connect_to_loopback(std::stoi(address.substr(address.find(':') + 1)));
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + address +
                              "\r\nAuthorization: Bearer " + token +
                              "\r\nConnection: close\r\n\r\n";
  std::size_t written = 0;
  EXPECT_EQ(write_all(fd.get(), request, &written), 0);
  return fd;
}

// Reads the answer to its end, and returns its status. 0 if there is none.
int status_of(const FileDescriptor& connection) {
  std::string reply;
  std::array<char, 16384> piece{};
  for (ssize_t got = 1; got > 0;) {
    got = read(connection.get(), piece.data(), piece.size());
    if (got > 0) reply.append(piece.data(), static_cast<std::size_t>(got));
  }
  const std::string begin = "HTTP/1.1 ";
  return reply.starts_with(begin) ? std::stoi(reply.substr(begin.size(), 3)) : 0;
}

class FifoTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
    job_ = kymod_.churn(8, "work");
  }
  void TearDown() override {
    if (job_.is_object()) kill(job_["pid"].get<pid_t>(), SIGKILL);
  }
  [[nodiscard]] std::string dir() const { return kymod_.path("home") + "/c"; }
  [[nodiscard]] std::string state_of_checkpoint() const {
    return kymod_.kymo_json({"checkpoints", "work"}).back()["state"];
  }

  const BreakableCriu criu_;
  Kymod kymod_{{"--criu", criu_.path()}};
  json job_;
};

TEST_F(FifoTest, InThePlaceOfTheRecordEachCommandEndsWithOneLineAndKymodStops) {
  static_cast<void>(kymod_.kymo_json({"dump", "process", "work", "--dir", dir()}));
  const std::string record = dir() + "/checkpoint.json";
  fs::rename(record, record + ".aside");
  put_fifo(record);
  for (const std::string verb : {"restore", "inspect", "verify"}) {
    const Outcome ended = kymod_.kymo({verb, dir()});
    EXPECT_EQ(ended.exit_code, 1) << verb << ": " << ended.out << ended.err;
    const std::string why = "checkpoint.json: it is not a regular file";
    EXPECT_NE(ended.err.find(why), std::string::npos) << verb << ": " << ended.out << ended.err;
    EXPECT_LE(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << verb << ": " << ended.err;
  }
  EXPECT_EQ(kymod_.stop(SIGTERM), 0) << kymod_.log();

  kymod_.start();
  EXPECT_EQ(state_of_checkpoint(), "complete");
  fs::rename(record + ".aside", record);
  const Outcome restored = kymod_.kymo({"restore", dir()});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(kymod_.goes_on(job_)) << read_file(job_["stderr_path"]);
}

TEST_F(FifoTest, InThePlaceOfARecordingThePageIsAnsweredAndKymodStops) {
  const json dump =
      kymod_.kymo_json({"dump", "process", "work", "--leave-running", "--dir", dir()});
  static_cast<void>(ended_metadata(dump["recording"]));
  put_fifo(dump["recording"]);
  const std::string id = kymod_.kymo_json({"checkpoints", "work"}).back()["id"];
  EXPECT_EQ(ask(kymod_, "/api/checkpoint?id=" + id).status, 200);
  const std::string token = token_of(kymod_);
  const std::string path = "/recording?checkpoint=" + id + "&name=dump";
  constexpr int kLooks = 64;
  std::vector<FileDescriptor> looks;
  looks.reserve(kLooks);
  for (int i = 0; i < kLooks; ++i) looks.push_back(look_at(kymod_, token, path));
  for (const FileDescriptor& look : looks) EXPECT_GE(status_of(look), 400);
  for (const char* const other : {"/healthz", "/metrics", "/api/jobs"}) {
    EXPECT_EQ(status_of(look_at(kymod_, token, other)), 200) << other;
  }
  EXPECT_EQ(kymod_.stop(SIGTERM), 0) << kymod_.log();
}

TEST_F(FifoTest, InAFolderOfAnotherUserTheNextKymodStartsAndTheProcessRunsOn) {
  constexpr uid_t kOtherUser = 65534;
  const std::string home = kymod_.path("home");
  kymod_.kill_when_pages_are_dumped(criu_, {"dump", "process", "work", "--dir", dir()});
  std::vector<std::string> files;
  for (const fs::directory_entry& one : fs::recursive_directory_iterator(dir())) {
    if (one.is_regular_file()) files.push_back(one.path());
  }
  ASSERT_NE(std::find(files.begin(), files.end(), dir() + "/checkpoint.json"), files.end());
  for (const std::string& file : files) put_fifo(file);
  ASSERT_EQ(chown(home.c_str(), kOtherUser, kOtherUser), 0);
  ASSERT_EQ(chown(dir().c_str(), kOtherUser, kOtherUser), 0);

  kymod_.start();
  EXPECT_TRUE(kymod_.goes_on(job_)) << read_file(job_["stderr_path"]);
  EXPECT_EQ(state_of_checkpoint(), "unconfirmed");
  EXPECT_EQ(kymod_.stop(SIGTERM), 0) << kymod_.log();

  ASSERT_EQ(chown(home.c_str(), 0, 0), 0);
  ASSERT_EQ(chown(dir().c_str(), 0, 0), 0);
  kymod_.start();
  EXPECT_TRUE(eventually([&] { return state_of_checkpoint() == "failed"; })) << kymod_.log();
  EXPECT_FALSE(fs::exists(dir() + "/images.partial"));
  EXPECT_TRUE(kymod_.goes_on(job_)) << read_file(job_["stderr_path"]);
}

}  // namespace
}  // namespace kymo::test
