#include "checkpoint/preflight/socket_tables.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

constexpr std::size_t kMaxTable = std::size_t{16} << 20U;

// "0100007F:0050" as "127.0.0.1:80". The kernel writes the address as 32-bit numbers of this
// machine's byte order.
std::string address_text(std::string_view hex) {
  constexpr std::size_t kDigits = 8;
  const std::size_t colon = hex.find(':');
  if (colon == std::string_view::npos || colon % kDigits != 0) return std::string(hex);
  std::array<std::uint32_t, 4> parts{};
  for (std::size_t i = 0; i < std::min(colon / kDigits, parts.size()); ++i) {
    parts.at(i) = static_cast<std::uint32_t>(number_at(hex.substr(i * kDigits, kDigits), 16));
  }
  const bool ipv6 = colon > kDigits;
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(ipv6 ? AF_INET6 : AF_INET, parts.data(), text.data(), text.size());
  const std::string port = std::to_string(number_at(hex.substr(colon + 1), 16));
  return ipv6 ? "[" + std::string(text.data()) + "]:" + port : text.data() + (":" + port);
}

template <class Each>
Result<void> for_each_row(const std::string& table, const Each& each) {
  const Result<std::string> text = read_file(table, kMaxTable);
  if (!text) return text.error();
  for (std::string_view rest = *text; !rest.empty();) {
    each(words_of(take_line(rest)));
  }
  return {};
}

}  // namespace

Result<std::map<std::uint64_t, InetSocket>> inet_sockets(const std::string& table,
                                                         const std::set<std::uint64_t>& inodes) {
  constexpr std::size_t kLocal = 1;
  constexpr std::size_t kPeer = 2;
  constexpr std::size_t kState = 3;
  constexpr std::size_t kQueues = 4;
  constexpr std::size_t kInode = 9;
  std::map<std::uint64_t, InetSocket> found;
  const Result<void> read = for_each_row(table, [&](const auto& columns) {
    if (columns.size() <= kInode) return;
    const std::uint64_t inode = number_at(columns[kInode]);
    if (!inodes.contains(inode)) return;
    InetSocket socket;
    socket.state = static_cast<unsigned>(number_at(columns[kState], 16));
    const std::string_view queues = columns[kQueues];
    socket.sending = number_at(queues, 16);
    socket.receiving =
        number_at(queues.substr(std::min(queues.find(':'), queues.size() - 1) + 1), 16);
    socket.ends = address_text(columns[kLocal]);
    if (socket.state != kListening && socket.state != kClosed) {
      socket.ends += " to " + address_text(columns[kPeer]);
    }
    found[inode] = std::move(socket);
  });
  if (!read) return read.error();
  return found;
}

Result<std::map<std::uint64_t, std::uint64_t>> netlink_unread(const std::string& table) {
  constexpr std::size_t kUnread = 4;
  constexpr std::size_t kInode = 9;
  std::map<std::uint64_t, std::uint64_t> unread;
  const Result<void> read = for_each_row(table, [&](const auto& columns) {
    if (columns.size() > kInode) unread[number_at(columns[kInode])] = number_at(columns[kUnread]);
  });
  if (!read) return read.error();
  return unread;
}

}  // namespace kymo::preflight
