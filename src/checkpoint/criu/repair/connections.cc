#include "checkpoint/criu/repair/connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <set>
#include <string_view>

#include "base/file.h"
#include "base/folder_entries.h"
#include "base/proc/process.h"

namespace kymo::criu {
namespace {

// The folder of the descriptors of a process.
FileDescriptor open_descriptors_of(pid_t pid) {
  std::array<char, 32> path{"/proc/"};
  char* const end = std::to_chars(path.data() + 6, path.data() + 20, pid).ptr;
  std::memcpy(end, "/fd", 4);
  return FileDescriptor(::open(path.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool is_socket(int descriptors, const char* name) {
  constexpr std::string_view kSocket = "socket:";
  std::array<char, kSocket.size()> target{};
  return ::readlinkat(descriptors, name, target.data(), target.size()) ==
             static_cast<ssize_t>(target.size()) &&
         std::string_view(target.data(), target.size()) == kSocket;
}

// Calls `look` with a descriptor of each TCP socket of the process, more than once for a socket that has several. The
// descriptor is a copy in this process, and it is closed after the call. Allocates no memory.
template <class Look>
void for_each_tcp_socket(pid_t pid, Look&& look) {
  const FileDescriptor process(probe::open_process(pid));
  if (!process.valid()) return;
  const FileDescriptor descriptors = open_descriptors_of(pid);
  for_each_numbered_entry(descriptors.get(), [&](const char* name, int number) {
    if (!is_socket(descriptors.get(), name)) return;
    const FileDescriptor socket(
        static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
    int protocol = 0;
    socklen_t size = sizeof protocol;
    if (socket.valid() &&
        ::getsockopt(socket.get(), SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
        protocol == IPPROTO_TCP) {
      look(socket.get());
    }
  });
}

// Reads the address and port of one end of the connection. Returns false if it has none.
bool read_end(int (*get)(int, sockaddr*, socklen_t*), int socket, bool& ipv6, std::string& address,
              std::uint16_t& port) {
  sockaddr_storage end{};
  socklen_t size = sizeof end;
  if (get(socket, reinterpret_cast<sockaddr*>(&end), &size) != 0) return false;
  char text[INET6_ADDRSTRLEN] = "";
  if (end.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&end);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    port = ntohs(v4->sin_port);
  } else if (end.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&end);
    // An IPv4 connection of an IPv6 socket has IPv4 packets, so CRIU's firewall rules are for IPv4.
    ipv6 = !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    if (ipv6) {
      inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    } else {
      inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text, sizeof text);
    }
    port = ntohs(v6->sin6_port);
  }
  address = text;
  return !address.empty();
}

}  // namespace

std::vector<Connection> connections_of(pid_t pid) {
  std::vector<Connection> found;
  std::set<ino_t> seen;
  for_each_tcp_socket(pid, [&](int socket) {
    struct stat about {};
    if (::fstat(socket, &about) != 0 || !seen.insert(about.st_ino).second) return;
    Connection one;
    if (read_end(&::getsockname, socket, one.ipv6, one.local, one.local_port) &&
        read_end(&::getpeername, socket, one.ipv6, one.peer, one.peer_port)) {
      found.push_back(std::move(one));
    }
  });
  return found;
}

void leave_repair_mode(pid_t pid) {
  for_each_tcp_socket(pid, [](int socket) {
    int repairing = 0;
    socklen_t size = sizeof repairing;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_REPAIR, &repairing, &size) == 0 && repairing != 0) {
      const int off = 0;
      ::setsockopt(socket, IPPROTO_TCP, TCP_REPAIR, &off, sizeof off);
    }
  });
}

void keep_peers_waiting(pid_t pid) {
  for_each_tcp_socket(pid, [](int socket) {
    tcp_info passed{};
    socklen_t size = sizeof passed;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &passed, &size) != 0 ||
        size < offsetof(tcp_info, tcpi_data_segs_out) + sizeof passed.tcpi_data_segs_out) {
      return;
    }
    const bool unused = passed.tcpi_data_segs_in == 0 && passed.tcpi_data_segs_out == 0;
    const int repair = unused ? 1 : 0;
    ::setsockopt(socket, IPPROTO_TCP, TCP_REPAIR, &repair, sizeof repair);
  });
}

}  // namespace kymo::criu
