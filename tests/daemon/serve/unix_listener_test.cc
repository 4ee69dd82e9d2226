#include "daemon/serve/unix_listener.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>

#include "base/file.h"
#include "support/logged.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

constexpr uid_t kNobody = 65534;

// Connects, and returns whether the listener accepts the caller: it then sends 'k'. Otherwise it
// closes the connection.
bool is_let_in(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  char said = 0;
  return connect(fd.get(), static_cast<sockaddr*>(static_cast<void*>(&address)), sizeof(address)) ==
             0 &&
         read(fd.get(), &said, 1) == 1 && said == 'k';
}

// Does the same in a child process, as another user with a group of its own and the given groups.
bool is_let_in_as(uid_t uid, const std::vector<gid_t>& groups, const std::string& path,
                  pid_t* caller = nullptr) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgroups(groups.size(), groups.data()) != 0 || setgid(uid) != 0 || setuid(uid) != 0) {
      _exit(2);
    }
    _exit(is_let_in(path) ? 1 : 0);
  }
  if (caller != nullptr) *caller = child;
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

class UnixListenerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0); }
  [[nodiscard]] std::string path() const { return folder_.path() + "/socket"; }
  [[nodiscard]] mode_t mode() const {
    struct stat info {};
    EXPECT_EQ(stat(path().c_str(), &info), 0);
    return info.st_mode & 07777U;
  }
  // Starts a listener that sends 'k' to each accepted caller.
  std::unique_ptr<UnixListener> serve(const std::string& group = "") {
    auto listener = UnixListener::bind(path(), group);
    EXPECT_TRUE(listener.ok()) << listener.error().message;
    if (!listener) return nullptr;
    (*listener)->serve([this](int fd, bool root) {
      ++let_in_;
      if (root) ++roots_;
      send(fd, "k", 1, MSG_NOSIGNAL);  // the caller may have closed the connection already
      close(fd);
    });
    return std::move(listener).value();
  }

  test::TemporaryDirectory folder_;
  std::atomic<int> let_in_ = 0;
  std::atomic<int> roots_ = 0;  // how many callers were root or the user of this test
};

TEST_F(UnixListenerTest, LetsItsOwnUserInAndRemovesItsSocketAtTheEnd) {
  {
    const auto listener = serve();
    EXPECT_EQ(mode(), 0600U);
    EXPECT_TRUE(is_let_in(path()));
    EXPECT_TRUE(is_let_in(path()));
  }
  EXPECT_EQ(let_in_, 2);
  EXPECT_EQ(roots_, 2);
  EXPECT_NE(access(path().c_str(), F_OK), 0);
}

TEST_F(UnixListenerTest, AnotherUserIsRefusedByItsCredentialsAndLoggedWithUidAndPid) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const test::Logged log;
  const auto listener = serve();
  EXPECT_FALSE(is_let_in_as(kNobody, {}, path())) << "the mode of the socket does not permit it";
  ASSERT_EQ(chmod(path().c_str(), 0666), 0);
  pid_t caller = 0;
  EXPECT_FALSE(is_let_in_as(kNobody, {}, path(), &caller));
  EXPECT_EQ(let_in_, 0);
  EXPECT_NE(log.text().find("refused a caller on " + path() + ": uid 65534 pid " +
                            std::to_string(caller)),
            std::string::npos)
      << log.text();
  EXPECT_TRUE(is_let_in(path())) << "the listener still serves";
}

TEST_F(UnixListenerTest, TheSocketsGroupIsLetInByWhicheverOfACallersGroups) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const struct group* daemon = getgrnam("daemon");
  ASSERT_NE(daemon, nullptr);
  const gid_t group = daemon->gr_gid;
  const auto listener = serve("daemon");
  EXPECT_EQ(mode(), 0660U);
  EXPECT_TRUE(is_let_in_as(kNobody, {group}, path()));
  EXPECT_TRUE(is_let_in_as(kNobody, {7, 8, group, 9}, path()));
  ASSERT_EQ(chmod(path().c_str(), 0666), 0);
  EXPECT_FALSE(is_let_in_as(kNobody, {7, 8, 9}, path()));
  EXPECT_EQ(let_in_, 2);
  EXPECT_EQ(roots_, 0);
}

TEST_F(UnixListenerTest, AGroupThatDoesNotExistIsNamed) {
  const auto listener = UnixListener::bind(path(), "no-such-group");
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.error().code, Code::not_found);
  EXPECT_NE(listener.error().message.find("no-such-group"), std::string::npos);
}

TEST_F(UnixListenerTest, ASocketThatIsServedIsLeftAlone) {
  const auto first = serve();
  const auto second = UnixListener::bind(path(), "");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::already_exists);
  EXPECT_NE(second.error().message.find("is already served"), std::string::npos);
  EXPECT_TRUE(is_let_in(path()));
}

TEST_F(UnixListenerTest, AStaleSocketIsReplacedAndAnotherFileIsNot) {
  const FileDescriptor stale(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path().copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(
      bind(stale.get(), static_cast<sockaddr*>(static_cast<void*>(&address)), sizeof(address)), 0);
  {
    const auto listener = serve();
    EXPECT_TRUE(is_let_in(path()));
  }
  const std::string letter = folder_.file("letter", "a letter");
  const auto refused = UnixListener::bind(letter, "");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("this file is not a socket"), std::string::npos);
  EXPECT_EQ(access(letter.c_str(), F_OK), 0);
}

// Another listener has replaced the socket. The first one must not remove it.
TEST_F(UnixListenerTest, AtItsEndItRemovesNoSocketOfAnothers) {
  auto first = serve();
  ASSERT_EQ(unlink(path().c_str()), 0);
  const auto second = serve();
  first.reset();
  EXPECT_TRUE(is_let_in(path()));
}

// Every user who can read the folder can lock it.
TEST_F(UnixListenerTest, ALockThatSomebodyHoldsOnItsFolderDoesNotKeepItFromStarting) {
  const FileDescriptor held(open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  const auto listener = serve();
  EXPECT_TRUE(is_let_in(path()));
}

TEST_F(UnixListenerTest, TheFolderOfTheSocketIsMade) {
  const std::string deep = folder_.path() + "/a/b/socket";
  const auto listener = UnixListener::bind(deep, "");
  EXPECT_TRUE(listener.ok());
  EXPECT_EQ(access(deep.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace kymo::daemon
