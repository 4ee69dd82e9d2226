#include "http/connections.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <string>

namespace kymo::http {
namespace {

// The port that a socket of TCP has here; 0: it is none.
std::uint16_t local_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, static_cast<sockaddr*>(static_cast<void*>(&address)), &size) != 0) return 0;
  const void* const raw = &address;
  if (address.ss_family == AF_INET) return static_cast<const sockaddr_in*>(raw)->sin_port;
  if (address.ss_family == AF_INET6) return static_cast<const sockaddr_in6*>(raw)->sin6_port;
  return 0;
}

}  // namespace

void cut_connections(int listener) {
  const std::uint16_t port = local_port(listener);
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       port != 0 && !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (fd >= 0 && fd != listener && local_port(fd) == port) shutdown(fd, SHUT_RDWR);
  }
}

}  // namespace kymo::http
