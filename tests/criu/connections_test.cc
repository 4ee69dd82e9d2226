#include "criu/connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"

namespace kymo::criu {
namespace {

// A listening socket on loopback and both ends of a connection to it.
struct Ends {
  FileDescriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  FileDescriptor client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  FileDescriptor server;
  std::uint16_t port = 0;

  Ends() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener.get(), generic, size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), generic, &size), 0);
    port = ntohs(address.sin_port);
    EXPECT_EQ(connect(client.get(), generic, size), 0);
    server = FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(server.valid());
  }
};

TEST(Connections, AreFoundByTheirEnds) {
  const Ends ends;
  const std::vector<Connection> found = connections_of(getpid());
  const auto ours = std::count_if(found.begin(), found.end(), [&](const Connection& one) {
    return !one.ipv6 && one.local == "127.0.0.1" && one.peer == "127.0.0.1" &&
           (one.local_port == ends.port || one.peer_port == ends.port);
  });
  EXPECT_EQ(ours, 2) << "each end once; the listener has no peer";
  EXPECT_TRUE(connections_of(-1).empty());
}

// CRIU was killed while it read them: every send failed with EPERM from then on.
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

}  // namespace
}  // namespace kymo::criu
