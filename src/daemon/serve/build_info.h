#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/runtimes/shared/criu_choice.h"

namespace kymo::daemon {

// kymo_build_info on /metrics: always 1, with the versions of kymod and of its CRIU as labels. And
// kymo_start_time_seconds: when this was made, at the start of kymod. A counter that begins with the value that it had in
// the kymod before does not show that it began anew.
//
// Threads: any.
class BuildInfo : public prometheus::Collectable {
 public:
  explicit BuildInfo(const std::vector<runtime::CriuProgram>& crius);
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  std::string criu_;
  std::string criu_fallback_;  // empty: there is none
  std::int64_t started_unix_ns_;
};

}  // namespace kymo::daemon
