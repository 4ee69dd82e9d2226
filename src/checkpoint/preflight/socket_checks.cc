// Checks of sockets: their protocols, connections and peers.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/proc/process.h"
#include "checkpoint/preflight/checks.h"
#include "checkpoint/preflight/given_addresses.h"
#include "checkpoint/preflight/socket_tables.h"

namespace kymo::preflight {
namespace {

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The names are those of /proc/net/protocols.
constexpr std::array<std::string_view, 2> kTcp{"TCP", "TCPv6"};
constexpr std::array<std::string_view, 4> kUdp{"UDP", "UDPv6", "UDP-Lite", "UDPLITEv6"};
constexpr std::array<std::string_view, 2> kUnix{"UNIX", "UNIX-STREAM"};
constexpr std::array<std::string_view, 4> kOthers{"NETLINK", "PACKET", "PING", "PINGv6"};
constexpr std::array<std::string_view, 6> kNoProtocol{"MPTCP",  "MPTCPv6", "SCTP",
                                                      "SCTPv6", "DCCP",    "DCCPv6"};
constexpr std::array<std::string_view, 10> kNoFamily{"AF_VSOCK", "ALG", "XDP",   "SMC", "TIPC",
                                                     "CAN_RAW",  "HCI", "L2CAP", "SCO", "RDS"};

struct Socket {
  const Member& member;
  const OpenFile& file;
};

template <class Each>
void for_each_socket(const Tree& tree, std::span<const std::string_view> protocols,
                     const Each& each) {
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      if (file.inode != 0 && is_one_of(file.protocol, protocols)) each(Socket{member, file});
    }
  }
}

Place place_of(const Socket& socket, std::string object) {
  Place place = preflight::place_of(socket.member, socket.file);
  place.object = std::move(object);
  return place;
}

void look_at_protocols(const Tree& tree, Findings& found) {
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      const std::string_view name = file.protocol;
      if (name.empty() || is_one_of(name, kTcp) || is_one_of(name, kUdp) ||
          is_one_of(name, kUnix) || is_one_of(name, kOthers)) {
        continue;
      }
      Place place = preflight::place_of(member, file);
      place.object = "protocol " + file.protocol;
      if (is_one_of(name, kNoProtocol)) {
        found.add(Grade::refuses, "socket-proto", std::move(place));
      } else if (is_one_of(name, kNoFamily)) {
        found.add(Grade::refuses, "socket-unknown", std::move(place));
      } else if (name.starts_with("RAW")) {
        found.add(Grade::warns, "socket-proto", std::move(place),
                  "a raw socket is open, which CRIU saves for some protocols only");
      } else {
        found.add(Grade::warns, "socket-unknown", std::move(place),
                  "a socket is of a kind that CRIU may not support");
      }
    }
  }
}

// The sockets with these protocols, by their inodes, of the tables of each network namespace.
std::map<std::uint64_t, InetSocket> read_tables(Tree& tree,
                                                std::span<const std::string_view> protocols,
                                                std::span<const std::string_view> tables) {
  std::set<std::uint64_t> inodes;
  std::map<std::string, const Member*> namespaces;
  for_each_socket(tree, protocols, [&](const Socket& socket) {
    inodes.insert(socket.file.inode);
    namespaces.emplace(socket.member.namespaces.of(Kind::net), &socket.member);
  });
  std::map<std::uint64_t, InetSocket> all;
  for (const auto& [name, member] : namespaces) {
    for (const std::string_view table : tables) {
      auto found = inet_sockets(tree.folder_of(*member) + "/net/" + std::string(table), inodes);
      if (found) {
        all.merge(*found);
      } else if (found.error().code != Code::not_found) {  // a kernel without IPv6, for example
        tree.miss("sockets", found.error().message, *member);
      }
    }
  }
  return all;
}

