#include "checkpoint/criu/repair/connections.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.h"
#include "support/loopback.h"

namespace kymo::criu {
namespace {

// A listening socket on loopback, and both ends of a connection to it.
struct Ends {
  test::Listener listener;
  FileDescriptor client{test::connect_to_loopback(listener.port)};
  FileDescriptor server{accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC)};

  Ends() { EXPECT_TRUE(server.valid()); }
};

TEST(Connections, AreFoundByTheirEnds) {
  const Ends ends;
  const std::vector<Connection> found = connections_of(getpid());
  const auto ours = std::count_if(found.begin(), found.end(), [&](const Connection& one) {
    return !one.ipv6 && one.local == "127.0.0.1" && one.peer == "127.0.0.1" &&
           (one.local_port == ends.listener.port || one.peer_port == ends.listener.port);
  });
  EXPECT_EQ(ours, 2) << "each end is found once, and the listening socket is not found";
  EXPECT_TRUE(connections_of(-1).empty());
}

// CRIU was killed while the sockets were in repair mode.
TEST(Connections, ThatACriuHasLeftInRepairModeSendAgain) {
  const Ends ends;
  const int on = 1;
  if (setsockopt(ends.client.get(), IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) != 0) {
    GTEST_SKIP() << "no right to administer the network";
  }
  EXPECT_EQ(send(ends.client.get(), "x", 1, MSG_NOSIGNAL), -1);
  leave_repair_mode(getpid());
  EXPECT_EQ(send(ends.client.get(), "x", 1, MSG_NOSIGNAL), 1);
  char got = 0;
  EXPECT_EQ(recv(ends.server.get(), &got, 1, 0), 1);
  EXPECT_EQ(got, 'x');
}

class EndOfAProcess : public ::testing::Test {
 protected:
  // Returns what the server receives after a process with the client's end was killed: 0 is the end of the
  // connection.
  ssize_t heard_after_the_end() {
    const pid_t child = fork();
    if (child == 0) {
      ends_.server = FileDescriptor();
      raise(SIGSTOP);
      _exit(0);
    }
    ends_.client = FileDescriptor();
    EXPECT_EQ(waitpid(child, nullptr, WUNTRACED), child);
    keep_peers_waiting(child);
    kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    std::array<char, 16> text{};
    // On loopback, packets arrive before send(2) returns.
    return recv(ends_.server.get(), text.data(), text.size(), MSG_DONTWAIT);
  }
  Ends ends_;
};

TEST_F(EndOfAProcess, IsNotSeenByItsPeer) {
  EXPECT_EQ(heard_after_the_end(), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(EndOfAProcess, IsSeenIfDataHasPassed) {
  ASSERT_EQ(send(ends_.client.get(), "x", 1, MSG_NOSIGNAL), 1);
  char got = 0;
  ASSERT_EQ(recv(ends_.server.get(), &got, 1, 0), 1);
  EXPECT_EQ(heard_after_the_end(), 0);
}

}  // namespace
}  // namespace kymo::criu
