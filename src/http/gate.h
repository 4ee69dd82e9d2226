#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kymo::http {

// Whether two secrets are the same, in a time that does not tell where they differ.
bool same_secret(std::string_view a, std::string_view b);

// NAME, NAME:PORT or [ADDRESS]:PORT without the port and the brackets.
std::string host_of(std::string_view header);
// 127.0.0.0/8, ::1 and localhost.
bool is_loopback(const std::string& host);

// Who is let in at an HTTP port.
//
// A page of any site can send its visitor's browser here. It may give its own name the address of
// this machine's loopback, and read what is served there as its own (the browser then sends that
// name in Host); and it may send requests without reading the answers (the browser then says in
// Origin where they come from). Neither gets past the names that are asked for here, and neither
// knows the token.
//
// Threads: any; it never changes.
class Gate {
 public:
  // `bound`: the host that the port is bound to. `name`: another that it is called by; may be
  // empty. `token`: empty: nobody has it, and guarded paths are closed.
  Gate(std::string bound, std::string name, std::string token)
      : bound_(std::move(bound)), name_(std::move(name)), token_(std::move(token)) {}

  struct Knock {
    std::string host;    // the header
    std::string origin;  // the header; empty: none
    std::string token;   // empty: none
    bool changes_state = false;
  };
  struct Refusal {
    int status = 403;
    std::string text;  // a line
  };

  // For what anybody may read. Where the port is open to the network there is nothing to protect,
  // and the machine may be called by any of its names.
  [[nodiscard]] std::optional<Refusal> refuse_open(const std::string& host) const;
  // For everything else; none: come in.
  [[nodiscard]] std::optional<Refusal> refuse(const Knock& knock) const;

 private:
  [[nodiscard]] bool is_ours(const std::string& host) const;

  std::string bound_;
  std::string name_;
  std::string token_;
};

}  // namespace kymo::http
