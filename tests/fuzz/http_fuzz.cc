#include <algorithm>
#include <string_view>

#include "http/front_door.h"
#include "http/library.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

// A request in memory, and what is answered.
class Memory : public httplib::Stream {
 public:
  explicit Memory(std::string request) : request_(std::move(request)) {}
  [[nodiscard]] const std::string& answer() const { return answer_; }

  [[nodiscard]] bool is_readable() const override { return read_ < request_.size(); }
  [[nodiscard]] bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t n = std::min(size, request_.size() - read_);
    request_.copy(to, n, read_);
    read_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* text, std::size_t size) override {
    answer_.append(text, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = "127.0.0.1";
    port = 1;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    get_remote_ip_and_port(ip, port);
  }
  [[nodiscard]] socket_t socket() const override { return -1; }

 private:
  std::string request_;
  std::string answer_;
  std::size_t read_ = 0;
};

void serve(const std::string& head) {
  httplib::Request seen;
  http::Library library;
  const auto answer = [&seen](const httplib::Request& request, httplib::Response& response) {
    seen = request;
    response.set_content("text", "text/plain");
  };
  library.Get(".*", answer);
  library.Post(".*", answer);
  Memory connection(head);
  library.open(0);
  library.serve(connection);
  library.close();
  require(connection.answer().empty() || connection.answer().starts_with("HTTP/1.1 "),
          "an answer is HTTP");
  require(seen.ranges.empty() && seen.body.empty(), "no part and no body gets through");
  for (const char* name : {"Range", "Accept-Encoding", "Content-Encoding", "Content-Length"}) {
    require(!seen.has_header(name), "no field that makes the library do more gets through");
  }
}

}  // namespace

void http(Bytes data) {
  const std::string text = text_of(data);
  http::Framing at_once;
  at_once.read(text);
  http::Framing bit_by_bit;
  const std::string_view all = text;
  for (std::size_t size = 1; size <= all.size(); ++size) {
    bit_by_bit.read(all.substr(0, size));
  }
  require(at_once.length() == bit_by_bit.length() && at_once.refused() == bit_by_bit.refused(),
          "it does not matter how a request comes in");
  require(at_once.refused() == 0 || at_once.refused() >= 400, "what is refused has a status");
  require(at_once.length() <= http::FrontDoor::kLongestHead + http::FrontDoor::kLongestBody,
          "a request is bounded");
  if (at_once.refused() == 0 && at_once.length() != 0 && at_once.length() <= text.size()) {
    serve(http::head_for_library(text.substr(0, at_once.length())));
  }
}

}  // namespace kymo::fuzz
