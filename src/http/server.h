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

#include "http/gate.h"
#include "http/head.h"
#include "kymo/result.h"

namespace kymo::http {

// What is asked for. A body is read, up to FrontDoor::kLongestBody, and left out.
struct Request {
  std::map<std::string, std::string> query;

  // Empty where it is not there.
  [[nodiscard]] std::string value(const std::string& name) const;
  // A number; `otherwise` where it is not there. Errors: invalid_argument, with what is allowed.
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
// {"error": {"code": …, "message": …}}, with the status that fits.
Reply error_reply(const Error& error);
// A page whose scripts and styles have this nonce; whatever else somebody brought into it is not
// run, and nothing but its own address is asked for anything.
Reply page_reply(std::string html, const std::string& nonce);
// HOST:PORT, an IPv6 address in brackets.
std::string address_of(const std::string& host, int port);

// One client's server-sent events. Threads: its handler's.
class EventStream {
 public:
  virtual ~EventStream() = default;
  // False: the client has gone, or took nothing for too long.
  virtual bool send(std::string_view event, std::string_view data) = 0;
  // Waits; false: the client has gone, or the server stops.
  virtual bool wait(std::chrono::milliseconds time) = 0;
};

// An HTTP port with its paths; any other is 404.
//
// Threads:   start() and stop() on one. Each request runs on its own thread, at most kMostThreads
//            at once. Event streams take at most kMostStreams of them (429 beyond), so that stalled
//            clients lock nobody out.
// Ownership: owns its handlers, which may be called until stop() has returned.
// Errors:    start(): the address cannot be bound, named with its cause. An exception of a handler
//            is a reply of status 500.
class Server {
 public:
  static constexpr std::size_t kMostStreams = 32;
  static constexpr std::size_t kMostThreads = kMostStreams + 32;

  struct Options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;            // 0: any free one
    std::string name{};                // as of a Gate
    std::string token{};               // as of a Gate
    std::string port_flag = "--http";  // that chooses another port
    // Reads heads, by itself or in another process. Threads: any.
    std::function<Result<Head>(const std::string& request)> read_head =
        [](const std::string& request) -> Result<Head> { return http::read_head(request); };
  };
  using Handler = std::function<Reply(const Request&)>;
  // Refuses, or gives what sends the events and returns when there are no more.
  using EventSource = std::function<void(EventStream&)>;
  using StreamHandler = std::function<Result<EventSource>(const Request&)>;

  explicit Server(Options options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Before start(). Open to anybody.
  void open(const std::string& path, Handler handler);
  // The same for those who have the token.
  void get(const std::string& path, Handler handler);
  void post(const std::string& path, Handler handler);  // what changes something
  void stream(const std::string& path, StreamHandler handler);
  // A page for people: without the token, one that says so, and looks for it where the page put it.
  void page(const std::string& path, Handler handler);

  Result<void> start();
  // Tells event streams to end, and cuts the connections that are still there a fifth of a second
  // later: a client that stands still holds nobody up.
  void stop();
  // HOST:PORT as it is served; empty before start().
  [[nodiscard]] const std::string& address() const;
  // The address of a page with the token.
  [[nodiscard]] std::string url(const std::string& path) const;
  // One that leads there once, within a minute. Until then it is a secret, too: never put it on a
  // command line, which every user can read. Empty: no token can be made. Threads: any.
  [[nodiscard]] std::string url_once(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kymo::http
