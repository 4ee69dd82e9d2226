#include "checkpoint/preflight/given_addresses.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <utility>

#include "base/file.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

// Whether the path has the id of a container: then the runtime wrote the file, not a user.
bool has_container_id(const std::string& path) {
  constexpr std::size_t kDigits = 64;
  const std::filesystem::path parts(path);
  return std::any_of(parts.begin(), parts.end(), [](const std::filesystem::path& part) {
    const std::string text = part;
    return text.size() == kDigits && std::all_of(text.begin(), text.end(), [](unsigned char c) {
             return std::isxdigit(c) != 0;
           });
  });
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

// "10.0.0.1" of "10.0.0.1:80 to 10.0.0.2:4711", "fd00::1" of "[fd00::1]:80". Empty: every network has it.
std::string_view address_in(std::string_view ends) {
  constexpr std::string_view kMapped = "::ffff:";
  ends = ends.substr(0, ends.find(' '));
  const std::size_t colon = ends.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view address = ends.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  if (address.starts_with(kMapped)) address.remove_prefix(kMapped.size());
  const bool any = address == "0.0.0.0" || address == "::" || address == "*";
  return any || is_loopback(address) ? std::string_view() : address;
}

}  // namespace

GivenAddresses::GivenAddresses(const Tree& tree, const Options& options) {
  if (!options.container || !tree.has_own(Kind::net)) return;
  const HostName* hosts = nullptr;
  for (const HostName& name : options.names) {
    if (name.kind == "mount" && name.of == "/etc/hosts" && has_container_id(name.path))
      hosts = &name;
    const bool stays = name.kind == "namespace" && name.of == "network" && !name.holder.empty();
    if (stays) return;  // that of another container
  }
  const Result<std::string> text = hosts == nullptr ? Error{} : read_file(hosts->path);
  if (!text) return;
  anew_ = true;
  const auto routes = read_file(tree.folder_of(tree.first()) + "/net/fib_trie");
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    const std::string address(line.substr(0, line.find_first_of(" \t")));
    addresses_.insert(address);
    sure_ = sure_ || (!is_loopback(address) && routes &&
                      routes->find("-- " + address + "\n") != std::string::npos);
  }
}

void GivenAddresses::look_at(Place socket, std::string_view ends, Findings& found) const {
  const std::string_view address = anew_ ? address_in(ends) : std::string_view();
  if (address.empty() || addresses_.contains(address)) return;
  socket.object = ends;
  found.add(sure_ ? Grade::refuses : Grade::warns, "inet-address", std::move(socket),
            "a socket has an address that the container has given itself, and that its network has "
            "no longer after a restore",
            "Let the runtime give the address (podman or docker run --ip), or let the program "
            "listen on all addresses.");
}

}  // namespace kymo::preflight
