#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <span>

#include "base/cancellation.h"
#include "base/clock.h"
#include "kymo/result.h"
#include "support/breakable_criu.h"

// Ends requests when their CRIU has stopped at a given step, and not after a given time. So each step is reached on fast and
// on slow machines.
namespace kymo::test {

// What CRIU is about to write to its log at the steps of a dump, from its start to its end, and of a restore. nullptr means
// that CRIU has not started.
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

// The steps of a dump after CRIU has written to its log. Before that, kymod does not find a CRIU that a server has started.
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

// Makes the request, and cancels it when CRIU has stopped at the step. Returns the outcome.
template <class Request>
auto cancelled_at(const BreakableCriu& criu, const char* step, Request request) {
  Cancellation cancel;
  stop_at(criu, step);
  auto outcome = std::async(std::launch::async, [&] { return request(&cancel); });
  EXPECT_NE(criu.stopped_unless([&] { return has_ended(outcome); }), 0)
      << "CRIU did not reach this step: " << name_of_step(step);
  cancel.ask();
  outcome.wait();
  criu.mend();
  return outcome.get();
}

// Cancels a request at each of these steps, and expects that it fails for this reason. `make` returns a new spec of the
// request, `request` makes it, and `check` gets the spec and the error.
template <class Steps, class Make, class Request, class Check>
void cancel_at_each(const BreakableCriu& criu, const Steps& steps, Make make, Request request,
                    Check check) {
  for (const char* const step : steps) {
    SCOPED_TRACE(name_of_step(step));
    auto spec = make();
    const auto outcome = cancelled_at(criu, step, [&](const Cancellation* cancel) {
      spec.cancel = cancel;
      return request(spec);
    });
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, Code::cancelled) << outcome.error().message;
    check(spec, outcome.error());
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Makes the request with a deadline (nanoseconds of the monotonic clock) that passes while CRIU is stopped at the step. On a
// slow machine the deadline may pass before CRIU reaches the step. Then the request is made again with a later deadline.
// `check` gets each outcome.
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
  ADD_FAILURE() << "CRIU did not reach this step within 25 s: " << name_of_step(step);
}

}  // namespace kymo::test
