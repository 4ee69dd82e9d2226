#include "checkpoint/preflight/socket_state.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/file.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

struct Option {
  int level;
  int number;
  std::string_view name;
  bool steady = true;  // else the kernel sets it in a connection
};

// CRIU 4.2.1 loses all of these. Those that a socket does not have are not answered. Numbers stand where the C library of
// Debian 12 has no name.
constexpr std::array kOptions{
    Option{SOL_SOCKET, SO_TIMESTAMP, "SO_TIMESTAMP"},
    Option{SOL_SOCKET, SO_TIMESTAMPNS, "SO_TIMESTAMPNS"},
    Option{SOL_SOCKET, SO_TIMESTAMPING, "SO_TIMESTAMPING"},
    Option{SOL_SOCKET, SO_BUSY_POLL, "SO_BUSY_POLL"},
    Option{SOL_SOCKET, SO_PREFER_BUSY_POLL, "SO_PREFER_BUSY_POLL"},
    Option{SOL_SOCKET, SO_RXQ_OVFL, "SO_RXQ_OVFL"},
    Option{SOL_SOCKET, SO_MAX_PACING_RATE, "SO_MAX_PACING_RATE"},
    Option{SOL_SOCKET, SO_ZEROCOPY, "SO_ZEROCOPY"},
    Option{SOL_SOCKET, SO_SELECT_ERR_QUEUE, "SO_SELECT_ERR_QUEUE"},
    Option{SOL_SOCKET, SO_PEEK_OFF, "SO_PEEK_OFF"},
    Option{SOL_SOCKET, SO_WIFI_STATUS, "SO_WIFI_STATUS"},
    Option{SOL_SOCKET, SO_LOCK_FILTER, "SO_LOCK_FILTER"},
    Option{SOL_SOCKET, SO_INCOMING_CPU, "SO_INCOMING_CPU", false},
    Option{SOL_SOCKET, 75, "SO_RCVMARK"},
    Option{SOL_SOCKET, 76, "SO_PASSPIDFD"},
    Option{SOL_SOCKET, 82, "SO_RCVPRIORITY"},
    Option{IPPROTO_TCP, TCP_USER_TIMEOUT, "TCP_USER_TIMEOUT"},
    Option{IPPROTO_TCP, TCP_DEFER_ACCEPT, "TCP_DEFER_ACCEPT"},
    Option{IPPROTO_TCP, TCP_MAXSEG, "TCP_MAXSEG", false},
    Option{IPPROTO_TCP, TCP_FASTOPEN, "TCP_FASTOPEN"},
    Option{IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, "TCP_FASTOPEN_NO_COOKIE"},
    Option{IPPROTO_TCP, TCP_NOTSENT_LOWAT, "TCP_NOTSENT_LOWAT"},
    Option{IPPROTO_TCP, TCP_SYNCNT, "TCP_SYNCNT"},
    Option{IPPROTO_TCP, TCP_LINGER2, "TCP_LINGER2"},
    Option{IPPROTO_TCP, TCP_WINDOW_CLAMP, "TCP_WINDOW_CLAMP", false},
    Option{IPPROTO_TCP, TCP_SAVE_SYN, "TCP_SAVE_SYN"},
    Option{IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, "TCP_THIN_LINEAR_TIMEOUTS"},
    Option{IPPROTO_TCP, TCP_INQ, "TCP_INQ"},
    Option{IPPROTO_TCP, TCP_TX_DELAY, "TCP_TX_DELAY"},
    Option{IPPROTO_TCP, 44, "TCP_RTO_MAX_MS"},
    Option{IPPROTO_TCP, TCP_CONGESTION, "TCP_CONGESTION"},
    Option{IPPROTO_UDP, 103, "UDP_SEGMENT"},
    Option{IPPROTO_UDP, 104, "UDP_GRO"},
    Option{IPPROTO_UDP, 100, "UDP_ENCAP"},
    Option{IPPROTO_UDP, 101, "UDP_NO_CHECK6_TX"},
    Option{IPPROTO_UDP, 102, "UDP_NO_CHECK6_RX"},
    Option{IPPROTO_IP, IP_MTU_DISCOVER, "IP_MTU_DISCOVER"},
    Option{IPPROTO_IP, IP_RECVERR, "IP_RECVERR"},
    Option{IPPROTO_IP, IP_RECVERR_RFC4884, "IP_RECVERR_RFC4884"},
    Option{IPPROTO_IP, IP_RECVTTL, "IP_RECVTTL"},
    Option{IPPROTO_IP, IP_RECVTOS, "IP_RECVTOS"},
    Option{IPPROTO_IP, IP_RECVOPTS, "IP_RECVOPTS"},
    Option{IPPROTO_IP, IP_RETOPTS, "IP_RETOPTS"},
    Option{IPPROTO_IP, IP_RECVORIGDSTADDR, "IP_RECVORIGDSTADDR"},
    Option{IPPROTO_IP, IP_RECVFRAGSIZE, "IP_RECVFRAGSIZE"},
    Option{IPPROTO_IP, IP_CHECKSUM, "IP_CHECKSUM"},
    Option{IPPROTO_IP, IP_PASSSEC, "IP_PASSSEC"},
    Option{IPPROTO_IP, IP_MULTICAST_TTL, "IP_MULTICAST_TTL", false},
    Option{IPPROTO_IP, IP_MULTICAST_LOOP, "IP_MULTICAST_LOOP"},
    Option{IPPROTO_IP, IP_MULTICAST_ALL, "IP_MULTICAST_ALL"},
    Option{IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, "IP_BIND_ADDRESS_NO_PORT"},
    Option{IPPROTO_IP, IP_MINTTL, "IP_MINTTL"},
    Option{IPPROTO_IP, IP_UNICAST_IF, "IP_UNICAST_IF"},
    Option{IPPROTO_IP, IP_TRANSPARENT, "IP_TRANSPARENT"},
    Option{IPPROTO_IP, 51, "IP_LOCAL_PORT_RANGE"},
    Option{IPPROTO_IPV6, IPV6_UNICAST_HOPS, "IPV6_UNICAST_HOPS", false},
    Option{IPPROTO_IPV6, IPV6_MULTICAST_HOPS, "IPV6_MULTICAST_HOPS", false},
    Option{IPPROTO_IPV6, IPV6_MULTICAST_LOOP, "IPV6_MULTICAST_LOOP"},
    Option{IPPROTO_IPV6, IPV6_MULTICAST_IF, "IPV6_MULTICAST_IF", false},
    Option{IPPROTO_IPV6, IPV6_MULTICAST_ALL, "IPV6_MULTICAST_ALL"},
    Option{IPPROTO_IPV6, IPV6_TCLASS, "IPV6_TCLASS"},
    Option{IPPROTO_IPV6, IPV6_RECVTCLASS, "IPV6_RECVTCLASS"},
    Option{IPPROTO_IPV6, IPV6_RECVHOPLIMIT, "IPV6_RECVHOPLIMIT"},
    Option{IPPROTO_IPV6, IPV6_RECVERR, "IPV6_RECVERR"},
    Option{IPPROTO_IPV6, IPV6_RECVPATHMTU, "IPV6_RECVPATHMTU"},
    Option{IPPROTO_IPV6, IPV6_RECVDSTOPTS, "IPV6_RECVDSTOPTS"},
    Option{IPPROTO_IPV6, IPV6_RECVRTHDR, "IPV6_RECVRTHDR"},
    Option{IPPROTO_IPV6, IPV6_RECVHOPOPTS, "IPV6_RECVHOPOPTS"},
    Option{IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, "IPV6_RECVORIGDSTADDR"},
    Option{IPPROTO_IPV6, IPV6_MTU_DISCOVER, "IPV6_MTU_DISCOVER"},
    Option{IPPROTO_IPV6, IPV6_DONTFRAG, "IPV6_DONTFRAG"},
    Option{IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, "IPV6_ADDR_PREFERENCES"},
    Option{IPPROTO_IPV6, IPV6_MINHOPCOUNT, "IPV6_MINHOPCOUNT"},
    Option{IPPROTO_IPV6, IPV6_UNICAST_IF, "IPV6_UNICAST_IF"},
    Option{IPPROTO_IPV6, IPV6_TRANSPARENT, "IPV6_TRANSPARENT"}};

