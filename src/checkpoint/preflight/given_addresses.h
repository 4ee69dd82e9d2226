#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "checkpoint/preflight/checks.h"

namespace kymo::preflight {

// The addresses that a container's runtime gives to the network which it makes anew in a restore. podman and Docker write
// them into the file that they mount at /etc/hosts.
class GivenAddresses {
 public:
  // Threads: one at a time. Cost: reads that file, and the container's table of routes.
  GivenAddresses(const Tree& tree, const Options& options);

  // Looks at a socket (InetSocket::ends). An address that the container has given itself is not there in the restore, so
  // a socket cannot be bound to it.
  void look_at(Place socket, std::string_view ends, Findings& found) const;

 private:
  bool anew_ = false;  // the network of the container is made anew, and the file was read
  bool sure_ = false;  // the file has an address that the network has
  std::set<std::string, std::less<>> addresses_;
};

}  // namespace kymo::preflight
