#include "support/dead_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace kymo::test {

DeadPort::DeadPort(bool connects) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(socket_.get(), generic, size), 0);
  EXPECT_EQ(getsockname(socket_.get(), generic, &size), 0);
  if (connects) {
    EXPECT_EQ(listen(socket_.get(), 16), 0);
  }
  number_ = ntohs(address.sin_port);
}

}  // namespace kymo::test
