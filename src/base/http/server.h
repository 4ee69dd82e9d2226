#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/http/gate.h"
#include "base/http/head.h"
#include "kymo/result.h"

namespace kymo::http {

// The parameters of a request. A body is read, up to RequestReader::kMaxBody, and ignored.
struct Request {
  std::map<std::string, std::string> query;

  // Empty if there is no such parameter.
  [[nodiscard]] std::string value(const std::string& name) const;
  // A number from 0 to `most`; `otherwise` if there is no such parameter.
  // Errors: invalid_argument; the message says what is allowed.
  [[nodiscard]] Result<std::uint64_t> number(const std::string& name, std::uint64_t otherwise,
                                             std::uint64_t most) const;
};

struct Reply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};
};

Reply json_reply(std::string json);
// {"error": {"code": …, "message": …}}, with the HTTP status that fits the code.
Reply error_reply(const Error& error);
// A page whose scripts and styles have this nonce. The browser runs no other scripts, for example
// injected ones, and the page can send requests only to its own address.
Reply page_reply(std::string html, const std::string& nonce);
// HOST:PORT, with brackets around an IPv6 address.
std::string address_of(const std::string& host, int port);

// One client's server-sent events.
// Threads: the one of the handler.
class EventStream {
 public:
  virtual ~EventStream() = default;
  // Returns false if the client has gone or was too slow.
  virtual bool send(std::string_view event, std::string_view data) = 0;
  // Waits. Returns false if the client has gone or the server stops.
  virtual bool wait(std::chrono::milliseconds time) = 0;
};

// An HTTP server with a fixed list of paths; any other path gives 404.
//
// Threads:   start() and stop() on one. Each request runs on its own thread, at most kMaxThreads
//            at once. Event streams take at most kMaxStreams of them (more get status 429), so
//            that stalled clients cannot block the others.
// Ownership: owns its handlers, which may be called until stop() has returned.
// Errors:    start(): the address cannot be bound; the message names it and the cause. An exception
//            of a handler becomes a reply with status 500.
class Server {
 public:
  static constexpr std::size_t kMaxStreams = 32;
  static constexpr std::size_t kMaxThreads = kMaxStreams + 32;

  struct Options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;            // 0: any free port
    std::string name{};                // see Gate
    std::string token{};               // see Gate
    std::string port_flag = "--http";  // the flag that chooses another port, for error messages
    std::chrono::milliseconds patience{3000};  // with a client that takes nothing; see Connection
    // Reads heads, in this process or in another one.
    // Threads: any.
    std::function<Result<Head>(const std::string& request)> read_head =
        [](const std::string& request) -> Result<Head> { return http::read_head(request); };
  };
  using Handler = std::function<Reply(const Request&)>;
  // Returns an error, or a function that sends the events and returns when there are no more.
  using EventSource = std::function<void(EventStream&)>;
  using StreamHandler = std::function<Result<EventSource>(const Request&)>;

  explicit Server(Options options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // open() adds a path that needs no token. The four functions below it add paths that need the
  // token. All are to be called before start().
  void open(const std::string& path, Handler handler);
  void get(const std::string& path, Handler handler);
  void post(const std::string& path, Handler handler);  // for requests that change something
  void stream(const std::string& path, StreamHandler handler);
  // A page for a browser. Without the token, the browser gets a page that asks for it, and that
  // finds the token if the page has stored it in this tab.
  void page(const std::string& path, Handler handler);

  Result<void> start();
  // Tells event streams to end. Connections that are still open a fifth of a second later are cut,
  // so that stop() does not wait for a stalled client.
  void stop();
  // HOST:PORT of the listening socket; empty before start().
  [[nodiscard]] const std::string& address() const;
  // The URL of a page, with the token.
  [[nodiscard]] std::string url(const std::string& path) const;
  // A URL that opens the page once, within a minute. Until it is used it is a secret, too: never
  // put it on a command line, which every user can read. Empty if the system gives no random bytes.
  // Threads: any.
  [[nodiscard]] std::string url_once(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kymo::http
