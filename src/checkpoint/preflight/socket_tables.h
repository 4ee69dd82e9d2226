#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::preflight {

// A socket of the internet protocols: a line of /proc/PID/net/tcp.
struct InetSocket {
  std::string ends;  // "127.0.0.1:80 to 127.0.0.1:4711", "127.0.0.1:80"
  unsigned state = 0;
  std::uint64_t sending = 0;    // bytes that were not sent yet
  std::uint64_t receiving = 0;  // bytes, or for a listening socket connections, that wait
};

// States of include/net/tcp_states.h of the kernel.
inline constexpr unsigned kEstablished = 1;
inline constexpr unsigned kClosed = 7;
inline constexpr unsigned kCloseWait = 8;
inline constexpr unsigned kListening = 10;

// A copy of a descriptor of the process, closed on exec, to ask the file itself. Let it live for microseconds.
// `process` is a pidfd; `inode` that of the socket, or 0 for any file.
// Errors: not_found if the descriptor is not this socket any more; the system's, such as EPERM if
//         this program may not trace the process.
Result<FileDescriptor> copy_of(int process, int fd, std::uint64_t inode);

// Asks a TCP socket itself. The list of all TCP sockets in /proc takes the kernel some ten
// milliseconds, however few there are. Errors: those of copy_of().
Result<InetSocket> tcp_socket(int process, int fd, std::uint64_t inode);

// Reads a table such as /proc/PID/net/tcp or udp6, and returns the sockets with one of these inodes.
// Errors: those of read_file(); data_loss if the table is larger than 16 MiB.
Result<std::map<std::uint64_t, InetSocket>> inet_sockets(const std::string& table,
                                                         const std::set<std::uint64_t>& inodes);

// The bytes that nobody has read, of the netlink sockets of /proc/PID/net/netlink.
// Errors: those of read_file().
Result<std::map<std::uint64_t, std::uint64_t>> netlink_unread(const std::string& table);

// A unix socket.
struct UnixSocket {
  int type = 0;             // SOCK_STREAM, SOCK_DGRAM or SOCK_SEQPACKET
  std::uint64_t peer = 0;   // inode of the socket that it is connected to; 0: none
  bool has_name = false;    // it is bound to an address
  std::size_t pending = 0;  // connections that nobody has accepted
};

using UnixSockets = std::map<std::uint64_t, UnixSocket>;

// All unix sockets of this program's network namespace, by their inodes, from the kernel's
// sock_diag(7). /proc/net/unix does not show which sockets are connected.
// Errors: the system's.
// Cost:   a few microseconds, and about one for each socket.
Result<UnixSockets> unix_sockets();

}  // namespace kymo::preflight
