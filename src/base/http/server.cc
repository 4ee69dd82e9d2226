#include "base/http/server.h"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/http/connection.h"
#include "base/http/head.h"
#include "base/http/request_reader.h"
#include "base/http/threads.h"
#include "base/http/tickets.h"
#include "base/http/token_file.h"
#include "base/json_text.h"

namespace kymo::http {
namespace {

// The most requests that may wait for a thread.
constexpr std::size_t kMaxWaiting = 64;
// When the server stops, clients have this time to read the end of their stream.
constexpr std::chrono::milliseconds kLastWords{200};
constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kText = "text/plain; charset=utf-8";

enum class RouteKind : std::uint8_t { open, get, post, stream, page };

struct Route {
  RouteKind kind = RouteKind::get;
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

// The name of a code, as in gRPC's documentation.
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

const char* reason_of(int status) {
  constexpr std::pair<int, const char*> kReasons[] = {{200, "OK"},
                                                      {302, "Found"},
                                                      {400, "Bad Request"},
                                                      {401, "Unauthorized"},
                                                      {403, "Forbidden"},
                                                      {404, "Not Found"},
                                                      {409, "Conflict"},
                                                      {411, "Length Required"},
                                                      {413, "Content Too Large"},
                                                      {429, "Too Many Requests"},
                                                      {431, "Request Header Fields Too Large"},
                                                      {500, "Internal Server Error"},
                                                      {501, "Not Implemented"},
                                                      {503, "Service Unavailable"},
                                                      {504, "Gateway Timeout"}};
  for (const auto& [known, reason] : kReasons) {
    if (known == status) return reason;
  }
  return "Unknown";
}

// The first lines of an answer. The headers of the reply follow. Each connection gets one answer.
std::string begin_of(int status, const std::string& type) {
  return "HTTP/1.1 " + std::to_string(status) + ' ' + reason_of(status) +
         "\r\nConnection: close"
         "\r\nX-Content-Type-Options: nosniff"
         "\r\nReferrer-Policy: no-referrer"
         "\r\nCache-Control: no-store"
         "\r\nCross-Origin-Resource-Policy: same-origin"
         "\r\nCross-Origin-Opener-Policy: same-origin"
         "\r\nContent-Type: " +
         type + "\r\n";
}

// A header value may come from the request, such as a path. A line end in it would let the client
// add headers, so that such a header is left out.
void send_reply(Connection& to, const Reply& reply, bool with_body) {
  std::string head = begin_of(reply.status, reply.type);
  for (const auto& [name, value] : reply.headers) {
    if (value.find_first_of("\r\n") == std::string::npos) head += name + ": " + value + "\r\n";
  }
  head += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n";
  if (to.write(head) && with_body) static_cast<void>(to.write(reply.body));
}

Reply refusal(int status, const std::string& text) {
  Reply reply = error_reply({Code::invalid_argument, text});
  reply.status = status;
  return reply;
}

// Why the reader refuses a request with this status.
std::string refusal_text(int status) {
  switch (status) {
    case 411:
      return "Transfer-Encoding is not supported: send the body with a Content-Length";
    case 413:
      return "the body is longer than " + std::to_string(RequestReader::kMaxBody) + " bytes";
    case 431:
      return "the head of the request is longer than " + std::to_string(RequestReader::kMaxHead) +
             " bytes";
    default:
      return "the head of the request is malformed: end each line with CR and LF, and send no NUL "
             "and at most one Content-Length, in digits";
  }
}

// The token of a request: from the Authorization header, as scripts send it, or from the URL, as
// `kymo web` prints it.
std::string token_of(const Head& head) {
  constexpr std::string_view kBearer = "Bearer ";
  if (head.authorization.starts_with(kBearer)) return head.authorization.substr(kBearer.size());
  return Request{head.query}.value("token");
}

// The page for a browser that sends no valid token. The real page stores the token in its tab
// (sessionStorage) and removes it from the URL. After a reload, this script puts the stored token
// into the URL again.
Reply refusal_page(const Gate::Refusal& refusal) {
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
  std::map<std::string, Route> routes;
  std::string address;
  std::atomic<std::size_t> streams{0};
  std::mutex mutex;
  std::condition_variable stop_comes;
  std::condition_variable none_served;
  bool stopping = false;         // guarded by mutex
  std::set<Connection*> served;  // guarded by mutex
  Threads threads{kMaxThreads, kMaxWaiting};
  RequestReader reader;

  Tickets tickets;

  [[nodiscard]] std::string base_url() const;
  void serve(Connection& connection);
  void take(Incoming incoming);
  void stop();
  // Reads the request, and answers it.
  void answer(Connection& connection);
  // Returns nothing if the request is allowed.
  [[nodiscard]] std::optional<Reply> refuse(const Head& head, const Route* route);
  [[nodiscard]] Reply reply_to(const Route* route, const Request& request) const;
  void answer_stream(const StreamHandler& handler, const Head& head, Connection& connection);
  [[nodiscard]] const Route* route_of(const Head& head) const;
};

namespace {

// Sends the events over the one answer of a connection.
class Events : public EventStream {
 public:
  Events(Connection& connection, std::mutex& mutex, std::condition_variable& stop_comes,
         const bool& stopping)
      : connection_(connection), mutex_(mutex), stop_comes_(stop_comes), stopping_(stopping) {}

  bool send(std::string_view event, std::string_view data) override {
    std::string text = "event: " + std::string(event) + "\ndata: ";
    text.append(data).append("\n\n");
    return open_ = open_ && connection_.write(text);
  }
  bool wait(std::chrono::milliseconds time) override {
    std::unique_lock lock(mutex_);
    return open_ && !stop_comes_.wait_for(lock, time, [this] { return stopping_; });
  }

