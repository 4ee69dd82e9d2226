#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kymo::daemon {

// How many dumps and restores failed for which reason: kymo_failures_total{request,reason} on
// /metrics, where `reason` is an id of docs/errors.md. Reasons that did not occur are not shown.
// They are no columns of recordings, because there are a hundred of them.
//
// Threads: any.
class FailureCounts : public prometheus::Collectable {
 public:
  // `request`: "dump" or "restore".
  void add(std::string_view request, std::string_view reason);
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts_;
};

}  // namespace kymo::daemon
