#include "daemon/request/deadline.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "lens/report/human.h"

namespace kymo::daemon {
namespace {

// Longer than any request; the clock does not overflow.
constexpr std::uint64_t kMaxAllowedNs = std::uint64_t{365} * 24 * 3600 * 1'000'000'000;

}  // namespace

std::uint64_t deadline_from_now(std::uint64_t allowed_ns) {
  return allowed_ns == 0 ? 0 : monotonic_ns() + std::min(allowed_ns, kMaxAllowedNs);
}

Deadline::Deadline(Cancellation& cancel, std::uint64_t allowed_ns) : allowed_ns_(allowed_ns) {
  if (allowed_ns == 0) return;
  const std::chrono::nanoseconds allowed(std::min(allowed_ns, kMaxAllowedNs));
  thread_ = std::thread([this, &cancel, until = std::chrono::steady_clock::now() + allowed] {
    std::unique_lock lock(mutex_);
    if (ended_.wait_until(lock, until, [this] { return over_; })) return;
    if (!cancel.asked()) passed_ = true;  // else somebody was faster
    cancel.ask("its deadline passed");
  });
}

Deadline::~Deadline() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

Error Deadline::explain(const std::string& tried, Error error) const {
  const std::lock_guard lock(mutex_);
  if (!passed_ || error.code != Code::cancelled) return error;
  return {Code::deadline_exceeded, tried + ": it did not end within its deadline of " +
                                       report::duration(allowed_ns_) + " (" +
                                       std::move(error.message) + ")"};
}

}  // namespace kymo::daemon
