#include "base/proc/poller.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <utility>

#include "base/clock.h"
#include "base/look_pace.h"

namespace kymo::probe {

Poller::Poller(std::size_t words, std::chrono::nanoseconds interval, Read read)
    : interval_ns_(to_nanos(interval)), read_(std::move(read)) {
  for (std::vector<std::uint64_t>& buffer : buffers_) {
    buffer.resize(words + 1);
  }
}

Poller::~Poller() {
  if (thread_.joinable()) {
    stop_.signal();
    thread_.join();
  }
}

void Poller::start() {
  read_once();
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "kymo-poller");
    ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    run();
  });
}

void Poller::stop() {
  if (!thread_.joinable()) {
    return;
  }
  stop_.signal();
  thread_.join();
  read_once();
}

void Poller::run() {
  constexpr std::uint64_t kRest = 3;
  const std::uint64_t now_ns = monotonic_ns();
  LookPace pace(interval_ns_, kRest, now_ns, thread_cpu_ns());
  std::uint64_t due_ns = now_ns + interval_ns_;
  while (!stop_.wait_until(due_ns)) {
    read_once();
    due_ns = pace.next_ns(monotonic_ns(), thread_cpu_ns());
  }
}

void Poller::read_once() {
  std::vector<std::uint64_t>& buffer = buffers_.at(back_);
  const std::uint64_t begun_ns = monotonic_ns();
  read_(buffer.data() + 1);
  buffer[0] = begun_ns + (monotonic_ns() - begun_ns) / 2;
  back_ = middle_.exchange(back_ | kIsNew, std::memory_order_acq_rel) & ~kIsNew;  // invariant 2
}

Poller::Reading Poller::take() noexcept {
  // Relaxed is enough: the exchange below acquires.
  if ((middle_.load(std::memory_order_relaxed) & kIsNew) != 0) {
    front_ = middle_.exchange(front_, std::memory_order_acq_rel) & ~kIsNew;
  }
  const std::vector<std::uint64_t>& buffer = buffers_[front_];
  return {buffer.data() + 1, buffer[0]};
}

}  // namespace kymo::probe
