#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kymo::criu {

// An established TCP connection of a process, by its own end: addresses as inet_ntop(3) writes
// them, ports as numbers.
struct Connection {
  bool ipv6 = false;
  std::string local;
  std::string peer;
  std::uint16_t local_port = 0;
  std::uint16_t peer_port = 0;
};

// Each once, however many descriptors it has; empty where the process is gone. The caller needs the
// right to trace the process (pidfd_getfd(2)). Cost: a few system calls a descriptor.
std::vector<Connection> connections_of(pid_t pid);

// Takes the TCP sockets of the process out of the mode in which CRIU reads and closes them in
// silence (TCP_REPAIR of linux/tcp.h). A CRIU that is killed leaves them in it, and then every
// send(2) of the process fails with EPERM. So this is called before the kill, once CRIU is stopped;
// in the mode no packet is lost, since the peer sends it again. Needs CAP_NET_ADMIN; what cannot be
// reached stays as it is. Cost: as connections_of().
void leave_repair_mode(pid_t pid);

}  // namespace kymo::criu
