#include "support/echo_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace kymo::test {

EchoServer::EchoServer() : stop_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { serve(); });
}

EchoServer::~EchoServer() {
  const std::uint64_t one = 1;
  EXPECT_EQ(write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  thread_.join();
}

void EchoServer::serve() {
  std::vector<FileDescriptor> clients;
  std::array<char, 4096> text{};
  for (;;) {
    std::vector<pollfd> waits{{stop_.get(), POLLIN, 0}, {listener_.socket.get(), POLLIN, 0}};
    for (const FileDescriptor& client : clients) waits.push_back({client.get(), POLLIN, 0});
    if (poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[0].revents != 0) return;
    for (std::size_t i = clients.size(); i-- > 0;) {
      if (waits[i + 2].revents == 0) continue;
      const ssize_t got = recv(clients[i].get(), text.data(), text.size(), 0);
      if (got <= 0) {
        clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        static_cast<void>(
            send(clients[i].get(), text.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL));
      }
    }
    if (waits[1].revents != 0) {
      clients.emplace_back(accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      ++connections_;
    }
  }
}

}  // namespace kymo::test
