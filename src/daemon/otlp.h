#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/config.h"
#include "kymo/result.h"
#include "kymo/scope.h"

namespace httplib {
class Client;
}

namespace kymo::daemon {

// Where spans go.
struct OtlpEndpoint {
  HostPort at;
  std::string path;
};
// http://HOST[:PORT][/PATH]; the port is 4318 and the path /v1/traces unless named. Errors:
// invalid_argument, with what is allowed.
Result<OtlpEndpoint> parse_otlp_endpoint(std::string_view url);

// A tree as OTLP's request to export its scopes as the spans of a trace of its own, serialized.
// `unix_less_monotonic_ns` takes the scopes' clock to the wall clock.
std::string otlp_request(const std::vector<ScopeRecord>& scopes,
                         std::int64_t unix_less_monotonic_ns);

// Sends the trees of requests to an OpenTelemetry collector, over OTLP/HTTP.
//
// Threads:   offer() from any thread. One thread of its own sends, one tree after the other.
// Ownership: the destructor sends what waits for at most kFlush, not at all where sending fails.
// Errors:    what finds the queue full, or is not taken by the collector, is dropped and counted;
//            nothing is sent twice. The log says when sending begins to fail, and when it works
//            again.
// Cost:      offer() copies the tree, and never waits for the network.
class OtlpExporter {
 public:
  // As many as the two largest trees.
  static constexpr std::size_t kMostWaitingSpans = 2 * ScopeTree::kDefaultLimit;
  static constexpr std::chrono::seconds kFlush{2};

  // Told of each tree once, on any thread: how many of its spans arrived, and how many did not.
  using Count = std::function<void(std::uint64_t sent, std::uint64_t dropped)>;
  OtlpExporter(OtlpEndpoint endpoint, Count count);
  ~OtlpExporter();
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  void offer(const ScopeTree& tree);

 private:
  struct Trace {
    std::vector<ScopeRecord> scopes;
    std::int64_t unix_less_monotonic_ns = 0;
  };
  void send_all();
  // How many spans the collector took. Errors: it took none.
  Result<std::uint64_t> send(const Trace& trace);
  void say(const Result<std::uint64_t>& sent) const;

  const std::string name_;  // for the log
  const std::string path_;
  const Count count_;
  const std::unique_ptr<httplib::Client> client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Trace> waiting_;
  std::size_t waiting_spans_ = 0;
  bool sending_ = false;
  bool failing_ = false;  // changed by the thread alone
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kymo::daemon
