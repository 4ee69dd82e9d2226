#include "http/server.h"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/json_text.h"
#include "http/connections.h"
#include "http/threads.h"
#include "http/token_file.h"

namespace kymo::http {
namespace {

constexpr std::size_t kLargestBody = 16384;
// A caller that dawdles over its request holds a thread for so long, and one that does not take its
// answer.
constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::seconds kWritePatience{3};
// What a client that reads has to take the end of its stream when the server stops.
constexpr std::chrono::milliseconds kLastWords{200};
// What the kernel keeps for a client that stands still.
constexpr int kSendBuffer = 128 << 10;
constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kText = "text/plain; charset=utf-8";

enum class Way : std::uint8_t { open, get, post, stream, page };

struct Route {
  Way way = Way::get;
  Server::Handler handler;
  Server::StreamHandler stream;
};

class Queue : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> work) override { threads_.enqueue(std::move(work)); }
  void shutdown() override { threads_.shutdown(); }

 private:
  Threads threads_{Server::kMostThreads};
};

int status_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
    case Code::out_of_range:
      return 400;
    case Code::permission_denied:
      return 403;
    case Code::not_found:
      return 404;
    case Code::already_exists:
    case Code::failed_precondition:
    case Code::aborted:
      return 409;
    case Code::resource_exhausted:
      return 429;
    case Code::unimplemented:
      return 501;
    case Code::unavailable:
      return 503;
    case Code::deadline_exceeded:
      return 504;
    default:
      return 500;
  }
}

// The code's name as gRPC's documentation has it.
const char* name_of(Code code) {
  constexpr const char* kNames[] = {"",
                                    "cancelled",
                                    "unknown",
                                    "invalid_argument",
                                    "deadline_exceeded",
                                    "not_found",
                                    "already_exists",
                                    "permission_denied",
                                    "resource_exhausted",
                                    "failed_precondition",
                                    "aborted",
                                    "out_of_range",
                                    "unimplemented",
                                    "internal",
                                    "unavailable",
                                    "data_loss"};
  return kNames[static_cast<std::size_t>(code)];
}

Request request_of(const httplib::Request& from) {
  Request request;
  for (const auto& [name, value] : from.params) request.query[name] = value;
  request.body = from.body;
  return request;
}

// The library refuses a POST that has none.
bool has_body(const httplib::Request& request) {
  return request.has_header("Content-Length") || request.has_header("Transfer-Encoding");
}

void fill(httplib::Response& to, const Reply& reply) {
  to.status = reply.status;
  for (const auto& [name, value] : reply.headers) to.set_header(name, value);
  to.set_content(reply.body, reply.type);
}

// In the header that scripts send, or in the address that `kymo web` prints.
std::string token_of(const httplib::Request& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string header = request.get_header_value("Authorization");
  if (header.rfind(kBearer, 0) == 0) return header.substr(kBearer.size());
  return request.get_param_value("token");
}

// What a browser without the token is shown. The page keeps the token for as long as its tab is
// there and takes it out of the address; a reload finds it again by this.
Reply door(const Gate::Refusal& refusal) {
  const Result<std::string> nonce = make_token();
  const std::string own = nonce ? *nonce : std::string();
  std::string html =
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<title>Kymograph</title><p>" +
      refusal.text + "</p><script nonce=\"" + own +
      "\">const asked=new "
      "URLSearchParams(location.search),kept=sessionStorage.getItem(\"kymo-token\");"
      "if(asked.has(\"token\"))sessionStorage.removeItem(\"kymo-token\");"
      "else if(kept){asked.set(\"token\",kept);location.replace(\"?\"+asked+location.hash);}"
      "</script></html>\n";
  Reply reply = page_reply(std::move(html), own);
  reply.status = refusal.status;
  return reply;
}

}  // namespace

std::string Request::value(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::string() : found->second;
}

Reply json_reply(std::string json) {
  return {200, "application/json", std::move(json), {}};
}

Reply error_reply(const Error& error) {
  const nlohmann::json json{{"error", {{"code", name_of(error.code)}, {"message", error.message}}}};
  Reply reply = json_reply(json_text(json) + "\n");
  reply.status = status_of(error.code);
  return reply;
}

Reply page_reply(std::string html, const std::string& nonce) {
  const std::string own = "'nonce-" + nonce + "'";
  Reply reply{200, kHtml, std::move(html), {}};
  reply.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; script-src " + own + "; style-src " + own +
          "; connect-src 'self' data:; img-src 'self' data: blob:; frame-src 'self'; "
          "frame-ancestors 'self'; base-uri 'none'; form-action 'none'");
  return reply;
}

