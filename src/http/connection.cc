#include "http/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace kymo::http {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{3};
constexpr std::size_t kLeastBytesPerSecond = 64 << 10;
// How long we read what a refused client still sends.
constexpr std::chrono::milliseconds kReadOn{200};
constexpr int kMostReadOn = 256;  // pieces of 4 KiB

std::atomic<int> lingering{0};  // connections whose clients are still read

const char* reason_of(int status) {
  switch (status) {
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Bad Request";
  }
}

}  // namespace

ssize_t Connection::read(char* to, std::size_t size) {
  const std::size_t taken = std::min(size, incoming_.request.size() - read_);
  std::copy_n(incoming_.request.data() + read_, taken, to);
  read_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t Connection::write(const char* data, std::size_t size) {
  std::size_t sent = 0;
  while (open_ && sent < size) {
    const ssize_t got =
        send(incoming_.connection.get(), data + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got > 0) {
      sent += static_cast<std::size_t>(got);
      written_ += static_cast<std::size_t>(got);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      open_ = wait_to_write();
    } else if (errno != EINTR) {
      open_ = false;
    }
  }
  return sent == size ? static_cast<ssize_t>(size) : -1;
}

bool Connection::wait_to_write() {
  const auto allowed = kPatience + std::chrono::seconds(written_ / kLeastBytesPerSecond);
  const auto left = std::min<std::chrono::nanoseconds>(allowed - waited_, kPatience);
  if (left <= std::chrono::nanoseconds(0)) return false;
  const auto began = steady_clock::now();
  pollfd room{incoming_.connection.get(), POLLOUT, 0};
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(left);
  const int ready = poll(&room, 1, static_cast<int>(timeout.count()));
  waited_ += steady_clock::now() - began;
  return ready > 0 || (ready < 0 && errno == EINTR);
}

void Connection::refuse(std::string_view body) {
  std::string reply =
      "HTTP/1.1 " + std::to_string(incoming_.refused) + ' ' + reason_of(incoming_.refused) +
      "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n";
  reply += body;
  static_cast<void>(write(reply.data(), reply.size()));
}

void Connection::finish() {
  shutdown(incoming_.connection.get(), SHUT_WR);
  if (incoming_.refused == 0) return;
  if (lingering.fetch_add(1, std::memory_order_relaxed) < kMostLingering) read_on();
  lingering.fetch_sub(1, std::memory_order_relaxed);
}

void Connection::read_on() const {
  std::array<char, 4096> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): read into
  const auto until = steady_clock::now() + kReadOn;
  for (int i = 0; i < kMostReadOn; ++i) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
    pollfd more{incoming_.connection.get(), POLLIN, 0};
    const auto timeout = std::max<std::int64_t>(0, left.count());  // what is there is always read
    if (poll(&more, 1, static_cast<int>(timeout)) <= 0) return;
    if (recv(incoming_.connection.get(), piece.data(), piece.size(), 0) <= 0) return;
  }
}

void Connection::cut() {
  shutdown(incoming_.connection.get(), SHUT_RDWR);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace kymo::http