// The bytes of an option. Empty: this socket has no such option.
std::string option_of(int socket, const Option& option) {
  std::array<char, 16> bytes{};  // TCP_CA_NAME_MAX
  socklen_t size = bytes.size();
  if (::getsockopt(socket, option.level, option.number, bytes.data(), &size) != 0) return {};
  return {bytes.data(), size};
}

int integer_of(int socket, int option) {
  int number = -1;
  socklen_t size = sizeof number;
  if (::getsockopt(socket, SOL_SOCKET, option, &number, &size) != 0) return -1;
  return number;
}

bool is_connected(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
}

// The bytes that the hexadecimal digits stand for.
std::string bytes_of(std::string_view digits) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
    bytes.push_back(static_cast<char>(number_at(digits.substr(at, 2), 16)));
  }
  return bytes;
}

// Groups that the kernel itself joins: all hosts, and those by which IPv6 finds neighbours.
bool is_of_kernel(std::string_view digits) {
  return digits == "010000E0" || digits.starts_with("ff01") ||
         digits == "ff020000000000000000000000000001" ||
         digits.starts_with("ff0200000000000000000001ff");
}

}  // namespace

const SocketState::Values& SocketState::values_of_new(const Type& type) {
  Values& values = new_[type];
  if (!values.empty()) return values;
  values.resize(kOptions.size());
  const FileDescriptor socket(::socket(type.domain, type.kind | SOCK_CLOEXEC, type.protocol));
  if (!socket.valid()) return values;
  std::transform(kOptions.begin(), kOptions.end(), values.begin(),
                 [&](const Option& option) { return option_of(socket.get(), option); });
  return values;
}

