#pragma once

#include <string>

#include "checkpoint/runtimes/shared/runtime.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {

// kymo-churn, started through a runtime, with its output in files. It is killed at the end, also if
// it was restored.
class Churn {
 public:
  // Fails the test if the program does not start or does not count.
  Churn(Runtime& runtime, const test::TemporaryDirectory& folder, int mib);
  ~Churn();
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;

  [[nodiscard]] const ProcessId& id() const { return id_; }
  // Uses a restored process from now on.
  void replace(const ProcessId& id) { id_ = id; }
  // The last number that was printed, or -1 if there is none yet.
  [[nodiscard]] long count() const;
  // Whether it counts further than now.
  [[nodiscard]] bool goes_on() const;
  // What it has printed on stderr.
  [[nodiscard]] std::string errors() const;

 private:
  ProcessId id_;
  std::string out_;
  std::string err_;
};

}  // namespace kymo::runtime
