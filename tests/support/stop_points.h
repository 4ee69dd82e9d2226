#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <span>

#include "base/cancellation.h"
#include "base/clock.h"
#include "support/breakable_criu.h"

// Requests that are ended when their CRIU has stopped at a step, and not after a time: so each step is met, on a fast and on
// a slow machine.
namespace kymo::test {

// What CRIU is about to write to its log at steps of a dump, from its start to its end, and of a restore. nullptr: it has not
// begun.
inline constexpr const char* kDumpSteps[] = {nullptr,
                                             "Version: ",
                                             "pre-dump",
                                             "Seized task",
                                             "Putting parasite blob",
                                             "Dumping pages (type",
                                             "post-dump",
                                             "Unfreezing tasks into"};
inline constexpr const char* kRestoreSteps[] = {"Version: ", "Running pre-restore scripts",
                                                "Running post-restore scripts",
                                                "Running pre-resume scripts"};

// Of these, the steps at which CRIU has written to its log: before, kymod does not find one that a server has started.
inline constexpr std::span<const char* const> kLoggedDumpSteps = std::span(kDumpSteps).subspan(2);
inline constexpr std::span<const char* const> kLoggedRestoreSteps =
    std::span(kRestoreSteps).subspan(1);

inline const char* name_of_step(const char* step) {
  return step == nullptr ? "before it begins" : step;
}

inline void stop_at(const BreakableCriu& criu, const char* step) {
  step == nullptr ? criu.stop_at_once() : criu.break_at(step, SIGSTOP);
}

template <class Outcome>
bool has_ended(const std::future<Outcome>& request) {
  return request.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

// Makes the request with a cancellation, and asks for that when CRIU has stopped at the step. Returns the outcome.
template <class Request>
auto cancelled_at(const BreakableCriu& criu, const char* step, Request request) {
  Cancellation cancel;
  stop_at(criu, step);
  auto outcome = std::async(std::launch::async, [&] { return request(&cancel); });
  EXPECT_NE(criu.stopped_unless([&] { return has_ended(outcome); }), 0)
      << "CRIU did not come to: " << name_of_step(step);
  cancel.ask();
  outcome.wait();
  criu.mend();
  return outcome.get();
}

// Makes the request with a deadline, in nanoseconds of the monotonic clock, that passes while CRIU is stopped at the step.
// On a slow machine it may pass before CRIU comes there: then the request is made again, with a later one. `check` gets each
// outcome.
template <class Request, class Check>
void late_at(const BreakableCriu& criu, const char* step, Request request, Check check) {
  for (const std::uint64_t seconds : {1U, 5U, 25U}) {
    stop_at(criu, step);
    const std::uint64_t deadline_ns = monotonic_ns() + seconds * 1'000'000'000;
    auto outcome = std::async(std::launch::async, [&] { return request(deadline_ns); });
    const pid_t stopped = criu.stopped_unless([&] { return has_ended(outcome); });
    outcome.wait();
    criu.mend();
    check(outcome.get());
    if (stopped != 0 || testing::Test::HasFatalFailure()) return;
  }
  ADD_FAILURE() << "CRIU did not come within 25 s to: " << name_of_step(step);
}

}  // namespace kymo::test
