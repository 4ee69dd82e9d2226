#include "recorder/sampling/collect/thread_setup.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "recorder/sampling/collect/hand_over_pace.h"

namespace kymo {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

cpu_set_t cpus_of_this_thread() {
  cpu_set_t cpus;
  EXPECT_EQ(::pthread_getaffinity_np(::pthread_self(), sizeof cpus, &cpus), 0);
  return cpus;
}

std::size_t first_of(const cpu_set_t& cpus) {
  std::size_t cpu = 0;
  while (!CPU_ISSET(cpu, &cpus)) {
    ++cpu;
  }
  return cpu;
}

// On Linux each thread has its own capabilities. So the capability is dropped only for this thread.
void drop_sys_nice() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  ASSERT_EQ(::syscall(SYS_capget, &header, sets.data()), 0);
  for (__user_cap_data_struct& set : sets) {
    set.inheritable = 0;
  }
  sets[0].effective &= ~(1U << CAP_SYS_NICE);
  sets[0].permitted &= ~(1U << CAP_SYS_NICE);
  ASSERT_EQ(::syscall(SYS_capset, &header, sets.data()), 0);
}

// A thread without the right to a real-time priority may not have a nice value below 0, either. One line is
// enough for both.
TEST(SetUpThisThread, SaysARefusalOnceAndGoesOn) {
  std::thread([] {
    drop_sys_nice();
    std::vector<std::string> warnings;
    set_up_this_thread({1, -10, -1}, &warnings);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0],
              "the collector runs without real-time priority 1: Operation not permitted (allow it "
              "with CAP_SYS_NICE or 'ulimit -r')");
    EXPECT_EQ(::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
    warnings.clear();
    set_up_this_thread({0, -10, -1}, &warnings);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("the collector runs without nice -10: Permission denied"),
              std::string::npos)
        << warnings[0];
  }).join();
}

TEST(SetUpThisThread, ANiceValueIsTheThreadsOwn) {
  const int before = ::getpriority(PRIO_PROCESS, 0);
  std::thread([] {
    std::vector<std::string> warnings;
    set_up_this_thread({0, 7, -1}, &warnings);
    EXPECT_TRUE(warnings.empty());
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), 7);
  }).join();
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), before);
}

TEST(RealtimeBound, SaysTheShareOfASecondThatWasMoreThanAllowed) {
  RealtimeBound bound(0.000'001);
  EXPECT_EQ(bound.exceeded(monotonic_ns()), 0) << "the first call only begins to measure";
  EXPECT_EQ(bound.exceeded(monotonic_ns()), 0) << "the share is measured once a second";
  const std::uint64_t end_ns = monotonic_ns() + RealtimeBound::kWindowNs;
  while (monotonic_ns() < end_ns) {
  }
  EXPECT_GT(bound.exceeded(monotonic_ns()), 0.000'001);
  RealtimeBound none(1);
  EXPECT_EQ(none.exceeded(monotonic_ns()), 0);
}

TEST(KeepOffCpu, LeavesEveryOtherCpuThatTheThreadHas) {
  std::thread([] {
    const cpu_set_t before = cpus_of_this_thread();
    if (CPU_COUNT(&before) < 2) {
      GTEST_SKIP() << "there is one CPU";
    }
    const std::size_t cpu = first_of(before);
    keep_off_cpu(::pthread_self(), static_cast<int>(cpu));
    cpu_set_t wanted = before;
    CPU_CLR(cpu, &wanted);
    const cpu_set_t after = cpus_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&after, &wanted));
  }).join();
}

TEST(KeepOffCpu, LeavesTheLastCpuAlone) {
  std::thread([] {
    const cpu_set_t before = cpus_of_this_thread();
    const std::size_t cpu = first_of(before);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(::pthread_setaffinity_np(::pthread_self(), sizeof one, &one), 0);
    keep_off_cpu(::pthread_self(), static_cast<int>(cpu));
    const cpu_set_t after = cpus_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&after, &one));
  }).join();
}

TEST(KeepOffCpu, NoCpuChangesNothing) {
  const cpu_set_t before = cpus_of_this_thread();
  keep_off_cpu(::pthread_self(), -1);
  const cpu_set_t after = cpus_of_this_thread();
  EXPECT_TRUE(CPU_EQUAL(&after, &before));
}

TEST(HandOverPace, ASlotThatFillsSlowlyIsWorthASignal) {
  const HandOverPace pace = hand_over_pace(16, 1000, kMillisecond);
  EXPECT_EQ(pace.hand_overs_a_signal, 1U);
}

TEST(HandOverPace, WhereSlotsFillFastTheWriterLooksManyTimesWithinTheRing) {
  constexpr std::uint64_t kRingNs = 16 * kMillisecond;
  const HandOverPace pace = hand_over_pace(16, 1000, 1000);
  EXPECT_LE(pace.nap_ns, kRingNs / 8);
  EXPECT_EQ(pace.hand_overs_a_signal, 8U);
}

TEST(HandOverPace, ASmallRingIsNeverLeftToTheWriterAlone) {
  EXPECT_EQ(hand_over_pace(2, 1000, 1000).hand_overs_a_signal, 1U);
}

}  // namespace
}  // namespace kymo
