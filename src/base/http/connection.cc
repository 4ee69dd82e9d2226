#include "base/http/connection.h"

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

constexpr std::size_t kMinBytesPerSecond = 64 << 10;
// How long the rest of a refused request is read.
constexpr std::chrono::milliseconds kReadOn{200};
constexpr int kMaxReadOn = 256;  // pieces of 4 KiB

std::atomic<int> lingering{0};  // connections that are in read_on()

}  // namespace

bool Connection::write(std::string_view data) {
  while (open_ && !data.empty()) {
    const ssize_t sent =
        send(incoming_.connection.get(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      data.remove_prefix(static_cast<std::size_t>(sent));
      written_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      open_ = wait_to_write();
    } else if (errno != EINTR) {
      open_ = false;
    }
  }
  return open_;
}

bool Connection::wait_to_write() {
  const auto allowed = patience_ + std::chrono::seconds(written_ / kMinBytesPerSecond);
  const auto left = std::min<std::chrono::nanoseconds>(allowed - waited_, patience_);
  if (left <= std::chrono::nanoseconds(0)) return false;
  const auto began = steady_clock::now();
  pollfd room{incoming_.connection.get(), POLLOUT, 0};
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(left);
  const int ready = poll(&room, 1, static_cast<int>(timeout.count()));
  waited_ += steady_clock::now() - began;
  return ready > 0 || (ready < 0 && errno == EINTR);
}

void Connection::finish() {
  shutdown(incoming_.connection.get(), SHUT_WR);
  if (incoming_.refused == 0) return;
  if (lingering.fetch_add(1, std::memory_order_relaxed) < kMaxLingering) read_on();
  lingering.fetch_sub(1, std::memory_order_relaxed);
}

void Connection::read_on() const {
  std::array<char, 4096> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): read into
  const auto until = steady_clock::now() + kReadOn;
  for (int i = 0; i < kMaxReadOn; ++i) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
    pollfd more{incoming_.connection.get(), POLLIN, 0};
    const auto timeout = std::max<std::int64_t>(0, left.count());  // 0: read what has come already
    if (poll(&more, 1, static_cast<int>(timeout)) <= 0) return;
    if (recv(incoming_.connection.get(), piece.data(), piece.size(), 0) <= 0) return;
  }
}

void Connection::cut() {
  shutdown(incoming_.connection.get(), SHUT_RDWR);
}

}  // namespace kymo::http
