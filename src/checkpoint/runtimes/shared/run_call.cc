#include "checkpoint/runtimes/shared/run_call.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <system_error>

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"

namespace kymo::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Status = std::future<Result<void>>;

constexpr milliseconds kEndsWithin{15'000};  // time for a call to end after its CRIU was ended
constexpr milliseconds kEndedLookEvery{50};

bool has_ended(const Status& status, milliseconds within) {
  return status.wait_for(within) == std::future_status::ready;
}

// Waits until the call ends, which makes `ended` readable. Returns false if the timeout or a
// cancellation comes first.
bool wait_for(const Status& status, const FileDescriptor& ended, const Command& limits) {
  const bool bounded = limits.timeout.count() != 0;
  const auto until = steady_clock::now() + limits.timeout;
  while (!has_ended(status, milliseconds(0))) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
    if (is_asked(limits.cancel) || (bounded && left.count() <= 0)) {
      return false;
    }
    pollfd fds[] = {{ended.get(), POLLIN, 0}, {fd_of(limits.cancel), POLLIN, 0}};
    constexpr milliseconds::rep kMaxWait{1000};
    const auto wait = bounded ? std::min(left.count() + 1, kMaxWait) : kMaxWait;
    ::poll(fds, 2, static_cast<int>(wait));
  }
  return true;
}

}  // namespace

Result<CommandOutcome> run_call(const Command& limits, const std::function<Result<void>()>& call,
                                const std::function<void()>& abandon) {
  const FileDescriptor ended(::eventfd(0, EFD_CLOEXEC));
  const std::uint64_t began_ns = monotonic_ns();
  Status status;
  try {
    status = std::async(std::launch::async, [&] {
      Result<void> result = call();
      static_cast<void>(::eventfd_write(ended.get(), 1));
      return result;
    });
  } catch (const std::system_error& failure) {
    return kymo::system_error("start a thread", failure.code().value());
  }
  const bool in_time = wait_for(status, ended, limits);
  // Call time_over() again and again, because CRIU may begin only after the first call.
  for (const auto until = steady_clock::now() + kEndsWithin;
       !in_time && !has_ended(status, kEndedLookEvery) && steady_clock::now() < until;) {
    if (limits.time_over && !limits.time_over(kNoSession)) break;
  }
  if (!in_time) abandon();
  const Result<void> result = status.get();
  CommandOutcome outcome;
  outcome.life_ns = monotonic_ns() - began_ns;
  if (!in_time && !result.ok() && is_asked(limits.cancel)) {
    return Error{Code::cancelled, limits.cancel->why()};
  }
  if (!in_time && !result.ok()) {
    return Error{Code::deadline_exceeded,
                 "it took longer than " + human::duration(limits.timeout) + " and was ended"};
  }
  outcome.exit_status = result.ok() ? 0 : 1;
  outcome.ended = "failed";
  if (!result.ok()) outcome.errors = result.error().message;
  return outcome;
}

}  // namespace kymo::runtime
