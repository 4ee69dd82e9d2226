#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kymo::http {

// Whether two secrets are the same. The time does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b);

// Whether it is a valid value of a Host header: empty, NAME, NAME:PORT or [ADDRESS]:PORT.
bool is_host(std::string_view header);
// The host of a Host header (NAME, NAME:PORT or [ADDRESS]:PORT), without port and brackets.
std::string host_of(std::string_view header);
// Whether it is in 127.0.0.0/8, or ::1, or localhost.
bool is_loopback(const std::string& host);

// Decides which requests an HTTP port accepts.
//
// A page of any web site can make its visitor's browser send requests to this port, in two ways:
// - The site lets its own name resolve to the loopback address, and reads the answers as its own
//   (DNS rebinding). The browser then sends the site's name in Host.
// - The page sends requests without reading the answers. The browser then sends the site in Origin.
// The gate checks Host and Origin, and so refuses both. Besides, the site does not know the token.
//
// Threads: any; it never changes.
class Gate {
 public:
  // `bound`: the host to which the port is bound. `name`: another name of this host; may be empty.
  // `token`: if it is empty, all guarded requests are refused.
  Gate(std::string bound, std::string name, std::string token)
      : bound_(std::move(bound)), name_(std::move(name)), token_(std::move(token)) {}

  struct Credentials {
    std::string host;    // the header
    std::string origin;  // the header; empty: none
    std::string token;   // empty: none
    bool changes_state = false;
  };
  struct Refusal {
    int status = 403;
    std::string text;  // a line
  };

  // For paths that need no token. If the port is open to the network, every client can read them
  // anyway, and so any name of the machine is accepted.
  [[nodiscard]] std::optional<Refusal> refuse_open(const std::string& host) const;
  // For all other paths. Returns nothing if the request is accepted.
  [[nodiscard]] std::optional<Refusal> refuse(const Credentials& credentials) const;

 private:
  [[nodiscard]] bool is_ours(const std::string& host) const;

  std::string bound_;
  std::string name_;
  std::string token_;
};

}  // namespace kymo::http
