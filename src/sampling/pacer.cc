#include "sampling/pacer.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"

namespace kymo {
namespace {

// Below this interval even a thrifty pacer spins: a sleep and a wake-up cost and err by more than
// a quarter of it (measured here: 5 us of CPU and about 60 us of latency a wake-up).
constexpr std::uint64_t kShortestSleptInterval = 200'000;
constexpr std::uint64_t kFirstMargin = 60'000;
// The longest spin is this share of the interval, so that precision has a known price.
constexpr std::uint64_t kMaxSpinShare = 8;
// A margin that is late once in this many wake-ups is right.
constexpr std::uint64_t kLateShare = 64;
// The kernel's least: 100 us.
constexpr std::uint64_t kSliceNs = 100'000;
constexpr std::uint64_t kStep = 250;  // nanoseconds down for each early wake-up

// The kernel's struct sched_attr in its first version (sched_setattr(2)): the C library lacks it
// before glibc 2.41, and the kernel's own header clashes with <sched.h>.
struct SchedAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime_ns;  // for SCHED_OTHER: the slice
  std::uint64_t deadline_ns;
  std::uint64_t period_ns;
};
static_assert(sizeof(SchedAttributes) == 48);

std::uint64_t spin_until(std::uint64_t deadline_ns) noexcept {
  std::uint64_t now = monotonic_ns();
  while (now < deadline_ns) {
    __builtin_ia32_pause();
    now = monotonic_ns();
  }
  return now;
}

}  // namespace

Pacer::Pacer(std::uint64_t interval_ns, Pace pace, Event& stop)
    : max_margin_ns_(interval_ns < kShortestSleptInterval ? kFirstMargin
                     : pace == Pace::precise              ? interval_ns / kMaxSpinShare
                                                          : 0),
      margin_ns_(std::min(kFirstMargin, max_margin_ns_)),
      stop_(stop) {}

void Pacer::sharpen_this_thread() noexcept {
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  // Linux 6.12 and later: a thread that asks for a short slice is scheduled sooner after it wakes,
  // at no cost in fairness. Older kernels ignore the field; a refusal leaves things as they were.
  SchedAttributes attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0 &&
      attributes.policy == SCHED_OTHER) {
    attributes.runtime_ns = kSliceNs;
    ::syscall(SYS_sched_setattr, 0, &attributes, 0);
  }
}

Pacer::Woken Pacer::wait_for(std::uint64_t deadline_ns, std::uint64_t* now_ns) noexcept {
  *now_ns = monotonic_ns();
  if (*now_ns + margin_ns_ < deadline_ns) {
    const std::uint64_t wake_at = deadline_ns - margin_ns_;
    bool stopped = stop_.wait_until(wake_at);
    *now_ns = monotonic_ns();
    while (!stopped && *now_ns < wake_at) {  // woken without a cause
      stopped = stop_.wait_until(wake_at);
      *now_ns = monotonic_ns();
    }
    if (stopped) {
      return Woken::stopped;
    }
    learn(*now_ns - wake_at);
  } else if (stop_.poll()) {
    return Woken::stopped;
  }
  if (*now_ns < deadline_ns) {
    *now_ns = spin_until(deadline_ns);
  }
  return Woken::deadline;
}

void Pacer::learn(std::uint64_t late_ns) noexcept {
  if (late_ns > margin_ns_) {
    margin_ns_ = std::min(max_margin_ns_, margin_ns_ + kStep * kLateShare);
  } else {
    margin_ns_ -= std::min(margin_ns_, kStep);
  }
}

}  // namespace kymo
