#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kymo/metric.h"
#include "kymo/registry.h"

namespace kymo {

// What callbacks of recorded metrics have thrown during a recording, and which of them returned
// values that are probably negative.
//
// Threads:   any.
// Ownership: has a copy of the registry until finish(). Sinks keep this for longer, and must not
//            keep the columns of the registry.
class CallbackErrors {
 public:
  // Counts from now on.
  CallbackErrors(const Registry& registry, const std::vector<Column>& columns);

  [[nodiscard]] std::vector<CallbackError> get() const;
  // The recording is over: what was thrown until now stays.
  void finish();

 private:
  [[nodiscard]] std::vector<CallbackError> since_begin(const Registry& registry) const;

  // The errors of all callbacks, and those before this was made. While both are the same, nobody
  // takes the mutex: one that is held often is likely to be held at a fork, too.
  std::shared_ptr<const std::atomic<std::uint64_t>> all_;
  std::uint64_t all_before_;
  std::set<std::string> recorded_;
  std::map<std::pair<std::string, bool>, std::uint64_t> before_;  // by metric and `negative`
  mutable std::mutex mutex_;                                      // guards the next two
  std::optional<Registry> registry_;                              // until finish()
  std::vector<CallbackError> final_;
};

// A line for a person.
std::string text_of(const CallbackError& error);
// The same for metrics that were registered too late. Their names come after the only colon.
std::string text_of_unrecorded(const std::vector<std::string>& metrics);

}  // namespace kymo