// The kernel does not list the groups of a socket, but tells of one whether the socket is in it.
bool SocketState::is_in_group(int socket, int domain) {
  if (!groups_) {
    groups_.emplace();
    const Result<std::string> ipv4 = read_file(folder_ + "/net/igmp");
    unsigned interface = 0;
    for (std::string_view rest = ipv4 ? *ipv4 : std::string_view(); !rest.empty();) {
      std::string_view line = take_line(rest);
      if (!line.starts_with('\t')) {
        interface = static_cast<unsigned>(number_at(line));
      } else if (const std::string_view group = line.substr(line.find_first_not_of('\t'), 8);
                 !is_of_kernel(group)) {
        std::string address = bytes_of(group);
        std::reverse(address.begin(), address.end());  // a number of this machine's byte order
        groups_->push_back({AF_INET, interface, std::move(address)});
      }
    }
    const Result<std::string> ipv6 = read_file(folder_ + "/net/igmp6");
    for (std::string_view rest = ipv6 ? *ipv6 : std::string_view(); !rest.empty();) {
      const std::vector<std::string_view> words = words_of(take_line(rest));
      if (words.size() < 3 || is_of_kernel(words[2])) continue;
      groups_->push_back(
          {AF_INET6, static_cast<unsigned>(number_at(words[0])), bytes_of(words[2])});
    }
  }
  return std::any_of(groups_->begin(), groups_->end(), [&](const Group& group) {
    if (group.domain != domain) return false;
    group_filter filter{};
    filter.gf_interface = group.interface;
    if (domain == AF_INET) {
      auto& address = reinterpret_cast<sockaddr_in&>(filter.gf_group);
      address.sin_family = AF_INET;
      std::memcpy(&address.sin_addr, group.address.data(),
                  std::min(group.address.size(), sizeof address.sin_addr));
    } else {
      auto& address = reinterpret_cast<sockaddr_in6&>(filter.gf_group);
      address.sin6_family = AF_INET6;
      std::memcpy(&address.sin6_addr, group.address.data(),
                  std::min(group.address.size(), sizeof address.sin6_addr));
    }
    socklen_t size = sizeof filter;
    return ::getsockopt(socket, domain == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, MCAST_MSFILTER,
                        &filter, &size) == 0;
  });
}

std::vector<std::string_view> SocketState::lost_of(int socket) {
  std::vector<std::string_view> names;
  const Type type{integer_of(socket, SO_DOMAIN), integer_of(socket, SO_TYPE),
                  integer_of(socket, SO_PROTOCOL)};
  const bool of_internet = type.domain == AF_INET || type.domain == AF_INET6;
  if ((!of_internet && type.domain != AF_UNIX) || type.kind == SOCK_RAW) return names;
  const Values& values = values_of_new(type);
  const bool connected = is_connected(socket);
  for (std::size_t i = 0; i < kOptions.size(); ++i) {
    const Option& option = kOptions.at(i);
    if (values.at(i).empty() || (connected && !option.steady)) continue;
    const std::string now = option_of(socket, option);
    if (!now.empty() && now != values.at(i)) names.push_back(option.name);
  }
  if (of_internet && type.kind == SOCK_DGRAM && is_in_group(socket, type.domain)) {
    names.emplace_back("its multicast groups");
  }
  return names;
}

}  // namespace kymo::preflight
