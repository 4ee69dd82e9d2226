#include "sampling/thread_setup.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <thread>

#include "sampling/hand_over_pace.h"

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