// The TCP sockets, by their inodes: each is asked itself, or all are looked for in the tables if
// this program has not the right to do that.
std::map<std::uint64_t, InetSocket> tcp_sockets(Tree& tree) {
  constexpr std::array<std::string_view, 2> kTables{"tcp", "tcp6"};
  std::map<std::uint64_t, InetSocket> sockets;
  std::map<pid_t, FileDescriptor> processes;
  bool forbidden = false;
  for_each_socket(tree, kTcp, [&](const Socket& socket) {
    const pid_t pid = socket.member.process.pid;
    if (!processes.contains(pid)) processes[pid] = FileDescriptor(probe::open_process(pid));
    auto seen = tcp_socket(processes[pid].get(), socket.file.fd, socket.file.inode);
    if (seen) {
      sockets[socket.file.inode] = *std::move(seen);
    } else if (seen.error().code != Code::not_found) {
      forbidden = true;
    }
  });
  return forbidden ? read_tables(tree, kTcp, kTables) : sockets;
}

// The sockets with an address, by the link in /proc/PID/fd.
using WithAddress = std::map<std::string, Place>;

void look_at_tcp(Tree& tree, const Options& options, const GivenAddresses& given,
                 WithAddress& addresses, Findings& found) {
  const auto sockets = tcp_sockets(tree);
  for_each_socket(tree, kTcp, [&](const Socket& socket) {
    const auto at = sockets.find(socket.file.inode);
    if (at == sockets.end()) return;  // neither bound nor connected
    const InetSocket& seen = at->second;
    addresses.emplace(socket.file.link, place_of(socket, seen.ends));
    given.look_at(place_of(socket, ""), seen.ends, found);
    if (seen.state == kListening) {
      if (seen.receiving == 0 || options.skip_in_flight) return;
      found.add(Grade::warns, "tcp-in-flight",
                place_of(socket, seen.ends + ", waiting: " + std::to_string(seen.receiving)));
    } else if (seen.state != kClosed && !options.tcp_established) {
      const bool lasts = seen.state == kEstablished || seen.state == kCloseWait;
      found.add(lasts ? Grade::refuses : Grade::warns, "tcp-established",
                place_of(socket, seen.ends),
                lasts ? "" : "a process has a TCP connection that is being opened or closed");
    }
  });
}

void look_at_udp(Tree& tree, const GivenAddresses& given, WithAddress& addresses, Findings& found) {
  constexpr std::array<std::string_view, 4> kTables{"udp", "udp6", "udplite", "udplite6"};
  const auto sockets = read_tables(tree, kUdp, kTables);
  for_each_socket(tree, kUdp, [&](const Socket& socket) {
    const auto at = sockets.find(socket.file.inode);
    if (at == sockets.end()) return;
    addresses.emplace(socket.file.link, place_of(socket, at->second.ends));
    given.look_at(place_of(socket, ""), at->second.ends, found);
    if (at->second.sending == 0) return;
    found.add(Grade::warns, "udp-corked", place_of(socket, at->second.ends),
              "a UDP socket holds a packet that is not sent");
  });
}

void look_at_netlink(Tree& tree, Findings& found) {
  constexpr std::array<std::string_view, 1> kNetlink{"NETLINK"};
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> tables;
  for_each_socket(tree, kNetlink, [&](const Socket& socket) {
    const std::string& name = socket.member.namespaces.of(Kind::net);
    if (!tables.contains(name)) {
      auto unread = netlink_unread(tree.folder_of(socket.member) + "/net/netlink");
      if (unread) tables[name] = *std::move(unread);
    }
    const auto at = tables[name].find(socket.file.inode);
    if (at == tables[name].end() || at->second == 0) return;
    found.add(Grade::warns, "netlink-data",
              place_of(socket, std::to_string(at->second) + " bytes unread"));
  });
}

// A unix socket that is connected to one outside of the tree.
void add_outside_peer(Grade grade, const Socket& socket, const UnixSocket& seen,
                      const UnixSocket* peer, const Options& options, Findings& found) {
  const std::string object =
      "socket " + std::to_string(socket.file.inode) + ", peer " + std::to_string(seen.peer);
  if (!options.external_unix_sockets) {
    found.add(grade, "unix-external", place_of(socket, object));
  } else if (seen.type != SOCK_DGRAM) {
    found.add(grade, "unix-half", place_of(socket, object));
  } else if (peer != nullptr && !peer->has_name) {
    found.add(
        grade, "unix-in-flight", place_of(socket, object),
        "a unix socket is connected to a process outside of the tree whose socket has no name",
        "Close the connection before the dump, or dump a process from which both descend.");
  }
}

