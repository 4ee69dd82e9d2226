#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/config.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The daemon's one HTTP port: /metrics in Prometheus' text format and /healthz. Carries no pids,
// paths or command lines: anybody who reaches the port may read it. On a loopback address it is
// served under loopback's names and the configured one alone (403), so that no site's page reads it
// by giving its own name that address.
//
// Threads:   a listener and two workers, started by start() and joined by stop().
// Ownership: shares the collectable and reads it on a worker's thread.
// Errors:    start(): the address cannot be bound, named with its cause.
class HttpServer {
 public:
  explicit HttpServer(std::shared_ptr<prometheus::Collectable> metrics);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  Result<void> start(const HostPort& where);
  void stop();
  // HOST:PORT as it is served, a port of 0 replaced by the one that was free.
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string address_;
};

}  // namespace kymo::daemon
