#include "base/http/request_reader.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/http/gate.h"

namespace kymo::http {
namespace {

// The most bytes that the kernel buffers for a client that does not read.
constexpr int kSendBuffer = 128 << 10;
// The pause after accept() failed, for example because no descriptor was left.
constexpr std::chrono::milliseconds kDeaf{50};
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
// Headers that decide something. If one of them occurs twice, two programs may take two values.
constexpr std::array<std::string_view, 4> kOnce = {"Host", "Origin", "Authorization",
                                                   "Content-Length"};

bool is_called(std::string_view line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == ':' &&
         strncasecmp(line.data(), name.data(), name.size()) == 0;
}

// The value of a header line, without spaces around it.
std::string_view value_of(std::string_view line) {
  std::string_view value = line.substr(line.find(':') + 1);
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  value.remove_suffix(value.size() - (value.find_last_not_of(" \t") + 1));
  return value;
}

// Whether a line of the head, after its first, can be read in two ways: as the rest of the header
// above it, or with or without the space at the end of its name.
bool is_ambiguous(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  return line.starts_with(' ') || line.starts_with('\t') || name.ends_with(' ') ||
         name.ends_with('\t');
}

// The value of a Content-Length. Returns nothing if it is no number, and SIZE_MAX if it is too
// large.
std::optional<std::size_t> length_in(std::string_view value) {
  const bool digits =
      std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (value.empty() || !digits) return std::nullopt;
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  return error == std::errc() ? length : SIZE_MAX;
}

}  // namespace

void Framing::read(std::string_view text) {
  while (length_ == 0 && refused_ == 0 && seen_ < text.size()) {
    const char c = text[seen_];
    const bool after_cr = seen_ > 0 && text[seen_ - 1] == '\r';
    ++seen_;
    if (c == '\0' || (c == '\n') != after_cr) {
      refused_ = 400;
    } else if (c == '\n' && text.substr(0, seen_).ends_with(kHeadEnd)) {
      read_fields(text.substr(0, seen_));
    } else if (seen_ == RequestReader::kMaxHead) {
      refused_ = 431;
    }
  }
}

void Framing::read_fields(std::string_view head) {
  std::optional<std::size_t> body;
  std::array<bool, kOnce.size()> seen{};
  for (std::size_t at = head.find(kLineEnd) + kLineEnd.size(); at < head.size();) {
    const std::string_view line = head.substr(at, head.find(kLineEnd, at) - at);
    at += line.size() + kLineEnd.size();
    const auto once = std::find_if(kOnce.begin(), kOnce.end(),
                                   [line](std::string_view name) { return is_called(line, name); });
    const bool again = once != kOnce.end() &&
                       std::exchange(seen.at(static_cast<std::size_t>(once - kOnce.begin())), true);
    if (is_ambiguous(line) || again || (is_called(line, "Host") && !is_host(value_of(line)))) {
      refused_ = 400;
      return;
    }
    if (is_called(line, "Transfer-Encoding")) {
      refused_ = 411;
      return;
    }
    if (!is_called(line, "Content-Length")) continue;
    body = length_in(value_of(line));
    if (!body) {
      refused_ = 400;
      return;
    }
  }
  if (body.value_or(0) > RequestReader::kMaxBody) {
    refused_ = 413;
  } else {
    length_ = head.size() + body.value_or(0);
  }
}

Result<FileDescriptor> listen_on(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return Error{Code::not_found, "no such address on this machine"};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  int cause = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    FileDescriptor fd(
        socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol));
    const int yes = 1;
    // Accepted connections inherit the size of the send buffer.
    if (fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
        setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof(kSendBuffer)) == 0 &&
        bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0 && listen(fd.get(), SOMAXCONN) == 0) {
      return fd;
    }
    cause = errno;
  }
  return system_error("listen", cause);
}

Result<std::uint16_t> port_of(int listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(listener, static_cast<sockaddr*>(static_cast<void*>(&address)), &size) != 0) {
    return system_error("ask for the port", errno);
  }
  const void* const raw = &address;
  return ntohs(address.ss_family == AF_INET6 ? static_cast<const sockaddr_in6*>(raw)->sin6_port
                                             : static_cast<const sockaddr_in*>(raw)->sin_port);
}

