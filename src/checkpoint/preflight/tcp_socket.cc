#include <arpa/inet.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "checkpoint/preflight/socket_tables.h"

namespace kymo::preflight {
namespace {

constexpr char kTriedSocket[] = "look at a socket";

using NameFunction = int (*)(int, sockaddr*, socklen_t*);

// One end of a socket by getsockname(2) or getpeername(2), "127.0.0.1:80". Empty if there is none.
std::string end_of(int socket, NameFunction function) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (function(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, &address, sizeof ipv6);
    ::inet_ntop(AF_INET6, &ipv6.sin6_addr, text.data(), text.size());
    return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(ipv6.sin6_port));
  }
  sockaddr_in ipv4{};
  std::memcpy(&ipv4, &address, sizeof ipv4);
  ::inet_ntop(AF_INET, &ipv4.sin_addr, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(ntohs(ipv4.sin_port));
}

}  // namespace

Result<FileDescriptor> copy_of(int process, int fd, std::uint64_t inode) {
  FileDescriptor copy(static_cast<int>(::syscall(SYS_pidfd_getfd, process, fd, 0)));
  if (!copy.valid()) return system_error(kTriedSocket, errno);
  struct stat seen {};
  if (inode == 0) return copy;
  if (::fstat(copy.get(), &seen) != 0) return system_error(kTriedSocket, errno);
  if (seen.st_ino != inode) return Error{Code::not_found, "the socket was closed meanwhile"};
  return copy;
}

Result<InetSocket> tcp_socket(int process, int fd, std::uint64_t inode) {
  const Result<FileDescriptor> copy = copy_of(process, fd, inode);
  if (!copy) return copy.error();
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(copy->get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return system_error(kTriedSocket, errno);
  }
  InetSocket socket;
  socket.state = info.tcpi_state;
  // Of a listening socket, the connections that wait: tcp_get_info() in net/ipv4/tcp.c.
  if (socket.state == kListening) socket.receiving = info.tcpi_unacked;
  socket.ends = end_of(copy->get(), ::getsockname);
  const std::string peer = end_of(copy->get(), ::getpeername);
  if (!peer.empty()) socket.ends += " to " + peer;
  return socket;
}

}  // namespace kymo::preflight