// Whether the dump will be told that this socket, or its peer, is external.
bool is_named(const Socket& socket, const UnixSocket& seen, const Options& options) {
  return is_external(options, "unix[" + std::to_string(socket.file.inode) + "]") ||
         is_external(options, "unix[" + std::to_string(seen.peer) + "]");
}

// The sockets whose peers no process of the tree has, by what was seen of them. Adds those to which
// a client waits to connect.
std::vector<Socket> with_outside_peers(const Tree& tree, const UnixSockets& sockets,
                                       const Options& options, Findings& found) {
  std::set<std::uint64_t> inside;
  for_each_socket(tree, kUnix, [&](const Socket& socket) { inside.insert(socket.file.inode); });
  std::vector<Socket> outside;
  for_each_socket(tree, kUnix, [&](const Socket& socket) {
    const auto at = sockets.find(socket.file.inode);
    if (at == sockets.end()) return;
    const UnixSocket& seen = at->second;
    if (seen.pending != 0) {
      found.add(Grade::warns, "unix-in-flight",
                place_of(socket, "waiting: " + std::to_string(seen.pending)));
    }
    if (seen.peer == 0 || inside.contains(seen.peer) || is_named(socket, seen, options)) return;
    outside.push_back(socket);
  });
  return outside;
}

// Whether the kernel's list shows all unix sockets of the tree. It is that of this program's
// network namespace.
bool are_here(Tree& tree) {
  const Member* elsewhere = nullptr;
  for_each_socket(tree, kUnix, [&](const Socket& socket) {
    if (socket.member.namespaces.of(Kind::net) != tree.own.of(Kind::net)) {
      elsewhere = &socket.member;
    }
  });
  if (elsewhere == nullptr) return true;
  tree.miss("peers of unix sockets", "in another network namespace, look there with nsenter -n",
            *elsewhere);
  return false;
}

void look_at_unix(Tree& tree, const Options& options, Findings& found) {
  bool any = false;
  for_each_socket(tree, kUnix, [&](const Socket& /*socket*/) { any = true; });
  if (!any) return;
  const bool others_seen = tree.not_seen.empty();
  const bool all_seen = are_here(tree) && others_seen;
  const Result<UnixSockets> before = unix_sockets();
  if (!before) return tree.miss("peers of unix sockets", before.error().message, tree.first());
  const std::vector<Socket> outside = with_outside_peers(tree, *before, options, found);
  if (outside.empty()) return;
  // The peer may have been opened after the descriptors were looked at, by a process of the tree or
  // by a child that began then, and that may have ended.
  const std::set<std::uint64_t> inside = tree.sockets_now();
  const Grade grade = all_seen && !tree.has_grown() ? Grade::refuses : Grade::warns;
  const Result<UnixSockets> after = unix_sockets();
  if (!after) return;
  for (const Socket& socket : outside) {
    const UnixSocket& seen = before->at(socket.file.inode);
    const auto now = after->find(socket.file.inode);
    const bool same = now != after->end() && now->second.peer == seen.peer;
    if (!same || inside.contains(seen.peer)) continue;
    const auto peer = after->find(seen.peer);
    add_outside_peer(grade, socket, seen, peer == after->end() ? nullptr : &peer->second, options,
                     found);
  }
}

}  // namespace

void look_at_sockets(Tree& tree, const Options& options, Findings& found) {
  look_at_protocols(tree, found);
  const GivenAddresses given(tree, options);
  WithAddress addresses;
  look_at_tcp(tree, options, given, addresses, found);
  look_at_udp(tree, given, addresses, found);
  look_at_netlink(tree, found);
  look_at_unix(tree, options, found);
  if (!options.container && !options.leave_running) {
    look_at_holders(tree, std::move(addresses), found);
  }
}

}  // namespace kymo::preflight
