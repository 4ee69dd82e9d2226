#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kymo::criu {

// An established TCP connection of a process. `local` is the process's own end. Addresses are as
// inet_ntop(3) writes them.
struct Connection {
  bool ipv6 = false;
  std::string local;
  std::string peer;
  std::uint16_t local_port = 0;
  std::uint16_t peer_port = 0;
};

// Returns each connection once, even if it has several descriptors. Empty if the process is gone.
// The caller needs the right to trace the process (pidfd_getfd(2)).
// Cost: a few system calls for each descriptor.
std::vector<Connection> connections_of(pid_t pid);

// Ends the repair mode of the TCP sockets of the process (TCP_REPAIR of linux/tcp.h). In this mode,
// CRIU reads and closes sockets without sending a packet. A CRIU that is killed leaves the sockets
// in it, and then every send(2) of the process fails with EPERM. So call this after CRIU is stopped
// and before it is killed. No packet is lost meanwhile, because the peer sends it again. Needs
// CAP_NET_ADMIN. A socket that cannot be reached stays as it is. Allocates no memory.
// Cost: as connections_of().
void leave_repair_mode(pid_t pid);

// Puts the TCP connections of a process that is only half restored into repair mode, so that its end closes
// them without a packet: the peer still waits, and the next restore of the same images finds the connection
// as they have it. A connection over which data has passed since it was restored stays as it is, and the
// peer is told of its end, because the images do not have that data. Call this before the process is killed.
// Needs CAP_NET_ADMIN, and Linux 4.6; otherwise the peer is told.
// Cost: as connections_of().
void keep_peers_waiting(pid_t pid);

}  // namespace kymo::criu
