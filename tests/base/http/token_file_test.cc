#include "base/http/token_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temporary_directory.h"

namespace kymo::http {
namespace {

TEST(TokenFileTest, IsMadeOnceForItsOwnerAlone) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/token";
  const Result<std::string> made = load_token(path);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->size(), 64U);
  struct stat file {};
  ASSERT_EQ(stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777U, 0600U);
  const Result<std::string> again = load_token(path);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *made);
  EXPECT_NE(*make_token(), *made);
}

TEST(TokenFileTest, OneThatOthersCanReadIsRefused) {
  const test::TemporaryDirectory folder;
  for (const unsigned mode : {0644U, 0660U, 0604U, 0700U, 0666U}) {
    const std::string path = folder.file("t" + std::to_string(mode), "0123456789abcdef\n", mode);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    const Result<std::string> refused = load_token(path);
    ASSERT_FALSE(refused) << mode;
    EXPECT_EQ(refused.error().code, Code::permission_denied);
    EXPECT_NE(refused.error().message.find("0600 or 0640"), std::string::npos);
    EXPECT_NE(refused.error().message.find("write a new token"), std::string::npos);
  }
  for (const unsigned mode : {0600U, 0640U}) {
    const std::string path = folder.file("t" + std::to_string(mode), "0123456789abcdef\n", mode);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(*load_token(path), "0123456789abcdef");
  }
}

// The user who made the file knows the token.
TEST(TokenFileTest, OneOfAnotherUsersIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("token", "0123456789abcdef\n", 0600);
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  const Result<std::string> refused = load_token(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::permission_denied);
  EXPECT_NE(refused.error().message.find("belongs to uid 65534"), std::string::npos)
      << refused.error().message;
}

TEST(TokenFileTest, ALinkIsRefusedAndAPipeIsNotWaitedFor) {
  const test::TemporaryDirectory folder;
  const std::string token = folder.file("token", "0123456789abcdef\n", 0600);
  const std::string link = folder.path() + "/link";
  ASSERT_EQ(symlink(token.c_str(), link.c_str()), 0);
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {link, pipe}) {
    const Result<std::string> refused = load_token(path);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code, Code::permission_denied) << refused.error().message;
  }
}

TEST(TokenFileTest, WhatIsNoTokenIsRefused) {
  const test::TemporaryDirectory folder;
  int n = 0;
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("short"), std::string("0123456789abcde!"),
        std::string("0123456789 abcdef"), std::string(257, 'a'), std::string(5000, 'a')}) {
    const Result<std::string> refused = load_token(folder.file(std::to_string(++n), text, 0600));
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::data_loss);
  }
  EXPECT_FALSE(load_token(folder.path()));
  EXPECT_FALSE(load_token(folder.path() + "/none/token"));
}

}  // namespace
}  // namespace kymo::http
