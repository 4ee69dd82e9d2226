#include "http/head.h"

#include <httplib.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_object.h"
#include "base/json_text.h"

namespace kymo::http {
namespace {

constexpr int kBadRequest = 400;
constexpr std::array<std::string_view, 4> kLeftOut = {"Range", "Accept-Encoding",
                                                      "Content-Encoding", "Content-Length"};
constexpr std::string_view kEndOfLine = "\r\n";

bool is_left_out(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  return std::any_of(kLeftOut.begin(), kLeftOut.end(), [name](std::string_view one) {
    return name.size() == one.size() && strncasecmp(name.data(), one.data(), one.size()) == 0;
  });
}

// The head without the headers of kLeftOut. With them the library would compress its answer at the
// highest level, and read and decode a body.
std::string head_for_library(std::string_view request) {
  std::string head;
  while (!request.empty()) {
    const std::size_t end = std::min(request.find(kEndOfLine), request.size());
    const std::string_view line = request.substr(0, end);
    request.remove_prefix(std::min(end + kEndOfLine.size(), request.size()));
    if (is_left_out(line)) continue;
    head.append(line).append(kEndOfLine);
    if (line.empty()) break;
  }
  return head;
}

// A stream that reads the request from memory, and drops what the library writes.
class Memory : public httplib::Stream {
 public:
  explicit Memory(std::string request) : request_(std::move(request)) {}

  [[nodiscard]] bool is_readable() const override { return read_ < request_.size(); }
  [[nodiscard]] bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t taken = request_.copy(to, size, read_);
    read_ += taken;
    return static_cast<ssize_t>(taken);
  }
  ssize_t write(const char* /*data*/, std::size_t size) override {
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    get_remote_ip_and_port(ip, port);
  }
  [[nodiscard]] socket_t socket() const override { return -1; }

 private:
  std::string request_;
  std::size_t read_ = 0;
};

// Uses only the parser of the library.
class Library : public httplib::Server {
 public:
  Head read(Memory& request) {
    Head head;
    head.refused = kBadRequest;  // 0 as soon as the library has parsed the request
    set_pre_routing_handler([&head](const httplib::Request& seen, httplib::Response&) {
      head.refused = 0;
      head.method = seen.method;
      head.path = seen.path;
      for (const auto& [name, value] : seen.params) head.query[name] = value;
      head.host = seen.get_header_value("Host");
      head.origin = seen.get_header_value("Origin");
      head.authorization = seen.get_header_value("Authorization");
      return httplib::Server::HandlerResponse::Handled;
    });
    set_error_handler([&head](const httplib::Request&, httplib::Response& response) {
      if (head.refused != 0 && response.status >= kBadRequest) head.refused = response.status;
    });
    bool closed = false;
    const auto without_ranges = [](httplib::Request& seen) { seen.ranges.clear(); };
    static_cast<void>(process_request(request, true, closed, without_ranges));
    return head;
  }
};

}  // namespace

Head read_head(std::string_view request) {
  Memory text(head_for_library(request));
  return Library().read(text);
}

std::string json_of(const Head& head) {
  nlohmann::json query = nlohmann::json::object();
  for (const auto& [name, value] : head.query) query[valid_utf8(name)] = value;
  return json_text(nlohmann::json{{"refused", head.refused},
                                  {"method", head.method},
                                  {"path", head.path},
                                  {"query", std::move(query)},
                                  {"host", head.host},
                                  {"origin", head.origin},
                                  {"authorization", head.authorization}});
}

std::optional<Head> head_in(std::string_view json) {
  const nlohmann::json said = parse_object(json);
  const nlohmann::json& query = member(said, "query");
  if (!query.is_object()) return std::nullopt;
  Head head;
  head.refused = static_cast<int>(number_of(said, "refused") % 1000);
  head.method = text_of(said, "method");
  head.path = text_of(said, "path");
  for (const auto& [name, value] : query.items()) {
    if (!value.is_string()) return std::nullopt;
    head.query[name] = value.get<std::string>();
  }
  head.host = text_of(said, "host");
  head.origin = text_of(said, "origin");
  head.authorization = text_of(said, "authorization");
  return head;
}

}  // namespace kymo::http
