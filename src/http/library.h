#pragma once

#include <httplib.h>

#include <string>
#include <string_view>

namespace kymo::http {

// The library parses requests and writes answers. Its own listener reads a request line, a header
// and a body of any length, each on a thread, so it gets connections from a FrontDoor instead.
class Library : public httplib::Server {
 public:
  // It ends streams when it has no listener, which this stands in for.
  void open(int listener) { svr_sock_ = listener; }
  void close() { svr_sock_ = -1; }
  void serve(httplib::Stream& connection) {
    bool closed = false;
    static_cast<void>(process_request(connection, true, closed, nullptr));
  }
};

// The request without the headers of this name. The library makes much of a little Range, and
// nothing here is asked for in parts.
std::string without_header(const std::string& request, std::string_view name);

}  // namespace kymo::http
