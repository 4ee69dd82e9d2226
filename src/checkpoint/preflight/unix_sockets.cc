#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "checkpoint/preflight/socket_tables.h"

namespace kymo::preflight {
namespace {

constexpr char kTried[] = "list the unix sockets";
constexpr std::size_t kReplySize = 32768;

struct DiagRequest {
  nlmsghdr head;
  unix_diag_req body;
};

Result<FileDescriptor> ask() {
  FileDescriptor netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink.valid()) return system_error(kTried, errno);
  // The kernel answers at once. This is for the case that it does not answer at all.
  const timeval patience{1, 0};
  ::setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  DiagRequest request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.sdiag_family = AF_UNIX;
  request.body.udiag_states = ~0U;
  request.body.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS;
  if (::send(netlink.get(), &request, sizeof request, 0) < 0) return system_error(kTried, errno);
  return netlink;
}

// The structure at the beginning of `bytes`; all zero if they are too few.
template <class Structure>
Structure at_begin(std::string_view bytes) {
  Structure value{};
  if (bytes.size() >= sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// Takes the first part from `bytes`: it begins with its length, and the next one is aligned. Empty
// at the end.
template <class Length>
std::string_view take_part(std::string_view& bytes) {
  constexpr std::size_t kAligned = 4;
  const std::size_t length = at_begin<Length>(bytes);
  if (length < kAligned || length > bytes.size()) return {};
  const std::string_view part = bytes.substr(0, length);
  bytes.remove_prefix(std::min((length + kAligned - 1) / kAligned * kAligned, bytes.size()));
  return part;
}

// `body` is what follows the head of the message.
void add_socket(std::string_view body, UnixSockets& sockets) {
  if (body.size() < sizeof(unix_diag_msg)) return;
  const auto about = at_begin<unix_diag_msg>(body);
  UnixSocket socket;
  socket.type = about.udiag_type;
  body.remove_prefix(sizeof about);
  for (std::string_view part; !(part = take_part<std::uint16_t>(body)).empty();) {
    const auto type = at_begin<nlattr>(part).nla_type;
    const std::string_view value = part.substr(sizeof(nlattr));
    if (type == UNIX_DIAG_PEER) {
      socket.peer = at_begin<std::uint32_t>(value);
    } else if (type == UNIX_DIAG_NAME) {
      socket.has_name = true;
    } else if (type == UNIX_DIAG_ICONS) {
      socket.pending = value.size() / sizeof(std::uint32_t);
    }
  }
  sockets[about.udiag_ino] = socket;
}

}  // namespace

Result<UnixSockets> unix_sockets() {
  const Result<FileDescriptor> netlink = ask();
  if (!netlink) return netlink.error();
  UnixSockets sockets;
  std::vector<char> reply(kReplySize);
  while (true) {
    const ssize_t size = ::recv(netlink->get(), reply.data(), reply.size(), 0);
    if (size <= 0) return system_error(kTried, size == 0 ? EPROTO : errno);
    std::string_view rest(reply.data(), static_cast<std::size_t>(size));
    for (std::string_view message; !(message = take_part<std::uint32_t>(rest)).empty();) {
      const auto type = at_begin<nlmsghdr>(message).nlmsg_type;
      const std::string_view body = message.substr(std::min(sizeof(nlmsghdr), message.size()));
      if (type == NLMSG_DONE) return sockets;
      if (type == NLMSG_ERROR) return system_error(kTried, -at_begin<nlmsgerr>(body).error);
      add_socket(body, sockets);
    }
  }
}

}  // namespace kymo::preflight
