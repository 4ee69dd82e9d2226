#pragma once

#include <string>

#include "runtime/runtime.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {

// kymo-churn started through a runtime, its output in files; killed at the end, also once restored.
class Churn {
 public:
  // Fails the test where it does not start or does not count.
  Churn(Runtime& runtime, const test::TemporaryDirectory& folder, int mib);
  ~Churn();
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;

  [[nodiscard]] const ProcessId& id() const { return id_; }
  // A restored process takes its place.
  void replace(const ProcessId& id) { id_ = id; }
  // The last count that it has printed; -1: none yet.
  [[nodiscard]] long count() const;
  // Whether it counts on from where it is now.
  [[nodiscard]] bool goes_on() const;
  // What it has said on stderr.
  [[nodiscard]] std::string errors() const;

 private:
  ProcessId id_;
  std::string out_;
  std::string err_;
};

}  // namespace kymo::runtime
