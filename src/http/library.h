#pragma once

#include <httplib.h>

#include <string>
#include <string_view>

namespace kymo::http {

// The library parses requests and writes answers. Its own listener reads a request line, a header
// and a body of any length, each on a thread, so it gets heads from a FrontDoor instead.
class Library : public httplib::Server {
 public:
  // It ends streams when it has no listener, which this stands in for.
  void open(int listener) { svr_sock_ = listener; }
  void close() { svr_sock_ = -1; }
  void serve(httplib::Stream& connection) {
    bool closed = false;
    // No part of an answer is asked for here; head_for_library() is the first bound.
    const auto without_ranges = [](httplib::Request& request) { request.ranges.clear(); };
    static_cast<void>(process_request(connection, true, closed, without_ranges));
  }
};

// The head of a request, without what makes the library do more than read it: Range, the encodings
// (it would compress as hard as it can) and the length of a body, which it would read and decode.
std::string head_for_library(std::string_view request);

}  // namespace kymo::http
