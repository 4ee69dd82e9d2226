#include "recorder/metrics/fork_count.h"

#include <pthread.h>

#include <atomic>

namespace kymo {
namespace {

constinit std::atomic<std::uint64_t> g_forks{0};

[[gnu::constructor]] void count_forks() {
  ::pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace

std::uint64_t fork_count() noexcept {
  return g_forks.load(std::memory_order_relaxed);
}

}  // namespace kymo
