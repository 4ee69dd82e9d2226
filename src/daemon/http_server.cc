#include "daemon/http_server.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <prometheus/text_serializer.h>
#include <strings.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <sstream>
#include <thread>

namespace kymo::daemon {
namespace {

constexpr std::size_t kWorkers = 2;
// Nobody who is served here sends a body; a caller that dawdles holds a worker.
constexpr std::size_t kLargestBody = 1024;
constexpr std::chrono::seconds kPatience{1};

std::string to_address(const std::string& host, int port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool is_loopback(const std::string& host) {
  in_addr ipv4{};
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return (ntohl(ipv4.s_addr) >> 24U) == 127;
  return host == "::1" || strcasecmp(host.c_str(), "localhost") == 0;
}

// NAME, NAME:PORT or [ADDRESS]:PORT without the port and the brackets.
std::string host_of(const std::string& header) {
  if (!header.empty() && header.front() == '[') return header.substr(1, header.find(']') - 1);
  return header.substr(0, header.find(':'));
}

// A page of another site can give its own name this machine's loopback address and read what is
// served there as its own; its browser sends that name. Where the port is open to the network
// there is nothing to protect in this way, and the machine may be called by any of its names.
bool named_as_ours(const std::string& header, const std::string& bound) {
  const std::string host = host_of(header);
  return !is_loopback(bound) || is_loopback(host) || strcasecmp(host.c_str(), bound.c_str()) == 0;
}

}  // namespace

struct HttpServer::State {
  httplib::Server server;
  std::string host;
  std::shared_ptr<prometheus::Collectable> metrics;
  std::thread thread;
};

HttpServer::HttpServer(std::shared_ptr<prometheus::Collectable> metrics)
    : state_(std::make_unique<State>()) {
  state_->metrics = std::move(metrics);
  httplib::Server& server = state_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kWorkers); };
  // A kept connection would hold one of the workers while it idles.
  server.set_keep_alive_max_count(1);
  // The library's own default sets SO_REUSEPORT, with which two daemons would share a port in
  // silence.
  server.set_socket_options([](int fd) {
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_payload_max_length(kLargestBody);
  server.set_read_timeout(kPatience);
  server.set_keep_alive_timeout(kPatience.count());  // also of the first request
  server.set_pre_routing_handler([this](const httplib::Request& request,
                                        httplib::Response& response) {
    if (named_as_ours(request.get_header_value("Host"), state_->host)) {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    response.status = 403;
    response.set_content("this port is served for localhost alone\n", "text/plain; charset=utf-8");
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
    std::ostringstream text;
    prometheus::TextSerializer().Serialize(text, state_->metrics->Collect());
    response.set_content(text.str(), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", "text/plain; charset=utf-8");
  });
}

HttpServer::~HttpServer() {
  stop();
}

Result<void> HttpServer::start(const HostPort& where) {
  httplib::Server& server = state_->server;
  errno = 0;
  int port = where.port;
  state_->host = where.host;
  const bool bound = port == 0 ? (port = server.bind_to_any_port(where.host)) > 0
                               : server.bind_to_port(where.host, port);
  const int cause = errno;
  if (!bound) {
    const std::string what = "serve HTTP on " + to_address(where.host, where.port);
    if (cause == EADDRINUSE) {
      return Error{Code::unavailable,
                   what + ": the port is in use: stop what serves it, or name another with --http",
                   cause};
    }
    if (cause == 0)
      return Error{Code::invalid_argument, what + ": no such address on this machine"};
    return system_error(what, cause);
  }
  address_ = to_address(where.host, port);
  state_->thread = std::thread([&server] { server.listen_after_bind(); });
  return {};
}

void HttpServer::stop() {
  if (!state_->thread.joinable()) return;
  // stop() is without effect before the listener's loop runs: wait for it.
  while (!state_->server.is_running()) std::this_thread::yield();
  state_->server.stop();
  state_->thread.join();
}

}  // namespace kymo::daemon
