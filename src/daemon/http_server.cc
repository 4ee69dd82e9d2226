#include "daemon/http_server.h"

#include <httplib.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>

#include <cerrno>
#include <sstream>
#include <thread>

namespace kymo::daemon {
namespace {

constexpr std::size_t kWorkers = 2;

std::string to_address(const std::string& host, int port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace

struct HttpServer::State {
  httplib::Server server;
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