 private:
  Connection& connection_;
  std::mutex& mutex_;
  std::condition_variable& stop_comes_;
  const bool& stopping_;
  bool open_ = true;
};

bool reads(const Head& head) {
  return head.method == "GET" || head.method == "HEAD";
}

}  // namespace

const Route* Server::State::route_of(const Head& head) const {
  const auto found = routes.find(head.path);
  if (found == routes.end()) return nullptr;
  const bool post = found->second.kind == RouteKind::post;
  return (post ? head.method == "POST" : reads(head)) ? &found->second : nullptr;
}

std::string Server::State::base_url() const {
  // Browsers cannot open the wildcard address, so use the loopback address in its place.
  const std::string port = address.substr(address.rfind(':'));
  const bool any = options.host == "0.0.0.0" || options.host == "::";
  return "http://" + (any ? "127.0.0.1" + port : address);
}

std::optional<Reply> Server::State::refuse(const Head& head, const Route* route) {
  // Unknown paths are open, too: the answer 404 is no secret.
  const bool is_open = route == nullptr || route->kind == RouteKind::open;
  const std::optional<Gate::Refusal> why =
      is_open ? gate.refuse_open(head.host)
              : gate.refuse({head.host, head.origin, token_of(head), !reads(head)});
  if (!why) return std::nullopt;
  if (is_open) return Reply{why->status, kText, why->text + "\n", {}};
  if (route->kind == RouteKind::page && why->status == 401) {
    if (!tickets.take(Request{head.query}.value("ticket"))) return refusal_page(*why);
    return Reply{302, kText, "", {{"Location", head.path + "?token=" + options.token}}};
  }
  Reply reply = error_reply({Code::permission_denied, why->text});
  reply.status = why->status;
  return reply;
}

void Server::State::answer_stream(const StreamHandler& handler, const Head& head,
                                  Connection& connection) {
  // Relaxed: it only counts, and nothing else is read by it.
  const std::size_t others = streams.fetch_add(1, std::memory_order_relaxed);
  // Decrements `streams`, also if making this pointer fails for lack of memory.
  const auto leave = std::shared_ptr<void>(
      nullptr, [this](void*) { streams.fetch_sub(1, std::memory_order_relaxed); });
  const bool with_body = head.method != "HEAD";
  if (others >= kMaxStreams) {
    return send_reply(connection,
                      error_reply({Code::resource_exhausted,
                                   std::to_string(kMaxStreams) +
                                       " event streams are open already: close a page"}),
                      with_body);
  }
  Result<EventSource> source = handler(Request{head.query});
  if (!source) return send_reply(connection, error_reply(source.error()), with_body);
  if (!connection.write(begin_of(200, "text/event-stream") + "\r\n") || !with_body) return;
  Events events(connection, mutex, stop_comes, stopping);
  try {
    (*source)(events);
  } catch (const std::exception& error) {
    static_cast<void>(events.send("error", json_text(nlohmann::json(error.what()))));
  }
}

Reply Server::State::reply_to(const Route* route, const Request& request) const {
  if (route == nullptr) return error_reply({Code::not_found, "there is nothing at this path"});
  try {
    return route->handler(request);
  } catch (const std::exception& error) {  // such as out of memory
    return error_reply({Code::internal, error.what()});
  }
}

void Server::State::answer(Connection& connection) {
  if (const int status = connection.refused(); status != 0) {
    return send_reply(connection, refusal(status, refusal_text(status)), true);
  }
  const Result<Head> head = options.read_head(connection.request());
  if (!head) return send_reply(connection, error_reply(head.error()), true);
  if (head->refused != 0) {
    return send_reply(connection, refusal(head->refused, "this is not a valid HTTP request"), true);
  }
  const Route* const route = route_of(*head);
  const bool with_body = head->method != "HEAD";
  if (const std::optional<Reply> refused = refuse(*head, route)) {
    return send_reply(connection, *refused, with_body);
  }
  if (route != nullptr && route->stream) return answer_stream(route->stream, *head, connection);
  send_reply(connection, reply_to(route, Request{head->query}), with_body);
}

void Server::State::serve(Connection& connection) {
  try {
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      served.insert(&connection);
    }
    answer(connection);
    connection.finish();
  } catch (...) {  // no memory left: only this connection ends
  }
  const std::lock_guard lock(mutex);
  served.erase(&connection);
  if (served.empty()) none_served.notify_all();
}

void Server::State::take(Incoming incoming) {
  try {
    const auto connection = std::make_shared<Connection>(std::move(incoming), options.patience);
    // If the queue is full, the connection is closed.
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
  reader.close();
  {
    std::unique_lock lock(mutex);
    none_served.wait_for(lock, kLastWords, [this] { return served.empty(); });
    for (Connection* const connection : served) connection->cut();
  }
  threads.shutdown();
}

Server::Server(Options options) : state_(std::make_unique<State>(std::move(options))) {}

Server::~Server() {
  stop();
}

void Server::open(const std::string& path, Handler handler) {
  state_->routes[path] = {RouteKind::open, std::move(handler), {}};
}
void Server::get(const std::string& path, Handler handler) {
  state_->routes[path] = {RouteKind::get, std::move(handler), {}};
}
void Server::post(const std::string& path, Handler handler) {
  state_->routes[path] = {RouteKind::post, std::move(handler), {}};
}
void Server::stream(const std::string& path, StreamHandler handler) {
  state_->routes[path] = {RouteKind::stream, {}, std::move(handler)};
}
void Server::page(const std::string& path, Handler handler) {
  state_->routes[path] = {RouteKind::page, std::move(handler), {}};
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
  Result<void> ok = state.threads.start();
  if (ok) {
    ok = state.reader.open(std::move(listener).value(),
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
