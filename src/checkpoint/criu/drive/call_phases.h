#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kymo/scope.h"

namespace kymo::criu {

// Records the parts of one call of criu as scopes: from the start of criu to its first
// notification, from each notification to the next, and from the last answer to the end of criu.
// Exactly one part is open at any time.
class CallPhases {
 public:
  CallPhases() { phase_.emplace(ScopeName("criu starts"), kCriu); }
  void after(const std::string& notification) {
    phase_.reset();
    const std::string name = "criu after " + notification;
    phase_.emplace(ScopeName{std::string_view{name}}, kCriu);
  }
  void ends() {
    phase_.reset();
    phase_.emplace(ScopeName("criu ends"), kCriu);
  }

 private:
  static constexpr ScopeOptions kCriu{.category = "criu"};
  std::optional<Scope> phase_;
};

}  // namespace kymo::criu
