#pragma once

#include <prometheus/collectable.h>

#include <string>
#include <vector>

#include "runtime/criu_choice.h"

namespace kymo::daemon {

// kymo_build_info on /metrics: always 1, with the versions of kymod and of its CRIU as labels.
//
// Threads: any.
class BuildInfo : public prometheus::Collectable {
 public:
  explicit BuildInfo(const std::vector<runtime::CriuProgram>& crius);
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  std::string criu_;
  std::string criu_fallback_;  // empty: there is none
};

}  // namespace kymo::daemon