std::string address_of(const std::string& host, int port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

struct Server::State {
  explicit State(Options own)
      : options(std::move(own)), gate(options.host, options.name, options.token) {}

  Options options;
  Gate gate;
  httplib::Server server;
  std::map<std::string, Route> routes;
  std::string address;
  int listener = -1;  // the library's
  std::thread thread;
  std::atomic<std::size_t> streams{0};
  std::mutex mutex;
  std::condition_variable stop_comes;
  std::condition_variable ended;
  bool stopping = false;   // guarded by mutex
  bool all_ended = false;  // guarded by mutex: no thread serves anybody

  void set_up();
  bool refused(const httplib::Request& request, httplib::Response& response, const Route* route);
  void answer(const Route* route, const httplib::Request& request, httplib::Response& response);
  void begin_stream(const StreamHandler& handler, const httplib::Request& request,
                    httplib::Response& response);
  const Route* route_of(const httplib::Request& request) const;
};

namespace {

// Over one chunked reply.
class ChunkedEvents : public EventStream {
 public:
  ChunkedEvents(httplib::DataSink& sink, std::mutex& mutex, std::condition_variable& stop_comes,
                const bool& stopping)
      : sink_(sink), mutex_(mutex), stop_comes_(stop_comes), stopping_(stopping) {}

  bool send(std::string_view event, std::string_view data) override {
    std::string text = "event: " + std::string(event) + "\ndata: ";
    text.append(data).append("\n\n");
    return open_ = open_ && sink_.write(text.data(), text.size());
  }
  bool wait(std::chrono::milliseconds time) override {
    std::unique_lock lock(mutex_);
    return open_ && !stop_comes_.wait_for(lock, time, [this] { return stopping_; });
  }

 private:
  httplib::DataSink& sink_;
  std::mutex& mutex_;
  std::condition_variable& stop_comes_;
  const bool& stopping_;
  bool open_ = true;
};

}  // namespace

const Route* Server::State::route_of(const httplib::Request& request) const {
  const auto found = routes.find(request.path);
  if (found == routes.end()) return nullptr;
  const bool post = found->second.way == Way::post;
  const bool reads = request.method == "GET" || request.method == "HEAD";
  return (post ? request.method == "POST" : reads) ? &found->second : nullptr;
}

bool Server::State::refused(const httplib::Request& request, httplib::Response& response,
                            const Route* route) {
  const std::string host = request.get_header_value("Host");
  // That there is nothing at a path is no secret.
  const bool is_open = route == nullptr || route->way == Way::open;
  const std::optional<Gate::Refusal> refusal =
      is_open ? gate.refuse_open(host)
              : gate.refuse({host, request.get_header_value("Origin"), token_of(request),
                             request.method != "GET" && request.method != "HEAD"});
  if (!refusal) return false;
  if (!is_open && route->way == Way::page && refusal->status == 401) {
    fill(response, door(*refusal));
  } else if (is_open) {
    fill(response, {refusal->status, kText, refusal->text + "\n", {}});
  } else {
    Reply reply = error_reply({Code::permission_denied, refusal->text});
    reply.status = refusal->status;
    fill(response, reply);
  }
  return true;
}

void Server::State::begin_stream(const StreamHandler& handler, const httplib::Request& request,
                                 httplib::Response& response) {
  const auto leave = std::shared_ptr<void>(nullptr, [this](void*) { --streams; });
  if (streams.fetch_add(1) >= kMostStreams) {
    return fill(response, error_reply({Code::resource_exhausted,
                                       std::to_string(kMostStreams) +
                                           " event streams are open already: close a page"}));
  }
  Result<EventSource> source = handler(request_of(request));
  if (!source) return fill(response, error_reply(source.error()));
  response.set_chunked_content_provider(
      "text/event-stream",
      [this, leave, source = std::move(source).value()](std::size_t, httplib::DataSink& sink) {
        ChunkedEvents events(sink, mutex, stop_comes, stopping);
        try {
          source(events);
        } catch (const std::exception& error) {  // nothing crosses into the library
          static_cast<void>(events.send("error", json_text(nlohmann::json(error.what()))));
        }
        sink.done();
        return true;
      });
}

void Server::State::answer(const Route* route, const httplib::Request& request,
                           httplib::Response& response) {
  if (route == nullptr) {
    return fill(response, error_reply({Code::not_found, "there is nothing at this path"}));
  }
  try {
    if (route->stream) return begin_stream(route->stream, request, response);
    fill(response, route->handler(request_of(request)));
  } catch (const std::exception& error) {  // out of memory, say
    fill(response, error_reply({Code::internal, error.what()}));
  }
}

void Server::State::set_up() {
  server.new_task_queue = [] { return new Queue; };
  // A kept connection would hold a thread while it idles.
  server.set_keep_alive_max_count(1);
  // The library's own default sets SO_REUSEPORT, with which two daemons would share a port in
  // silence.
  server.set_socket_options([this](int fd) {
    listener = fd;
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBuffer,
               sizeof(kSendBuffer));  // connections inherit
  });
  server.set_tcp_nodelay(true);
  server.set_payload_max_length(kLargestBody);
  server.set_read_timeout(kPatience);
  server.set_write_timeout(kWritePatience);
  server.set_keep_alive_timeout(kPatience.count());  // also of the first request
  server.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cache-Control", "no-store"},
                              {"Cross-Origin-Resource-Policy", "same-origin"},
                              {"Cross-Origin-Opener-Policy", "same-origin"}});
  // What is read is answered here. What has a body comes by again once it is there.
  server.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        const Route* const route = route_of(request);
        if (refused(request, response, route)) return httplib::Server::HandlerResponse::Handled;
        if (route != nullptr && route->way == Way::post && has_body(request)) {
          return httplib::Server::HandlerResponse::Unhandled;
        }
        answer(route, request, response);
        return httplib::Server::HandlerResponse::Handled;
      });
  // What the library itself refuses, such as a body that is too long.
  server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    const int status = response.status;
    Reply reply = error_reply(
        {Code::invalid_argument,
         status == 413 ? "the body is longer than " + std::to_string(kLargestBody) + " bytes"
                       : "this is no HTTP request that is understood"});
    reply.status = status;
    fill(response, reply);
  });
  server.Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
    answer(route_of(request), request, response);
  });
}