Result<void> RequestReader::open(FileDescriptor listener, Take take) {
  listener_ = std::move(listener);
  take_ = std::move(take);
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT_MAX;
  const int last = known ? static_cast<int>(limit.rlim_cur) : INT_MAX;
  end_of_ours_ = std::max(last - kReserve, last / 2);
  wake_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return system_error("make an event", errno);
  polled_.reserve(kMaxWaiting + 2);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& none) {
    return system_error("start a thread", none.code().value());
  }
  return {};
}

void RequestReader::close() {
  if (!thread_.joinable()) return;
  static_cast<void>(eventfd_write(wake_.get(), 1));
  thread_.join();
  waiting_.clear();
  listener_.reset();
}

void RequestReader::run() {
  for (;;) {
    try {
      if (!turn()) return;
    } catch (const std::exception&) {  // no memory: only the present connection is closed
      deaf_until_ = Clock::now() + kDeaf;
    }
  }
}

bool RequestReader::turn() {
  const Clock::time_point now = Clock::now();
  const bool deaf = now < deaf_until_;
  polled_.assign({{wake_.get(), POLLIN, 0}, {deaf ? -1 : listener_.get(), POLLIN, 0}});
  Clock::time_point until = deaf ? deaf_until_ : Clock::time_point::max();
  for (const Waiting& waiting : waiting_) {
    polled_.push_back({waiting.incoming.connection.get(), POLLIN, 0});
    until = std::min(until, waiting.until);
  }
  int timeout = -1;
  if (until != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
    timeout = static_cast<int>(std::max<std::int64_t>(0, left.count()));
  }
  if (poll(polled_.data(), polled_.size(), timeout) < 0) {
    if (errno == EINTR) return true;
    std::this_thread::sleep_for(kDeaf);  // such as no memory: it would fail again at once
    eventfd_t closed = 0;
    return eventfd_read(wake_.get(), &closed) != 0;
  }
  if (polled_[0].revents != 0) return false;
  std::size_t i = 2;
  const Clock::time_point then = Clock::now();
  for (auto at = waiting_.begin(); at != waiting_.end(); ++i) {
    const bool ready = polled_[i].revents != 0;
    const bool stays = ready ? read_more(*at) : then < at->until;
    at = stays ? std::next(at) : waiting_.erase(at);
  }
  if (polled_[1].revents != 0) accept_all();
  return true;
}

void RequestReader::accept_all() {
  for (std::size_t i = 0; i < kMaxWaiting; ++i) {
    FileDescriptor fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      const bool none_left = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
      if (none_left) deaf_until_ = Clock::now() + kDeaf;
      return;
    }
    const int yes = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    const bool too_many = fd.get() >= end_of_ours_;
    if ((too_many || waiting_.size() >= kMaxWaiting) && !waiting_.empty()) waiting_.pop_front();
    // The descriptor of the connection just closed is free again: use that number.
    if (too_many) fd = FileDescriptor(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!fd.valid() || fd.get() >= end_of_ours_) continue;
    waiting_.push_back({{std::move(fd), {}, 0}, {}, Clock::now() + kPatience});
    if (!read_more(waiting_.back())) waiting_.pop_back();
  }
}

bool RequestReader::read_more(Waiting& from) {
  try {
    return read_and_take(from);
  } catch (const std::exception&) {
    return false;
  }
}

bool RequestReader::read_and_take(Waiting& from) {
  std::string& text = from.incoming.request;
  std::array<char, 4096> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): read into
  for (;;) {
    const ssize_t got = recv(from.incoming.connection.get(), piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Clock::now() < from.until;
    if (got <= 0) return false;
    text.append(piece.data(), static_cast<std::size_t>(got));
    from.framing.read(text);
    from.incoming.refused = from.framing.refused();
    const std::size_t length = from.framing.length();
    const bool whole = length != 0 && text.size() >= length;
    if (!whole && from.incoming.refused == 0) continue;
    take_(std::move(from.incoming));
    return false;
  }
}

}  // namespace kymo::http
