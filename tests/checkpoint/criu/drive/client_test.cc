#include "checkpoint/criu/drive/client.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "checkpoint/criu/drive/program_names.h"
#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

using std::chrono::milliseconds;

class ClientTest : public testing::Test {
 protected:
  Client client(const std::string& path, milliseconds timeout = milliseconds(0)) {
    ClientOptions options;
    options.path = path;
    options.timeout = timeout;
    options.called = [this](const Call& call) { calls_.push_back(call); };
    return Client(options);
  }
  // A client whose criu is this shell script.
  Client script(const std::string& text, milliseconds timeout = milliseconds(0)) {
    return client(folder_.file("criu", "#!/bin/sh\n" + text + "\n", 0755), timeout);
  }

  test::TemporaryDirectory folder_;
  std::vector<Call> calls_;
};

TEST_F(ClientTest, TellsTheVersionAndChecks) {
  KYMO_NEEDS_CRIU();
  const Client real = client(test::criu_path());
  const Result<Version> version = real.version();
  ASSERT_TRUE(version.ok()) << version.error().message;
  EXPECT_GE(version->major, 3);
  EXPECT_EQ(version->text().find(std::to_string(version->major) + "."), 0U);
  const Result<void> check = real.check();
  EXPECT_TRUE(check.ok()) << check.error().message;
  ASSERT_EQ(calls_.size(), 2U);
  EXPECT_EQ(calls_[0].kind, CallKind::version);
  EXPECT_TRUE(calls_[0].ok);
  EXPECT_GT(calls_[0].duration_ns, 0U);
  EXPECT_EQ(calls_[1].kind, CallKind::check);
  EXPECT_TRUE(calls_[1].ok);
  const Result<Features> features = real.features();
  EXPECT_TRUE(features.ok()) << features.error().message;
}

TEST_F(ClientTest, ACriuOfAnyNameIsKnownByItsNameOnceItHasAnswered) {
  KYMO_NEEDS_CRIU();
  EXPECT_FALSE(is_name_of_criu("my-dumper"));
  const std::string words = "#!/bin/sh\n'" + test::criu_path() + "' \"$@\"\n";
  const Result<Version> version = client(folder_.file("my-dumper", words, 0755)).version();
  ASSERT_TRUE(version.ok()) << version.error().message;
  EXPECT_TRUE(is_name_of_criu("my-dumper"));
  EXPECT_FALSE(is_name_of_criu("gdb"));
}

TEST_F(ClientTest, CarriesWhatCriuSaysOfAProcessThatIsGone) {
  KYMO_NEEDS_CRIU();
  const pid_t gone = fork();
  if (gone == 0) {
    _exit(0);
  }
  waitpid(gone, nullptr, 0);
  const Result<DumpReply> dump =
      client(test::criu_path())
          .dump({gone, folder_.folder("images"), folder_.folder("work")}, nullptr);
  ASSERT_FALSE(dump.ok());
  EXPECT_EQ(dump.error().code, Code::failed_precondition) << dump.error().message;
  EXPECT_NE(dump.error().message.find("criu could not dump process " + std::to_string(gone)),
            std::string::npos);
  EXPECT_NE(dump.error().message.find("dump.log"), std::string::npos);
  EXPECT_EQ(dump.error().message.find('\n'), std::string::npos) << dump.error().message;
  EXPECT_FALSE(calls_.back().ok);
}

TEST_F(ClientTest, NamesABinaryThatIsMissing) {
  const std::string path = folder_.path() + "/none";
  const Result<Version> version = client(path).version();
  ASSERT_FALSE(version.ok());
  EXPECT_EQ(version.error().message, "cannot start criu, looked for as '" + path +
                                         "': No such file or directory; install CRIU or name its "
                                         "binary (--criu PATH)");
  EXPECT_EQ(version.error().code, Code::not_found);
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_FALSE(calls_[0].ok);
}

TEST_F(ClientTest, RepeatsTheLastWordsOfABinaryThatFails) {
  const Result<void> check = script("echo 'not on this kernel' >&2; exit 3").check();
  ASSERT_FALSE(check.ok());
  EXPECT_EQ(check.error().code, Code::failed_precondition);
  EXPECT_NE(check.error().message.find("exited with status 3, saying: not on this kernel"),
            std::string::npos)
      << check.error().message;
}

TEST_F(ClientTest, RefusesAnInvalidAnswer) {
  for (const char* answer : {"", "garbage", "Version: four", "Version: 99999999999"}) {
    const Result<Version> version = script(std::string("echo '") + answer + "'").version();
    ASSERT_FALSE(version.ok()) << answer;
    EXPECT_NE(version.error().message.find("did not report its version"), std::string::npos)
        << version.error().message;
  }
}

// Expects that the process whose pid is in this file no longer runs.
void expect_sleeper_gone(const std::string& pid_file) {
  FILE* file = fopen(pid_file.c_str(), "re");
  ASSERT_NE(file, nullptr);
  int sleeper = 0;
  EXPECT_EQ(fscanf(file, "%d", &sleeper), 1);  // NOLINT(cert-err34-c): our own file
  fclose(file);
  // A killed process without a parent may stay a zombie if nobody reaps it, but it must not run.
  EXPECT_TRUE(test::eventually([&] {
    std::error_code error;
    const auto exe =
        std::filesystem::read_symlink("/proc/" + std::to_string(sleeper) + "/exe", error);
    return error || exe.empty();
  }));
}

// The timeout is long enough for a slow machine to start the process that then hangs.
TEST_F(ClientTest, KillsAHungBinaryWithAllThatItStarted) {
  const std::string pid_file = folder_.path() + "/pid";
  for (const milliseconds timeout : {milliseconds(300), milliseconds(3000), milliseconds(30'000)}) {
    const Result<Version> version =
        script("sleep 300 & echo $! > '" + pid_file + "'; wait", timeout).version();
    ASSERT_FALSE(version.ok());
    EXPECT_EQ(version.error().code, Code::deadline_exceeded);
    if (std::filesystem::exists(pid_file) && std::filesystem::file_size(pid_file) != 0) break;
  }
  expect_sleeper_gone(pid_file);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was not reaped";
}

TEST_F(ClientTest, WhatAKilledBinaryHasStartedIsKilled) {
  const std::string pid_file = folder_.path() + "/pid";
  const Result<Version> version =
      script("sleep 300 & echo $! > '" + pid_file + "'; kill -9 $$").version();
  ASSERT_FALSE(version.ok());
  EXPECT_NE(version.error().message.find("SIGKILL"), std::string::npos) << version.error().message;
  expect_sleeper_gone(pid_file);
}

TEST_F(ClientTest, LeavesNoDescriptorOpen) {
  const auto open_now = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open_now();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(script("exit 1").check().ok());
    EXPECT_FALSE(client(folder_.path() + "/none").version().ok());
  }
  EXPECT_EQ(open_now(), before);
}

}  // namespace
}  // namespace kymo::criu
