// What another user puts in the place of a file that a restored process had open.
#include "checkpoint/runtimes/shared/link_checks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

constexpr uid_t kAnother = 12345;

TEST(LinkChecks, ALinkOfAnotherUserIsRefusedWhereverItIsInThePath) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const test::TemporaryDirectory folder;
  const std::string secret = folder.file("secret", "root's");
  std::filesystem::create_directory(folder.path() + "/his");
  const std::string log = folder.path() + "/his/log";
  std::filesystem::create_symlink(secret, log);
  EXPECT_EQ(link_of_another_user(log), "") << "root's own link";
  ASSERT_EQ(::lchown(log.c_str(), kAnother, kAnother), 0);
  EXPECT_EQ(link_of_another_user(log), log);
  EXPECT_EQ(link_of_another_user(secret), "");

  const std::string other = folder.path() + "/other";
  std::filesystem::create_directory_symlink(folder.path(), other);
  ASSERT_EQ(::lchown(other.c_str(), kAnother, kAnother), 0);
  EXPECT_EQ(link_of_another_user(other + "/secret"), other);
  EXPECT_EQ(link_of_another_user(folder.path() + "/missing/log"), "");
  EXPECT_EQ(link_of_another_user("/"), "");
}

}  // namespace
}  // namespace kymo::runtime
