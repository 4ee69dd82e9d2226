#include "support/unix_proxy.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

namespace kymo::test {
namespace {

FileDescriptor unix_socket(const std::string& path, sockaddr_un& address) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  address.sun_family = AF_UNIX;
  EXPECT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return socket;
}

bool send_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(to, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

UnixProxy::UnixProxy(std::string from, std::string to, std::string text,
                     std::function<void()> before)
    : to_(std::move(to)),
      text_(std::move(text)),
      before_(std::move(before)),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  sockaddr_un address{};
  listener_ = unix_socket(from, address);
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  EXPECT_EQ(::bind(listener_.get(), at, sizeof address), 0);
  EXPECT_EQ(::listen(listener_.get(), 8), 0);
  thread_ = std::thread([this] { serve(); });
}

UnixProxy::~UnixProxy() {
  const std::uint64_t one = 1;
  EXPECT_EQ(::write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  thread_.join();
  for (std::thread& client : clients_) client.join();
}

void UnixProxy::serve() {
  for (;;) {
    std::array<pollfd, 2> waits{{{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[0].revents != 0) return;
    FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) continue;
    clients_.emplace_back([this, client = std::move(client)] { pass_on(client); });
  }
}

void UnixProxy::pass_on(const FileDescriptor& client) {
  sockaddr_un address{};
  const FileDescriptor server = unix_socket(to_, address);
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(server.get(), at, sizeof address) != 0) return;
  std::array<char, 65536> bytes{};
  for (;;) {
    std::array<pollfd, 3> waits{
        {{stop_.get(), POLLIN, 0}, {client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[0].revents != 0) return;
    for (const bool asks : {true, false}) {
      if (waits[asks ? 1 : 2].revents == 0) continue;
      const ssize_t got = ::read(waits[asks ? 1 : 2].fd, bytes.data(), bytes.size());
      if (got <= 0) return;
      const std::string_view said(bytes.data(), static_cast<std::size_t>(got));
      if (asks && said.find(text_) != std::string_view::npos) std::call_once(called_, before_);
      if (!send_all(waits[asks ? 2 : 1].fd, said)) return;
    }
  }
}

}  // namespace kymo::test