Server::Server(Options options) : state_(std::make_unique<State>(std::move(options))) {
  state_->set_up();
}

Server::~Server() {
  stop();
}

void Server::open(const std::string& path, Handler handler) {
  state_->routes[path] = {Way::open, std::move(handler), {}};
}
void Server::get(const std::string& path, Handler handler) {
  state_->routes[path] = {Way::get, std::move(handler), {}};
}
void Server::post(const std::string& path, Handler handler) {
  state_->routes[path] = {Way::post, std::move(handler), {}};
}
void Server::stream(const std::string& path, StreamHandler handler) {
  state_->routes[path] = {Way::stream, {}, std::move(handler)};
}
void Server::page(const std::string& path, Handler handler) {
  state_->routes[path] = {Way::page, std::move(handler), {}};
}

Result<void> Server::start() {
  httplib::Server& server = state_->server;
  const Options& where = state_->options;
  errno = 0;
  int port = where.port;
  const bool bound = port == 0 ? (port = server.bind_to_any_port(where.host)) > 0
                               : server.bind_to_port(where.host, port);
  const int cause = errno;
  if (!bound) {
    const std::string what = "serve HTTP on " + address_of(where.host, where.port);
    if (cause == EADDRINUSE) {
      return Error{Code::unavailable,
                   what + ": the port is in use: stop what serves it, or name another with " +
                       where.port_flag,
                   cause};
    }
    if (cause == 0)
      return Error{Code::invalid_argument, what + ": no such address on this machine"};
    return system_error(what, cause);
  }
  // The library lets five wait to be accepted; of a burst of clients the rest would try again after
  // seconds. A second call changes how many do.
  if (::listen(state_->listener, SOMAXCONN) != 0) {
    return system_error("serve HTTP on " + address_of(where.host, port), errno);
  }
  state_->address = address_of(where.host, port);
  state_->thread = std::thread([&server] { server.listen_after_bind(); });
  return {};
}

void Server::stop() {
  if (!state_->thread.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->stop_comes.notify_all();
  // stop() is without effect before the listener's loop runs: wait for it.
  while (!state_->server.is_running()) std::this_thread::yield();
  const int listener = dup(state_->listener);  // the library closes its own
  state_->server.stop();
  // The library waits for its threads, each of which may wait for a client that stands still.
  std::thread cut([this, listener] {
    const auto until = std::chrono::steady_clock::now() + kLastWords;
    std::unique_lock lock(state_->mutex);
    state_->ended.wait_until(lock, until, [this] { return state_->all_ended; });
    lock.unlock();
    cut_connections(listener);
    close(listener);
  });
  state_->thread.join();
  {
    const std::lock_guard lock(state_->mutex);
    state_->all_ended = true;
  }
  state_->ended.notify_all();
  cut.join();
}

const std::string& Server::address() const {
  return state_->address;
}

std::string Server::url(const std::string& path) const {
  const std::string& host = state_->options.host;
  // Nobody's browser goes to the address that stands for all.
  const std::string port = state_->address.substr(state_->address.rfind(':'));
  const bool any = host == "0.0.0.0" || host == "::";
  return "http://" + (any ? "127.0.0.1" + port : state_->address) + path +
         "?token=" + state_->options.token;
}

}  // namespace kymo::http
