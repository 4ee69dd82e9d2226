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

#include "daemon/config/otlp_endpoint.h"
#include "kymo/result.h"
#include "kymo/scope.h"

namespace httplib {
class Client;
}

namespace kymo::daemon {

// A serialized ExportTraceServiceRequest of OTLP: one trace, with a span for each scope of a tree.
// `unix_less_monotonic_ns`: is added to the scopes' times (CLOCK_MONOTONIC) to get the wall clock.
std::string otlp_request(const std::vector<ScopeRecord>& scopes,
                         std::int64_t unix_less_monotonic_ns);

// Sends the timing trees of requests to an OpenTelemetry collector, over OTLP/HTTP.
//
// Threads:   offer() from any thread. A thread of the exporter sends one tree after the other.
// Ownership: the destructor waits at most kFlush until the waiting trees are sent. It does not wait
//            if the last attempt failed.
// Errors:    if the queue is full or the collector does not take a tree, its spans are dropped and
//            counted. Nothing is sent twice. The log says when sending begins to fail, and when it
//            works again.
// Cost:      offer() copies the tree, and never waits for the network.
class OtlpExporter {
 public:
  // Enough for two trees of the largest size.
  static constexpr std::size_t kMaxWaitingSpans = 2 * ScopeTree::kDefaultLimit;
  static constexpr std::chrono::seconds kFlush{2};

  // Called on any thread with the number of spans that arrived and the number that did not. Each
  // span is counted once.
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
  // Returns how many spans the collector took.
  // Errors: it took none.
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
  bool failing_ = false;  // changed by `thread_` only
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kymo::daemon
