#include "http/server.h"

#include <httplib.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/json_text.h"
#include "http/connection.h"
#include "http/front_door.h"
#include "http/library.h"
#include "http/threads.h"
#include "http/tickets.h"
#include "http/token_file.h"

namespace kymo::http {
namespace {

// Requests that wait for a thread.
constexpr std::size_t kMostWaiting = 64;
// What a client that reads has to take the end of its stream when the server stops.
constexpr std::chrono::milliseconds kLastWords{200};
constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kText = "text/plain; charset=utf-8";

enum class Way : std::uint8_t { open, get, post, stream, page };

struct Route {
  Way way = Way::get;
  Server::Handler handler;
  Server::StreamHandler stream;
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
  return request;
}

void fill(httplib::Response& to, const Reply& reply) {
  to.status = reply.status;
  for (const auto& [name, value] : reply.headers) to.set_header(name, value);
  to.set_content(reply.body, reply.type);
}

// Why the front door refuses a request with this status.
std::string refusal_text(int status) {
  switch (status) {
    case 411:
      return "a Transfer-Encoding is not understood: send the body with a Content-Length";
    case 413:
      return "the body is longer than " + std::to_string(FrontDoor::kLongestBody) + " bytes";
    case 431:
      return "the head of the request is longer than " + std::to_string(FrontDoor::kLongestHead) +
             " bytes";
    default:
      return "the head of the request is malformed: end each line with CR and LF, and send no NUL "
             "and at most one Content-Length, in digits";
  }
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

Result<std::uint64_t> Request::number(const std::string& name, std::uint64_t otherwise,
                                      std::uint64_t most) const {
  const std::string text = value(name);
  if (text.empty()) return otherwise;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number <= most) return number;
  return Error{Code::invalid_argument,
               name + "=" + text + ": wanted a number from 0 to " + std::to_string(most)};
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
  Library library;
  std::map<std::string, Route> routes;
  std::string address;
  std::atomic<std::size_t> streams{0};
  std::mutex mutex;
  std::condition_variable stop_comes;
  std::condition_variable none_served;
  bool stopping = false;         // guarded by mutex
  std::set<Connection*> served;  // guarded by mutex
  Threads threads{kMostThreads, kMostWaiting};
  FrontDoor front_door;

  Tickets tickets;

  [[nodiscard]] std::string base_url() const;
  void set_up();
  void serve(Connection& connection);
  void take(Incoming incoming);
  void stop();
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

std::string Server::State::base_url() const {
  // Nobody's browser goes to the address that stands for all.
  const std::string port = address.substr(address.rfind(':'));
  const bool any = options.host == "0.0.0.0" || options.host == "::";
  return "http://" + (any ? "127.0.0.1" + port : address);
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
  if (!is_open && route->way == Way::page && refusal->status == 401 &&
      tickets.take(request.get_param_value("ticket"))) {
    fill(response, {302, kText, "", {{"Location", request.path + "?token=" + options.token}}});
    return true;
  }
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
  const std::size_t others = streams.fetch_add(1);
  // Counts down even where no memory is left for the pointer itself.
  const auto leave = std::shared_ptr<void>(nullptr, [this](void*) { streams.fetch_sub(1); });
  if (others >= kMostStreams) {
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
  library.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                               {"Referrer-Policy", "no-referrer"},
                               {"Cache-Control", "no-store"},
                               {"Cross-Origin-Resource-Policy", "same-origin"},
                               {"Cross-Origin-Opener-Policy", "same-origin"}});
  // Everything is answered here, before the library would read a body: it is given none.
  library.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        const Route* const route = route_of(request);
        if (!refused(request, response, route)) answer(route, request, response);
        return httplib::Server::HandlerResponse::Handled;
      });
  // What the library itself refuses.
  library.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    const int status = response.status;
    Reply reply =
        error_reply({Code::invalid_argument, "this is no HTTP request that is understood"});
    reply.status = status;
    fill(response, reply);
  });
}

void Server::State::serve(Connection& connection) {
  try {
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      served.insert(&connection);
    }
    if (connection.refused() != 0) {
      connection.refuse(
          error_reply({Code::invalid_argument, refusal_text(connection.refused())}).body);
    } else {
      library.serve(connection);
    }
    connection.finish();
  } catch (...) {  // no memory left: the connection ends, and nobody else's
  }
  const std::lock_guard lock(mutex);
  served.erase(&connection);
  if (served.empty()) none_served.notify_all();
}

void Server::State::take(Incoming incoming) {
  try {
    incoming.request = head_for_library(incoming.request);
    const auto connection = std::make_shared<Connection>(std::move(incoming));
    // Where too much waits already, the connection is closed.
    static_cast<void>(threads.enqueue([this, connection] { serve(*connection); }));
  } catch (const std::exception&) {  // no memory left: the connection is closed
  }
}

void Server::State::stop() {
  {
    const std::lock_guard lock(mutex);
    if (stopping) return;
    stopping = true;
  }
  stop_comes.notify_all();
  front_door.close();
  library.close();
  {
    std::unique_lock lock(mutex);
    none_served.wait_for(lock, kLastWords, [this] { return served.empty(); });
    for (Connection* const connection : served) connection->cut();
  }
  threads.shutdown();
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
  State& state = *state_;
  const Options& where = state.options;
  const std::string what = "serve HTTP on " + address_of(where.host, where.port);
  Result<FileDescriptor> listener = listen_on(where.host, where.port);
  if (!listener) {
    const int cause = listener.error().errno_value;
    if (cause == EADDRINUSE) {
      return Error{Code::unavailable,
                   what + ": the port is in use: stop what serves it, or name another with " +
                       where.port_flag,
                   cause};
    }
    return cause == 0 ? Error{Code::invalid_argument, what + ": " + listener.error().message}
                      : system_error(what, cause);
  }
  const Result<std::uint16_t> port = port_of(listener->get());
  if (!port) return Error{port.error().code, what + ": " + port.error().message};
  state.address = address_of(where.host, *port);
  state.library.open(listener->get());
  Result<void> ok = state.threads.start();
  if (ok) {
    ok = state.front_door.open(std::move(listener).value(),
                               [&state](Incoming incoming) { state.take(std::move(incoming)); });
  }
  return ok ? ok : Error{ok.error().code, what + ": " + ok.error().message, ok.error().errno_value};
}

void Server::stop() {
  state_->stop();
}

const std::string& Server::address() const {
  return state_->address;
}

std::string Server::url(const std::string& path) const {
  return state_->base_url() + path + "?token=" + state_->options.token;
}

std::string Server::url_once(const std::string& path) const {
  const std::string ticket = state_->tickets.issue();
  return ticket.empty() ? ticket : state_->base_url() + path + "?ticket=" + ticket;
}

}  // namespace kymo::http
