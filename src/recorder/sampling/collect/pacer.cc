#include "recorder/sampling/collect/pacer.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"

namespace kymo {
namespace {

// A sleep with its wake-up costs 5 to 12 us of CPU and is off by 15 to 45 us (measured on 2 virtual
// cores). Below kMinSleptNs the pacer does not sleep. Below kMinThriftyNs a thrifty pacer
// wakes early by a margin to keep its deadlines.
constexpr std::uint64_t kMinSleptNs = 50'000;
constexpr std::uint64_t kMinThriftyNs = 200'000;
// The longest margin in thrifty pace, if half the interval is not shorter.
constexpr std::uint64_t kMaxThriftyMarginNs = 60'000;
constexpr std::uint64_t kStepNs = 50;  // step down for each wake-up in time
// In this time before the deadline, the pacer spins without pause instructions: a pause takes up to
// 50 ns, which would add to the timing error.
constexpr std::uint64_t kNoPauseNs = 1'000;
// The shortest slice that the kernel allows: 100 us.
constexpr std::uint64_t kSliceNs = 100'000;

// The first version of the kernel's struct sched_attr (sched_setattr(2)). The C library does not
// have it before glibc 2.41, and the kernel's own header clashes with <sched.h>.
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

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::uint64_t spin_until(std::uint64_t deadline_ns, std::uint64_t now_ns) noexcept {
  while (now_ns < deadline_ns) {
    if (deadline_ns - now_ns > kNoPauseNs) {
      pause_briefly();
    }
    const std::uint64_t before_ns = now_ns;
    now_ns = monotonic_ns();
    if (now_ns < before_ns) [[unlikely]] {
      break;  // another clock after a restore, which has no such deadline
    }
  }
  return now_ns;
}

// The longest margin in thrifty pace.
std::uint64_t thrifty_margin(std::uint64_t interval_ns) {
  return interval_ns >= kMinThriftyNs ? 0 : std::min(kMaxThriftyMarginNs, interval_ns / 2);
}

// The longest margin. A precise pacer must not have a shorter one than a thrifty pacer, or it would
// be late.
std::uint64_t longest_margin(std::uint64_t interval_ns, Pace pace, double max_spin_share) {
  const std::uint64_t thrifty_ns = thrifty_margin(interval_ns);
  if (pace == Pace::thrifty) {
    return thrifty_ns;
  }
  return std::max(thrifty_ns, static_cast<std::uint64_t>(static_cast<double>(interval_ns) *
                                                         std::clamp(max_spin_share, 0.0, 1.0)));
}

}  // namespace

Pacer::Pacer(std::uint64_t interval_ns, Pace pace, double max_spin_share, PaceCounts& counts,
             Event& stop)
    : interval_ns_(interval_ns),
      sleeps_(interval_ns >= kMinSleptNs),
      max_margin_ns_(longest_margin(interval_ns, pace, max_spin_share)),
      margin_ns_(max_margin_ns_),
      counts_(counts),
      stop_(stop) {}

double Pacer::spin_limit(std::uint64_t interval_ns, Pace pace, double max_spin_share) {
  if (interval_ns < kMinSleptNs) {
    return 1;
  }
  const double thrifty =
      static_cast<double>(thrifty_margin(interval_ns)) / static_cast<double>(interval_ns);
  return pace == Pace::thrifty ? thrifty : std::max(thrifty, std::clamp(max_spin_share, 0.0, 1.0));
}

bool Pacer::only_sleeps(std::uint64_t interval_ns, Pace pace) {
  return longest_margin(interval_ns, pace, 1) == 0;
}

void Pacer::reduce_wakeup_latency() noexcept {
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  // Linux 6.12 and later: a thread that asks for a short slice is scheduled sooner after it wakes,
  // at no cost in fairness. Older kernels ignore the field. If the kernel refuses, nothing changes.
  SchedAttributes attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0 &&
      attributes.policy == SCHED_OTHER) {
    attributes.runtime_ns = kSliceNs;
    ::syscall(SYS_sched_setattr, 0, &attributes, 0);
  }
}

Pacer::WakeReason Pacer::wait_for(std::uint64_t deadline_ns, std::uint64_t* now_ns) noexcept {
  *now_ns = monotonic_ns();
  const std::uint64_t begun_ns = *now_ns;
  if (deadline_ns > begun_ns && deadline_ns - begun_ns > interval_ns_) [[unlikely]] {
    // No tick is that far away: the clock went back since the last one, perhaps by days.
    return stop_.poll() ? WakeReason::stopped : WakeReason::deadline;
  }
  if (sleeps_ && *now_ns + margin_ns_ < deadline_ns) {
    if (sleep_until(deadline_ns - margin_ns_, now_ns) == WakeReason::stopped) {
      return WakeReason::stopped;
    }
    if (*now_ns < begun_ns) {
      return WakeReason::deadline;  // the clock went back; the caller handles this
    }
    if (max_margin_ns_ != 0) {
      learn(deadline_ns - margin_ns_, *now_ns);
    }
  } else if (stop_.poll()) {
    return WakeReason::stopped;
  }
  if (*now_ns < deadline_ns) {
    counts_.spin_ns.add(deadline_ns - *now_ns);
    *now_ns = spin_until(deadline_ns, *now_ns);
  }
  return WakeReason::deadline;
}

Pacer::WakeReason Pacer::sleep_until(std::uint64_t wake_ns, std::uint64_t* now_ns) noexcept {
  std::uint64_t before_ns = 0;
  do {  // again if it was woken without a cause
    before_ns = *now_ns;
    if (stop_.wait_until(wake_ns)) {
      return WakeReason::stopped;
    }
    *now_ns = monotonic_ns();
  } while (*now_ns < wake_ns && *now_ns >= before_ns);
  return WakeReason::deadline;
}

void Pacer::learn(std::uint64_t wake_ns, std::uint64_t now_ns) noexcept {
  counts_.wakeups.record(now_ns - wake_ns);
  if (now_ns > wake_ns + margin_ns_) {
    margin_ns_ = std::min(max_margin_ns_, margin_ns_ + kStepNs * kLateShare);
  } else {
    margin_ns_ -= std::min(margin_ns_, kStepNs);
  }
}

}  // namespace kymo
