#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kymo::preflight {

// Finds options of sockets that CRIU does not save.
//
// Threads: one at a time.
// Errors:  none; what cannot be asked is not lost.
// Cost:    a system call of a quarter of a microsecond for each known option. Keeps one new socket of each kind, which has
//          the values that a restored one has, and reads the multicast groups once.
class SocketState {
 public:
  // `folder`: "/proc/12", of a process in the network namespace of the sockets.
  explicit SocketState(std::string folder) : folder_(std::move(folder)) {}
  // The names of the options and memberships that this socket has and a restore does not bring back.
  std::vector<std::string_view> lost_of(int socket);

 private:
  struct Type {
    int domain = 0;
    int kind = 0;
    int protocol = 0;
    auto operator<=>(const Type&) const = default;
  };
  using Values = std::vector<std::string>;  // in the order of the table
  const Values& values_of_new(const Type& type);
  bool is_in_group(int socket, int domain);

  struct Group {
    int domain = 0;
    unsigned interface = 0;
    std::string address;  // its bytes
  };
  const std::string folder_;
  std::map<Type, Values> new_;
  std::optional<std::vector<Group>> groups_;
};

}  // namespace kymo::preflight
