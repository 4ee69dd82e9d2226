#include "recorder/sampling/profiler/collector_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "recorder/metrics/registry_access.h"

namespace kymo {
namespace {

// The shortest time of a sample on this machine, and thus the shortest interval that can be kept.
// On a busy machine, the thread may have to wait for a CPU within a sample, so one sample says
// little.
std::uint64_t measure_sample_ns(const Sampler& sampler) {
  constexpr int kSamples = 200;
  constexpr int kFew = 5;
  // A slow gauge must not hold up the start.
  constexpr std::uint64_t kEnoughNs = 2'000'000;
  constexpr std::uint64_t kEnoughForFewNs = 50'000'000;
  std::vector<std::uint64_t> row(sampler.columns().size());
  std::uint64_t shortest = UINT64_MAX;
  const std::uint64_t started = monotonic_ns();
  for (int i = 0; i < kSamples; ++i) {
    const std::uint64_t begin = monotonic_ns();
    if (begin - started > (i < kFew ? kEnoughForFewNs : kEnoughNs)) {
      break;
    }
    sampler.read(row.data());
    shortest = std::min(shortest, monotonic_ns() - begin);
  }
  return shortest;
}

bool becomes_true(const std::atomic<bool>& condition, int looks) {
  for (int i = 0; !condition.load(std::memory_order_acquire); ++i) {
    if (i == looks) return false;
    constexpr int kSoon = 50;  // the first checks are closer together
    std::this_thread::sleep_for(std::chrono::microseconds(i < kSoon ? 20 : 1000));
  }
  return true;
}

}  // namespace

std::optional<std::string> wait_for_callbacks(const std::atomic<bool>& done,
                                              const Registry& registry) {
  if (becomes_true(done, 1000)) {
    return std::nullopt;
  }
  const std::string before = RegistryAccess::running_callback(registry);
  if (becomes_true(done, 5000)) {
    return std::nullopt;
  }
  const std::string now = RegistryAccess::running_callback(registry);
  if (now.empty()) {
    return "a sample of its metrics has not ended for 6 s";
  }
  // A sample runs each callback once, so this one has run all the time.
  if (now == before) {
    return "the callback of metric '" + now + "' has not returned for 5 s";
  }
  return "the callbacks of its metrics have not returned for 6 s; that of '" + now + "' runs now";
}

CollectorThread::CollectorThread(std::shared_ptr<const Sampler> sampler) {
  thread_ = quiet_thread(
      [sampler = std::move(sampler), measured = measured_, next = next_.get_future()]() mutable {
        ::pthread_setname_np(::pthread_self(), "kymo-collector");
        measured->sample_ns = measure_sample_ns(*sampler);
        measured->done.store(true, std::memory_order_release);  // pairs with becomes_true()
        sampler.reset();  // whoever runs it keeps what it samples
        if (const std::function<void()> run = next.get()) {
          run();
        }
      });
}

CollectorThread::~CollectorThread() {
  if (!thread_.joinable()) {
    return;
  }
  next_.set_value(nullptr);
  if (measured_->done.load(std::memory_order_acquire)) {  // pairs with the store of the thread
    thread_.join();
  } else {
    thread_.detach();
  }
}

Result<std::uint64_t> CollectorThread::sample_ns(const Registry& registry) const {
  if (const auto late = wait_for_callbacks(measured_->done, registry)) {
    return Error{Code::deadline_exceeded,
                 "start the recorder: " + *late + "; start again once it has returned", 0};
  }
  return measured_->sample_ns;
}

std::thread CollectorThread::run(std::function<void()> work) {
  next_.set_value(std::move(work));
  return std::move(thread_);
}

}  // namespace kymo
