#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/proc/process.h"
#include "profiler/stacks/perf_ring.h"
#include "profiler/stacks/source.h"

namespace kymo::stacks {
namespace {

// Without a right, a user may lock 516 KiB for each CPU (kernel.perf_event_mlock_kb). That is
// enough for 30 samples.
constexpr std::size_t kRingBytes = std::size_t{1} << 23U;
constexpr std::size_t kSmallRingBytes = std::size_t{1} << 19U;

class PerfSource final : public Source {
 public:
  explicit PerfSource(const Sampling& sampling)
      : sampling_(sampling), period_ns_(kNanosPerSecond / sampling.rate) {}

  Result<void> open();
  void drain(std::vector<Event>& events) override;
  void stop() override;
  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] SourceCounts counts() const override;

 private:
  Result<void> open_all(const std::vector<pid_t>& threads, const std::vector<int>& cpus);
  Result<void> open_on(int cpu, const std::vector<pid_t>& threads);

  Sampling sampling_;
  std::uint64_t period_ns_;
  bool exclude_kernel_ = false;
  std::size_t ring_bytes_ = kRingBytes;
  std::vector<PerfRing> rings_;         // one for each CPU
  std::vector<FileDescriptor> events_;  // others that write into these rings
};

// The threads of the processes; -1 for all of the machine.
std::vector<pid_t> threads_of(const Profiled& target) {
  if (target.kind == Profiled::Kind::machine) return {-1};
  std::vector<pid_t> threads;
  for (const pid_t pid : target.pids) {
    const std::vector<pid_t> own = probe::threads_of(pid);
    threads.insert(threads.end(), own.begin(), own.end());
  }
  return threads;
}

// An event follows the children of its thread only if it is of one CPU, as far as it has a ring.
Result<void> PerfSource::open_on(int cpu, const std::vector<pid_t>& threads) {
  perf_event_attr attributes = PerfRing::samples(period_ns_);
  attributes.inherit = threads.front() != -1 ? 1 : 0;
  attributes.exclude_kernel = exclude_kernel_ ? 1 : 0;
  bool has_ring = false;
  for (const pid_t thread : threads) {
    if (!has_ring) {
      Result<PerfRing> ring = PerfRing::open(attributes, thread, cpu, ring_bytes_);
      if (!ring && ring.error().errno_value == ESRCH) continue;
      if (!ring) return ring.error();
      rings_.push_back(*std::move(ring));
      has_ring = true;
      continue;
    }
    Result<FileDescriptor> event = open_event(attributes, thread, cpu);
    if (!event && event.error().errno_value == ESRCH) continue;
    if (!event) return event.error();
    if (::ioctl(event->get(), PERF_EVENT_IOC_SET_OUTPUT, rings_.back().fd()) != 0) {
      return system_error("share the ring buffer of a perf event", errno);
    }
    events_.push_back(*std::move(event));
  }
  return has_ring ? Result<void>() : system_error("cannot profile what has ended", ESRCH);
}

Result<void> PerfSource::open_all(const std::vector<pid_t>& threads, const std::vector<int>& cpus) {
  rings_.clear();
  events_.clear();
  for (const int cpu : cpus) {
    if (Result<void> opened = open_on(cpu, threads); !opened) return opened;
  }
  return {};
}

Result<void> PerfSource::open() {
  const Result<std::vector<int>> cpus = online_cpus();
  if (!cpus) return cpus.error();
  const std::vector<pid_t> threads = threads_of(sampling_.target);
  if (threads.empty()) return system_error("cannot profile what has ended", ESRCH);
  Result<void> opened;
  for (const std::size_t bytes : {kRingBytes, kSmallRingBytes}) {
    for (const bool exclude_kernel : {false, true}) {
      ring_bytes_ = bytes;
      exclude_kernel_ = exclude_kernel;
      opened = open_all(threads, *cpus);
      if (opened || opened.error().code != Code::permission_denied) return opened;
    }
  }
  return opened;
}

void PerfSource::drain(std::vector<Event>& events) {
  const std::size_t before = events.size();
  for (PerfRing& ring : rings_) ring.drain(events);
  for (std::size_t i = before; i < events.size(); ++i) {
    if (auto* sample = std::get_if<Sample>(&events[i].what)) sample->value_ns = period_ns_;
  }
}

void PerfSource::stop() {
  for (const PerfRing& ring : rings_) ::ioctl(ring.fd(), PERF_EVENT_IOC_DISABLE, 0);
  for (const FileDescriptor& event : events_) ::ioctl(event.get(), PERF_EVENT_IOC_DISABLE, 0);
}

SourceCounts PerfSource::counts() const {
  SourceCounts counts;
  for (const PerfRing& ring : rings_) counts.lost += ring.lost();
  return counts;
}

}  // namespace

Result<std::unique_ptr<Source>> open_perf_source(const Sampling& sampling) {
  auto source = std::make_unique<PerfSource>(sampling);
  if (Result<void> opened = source->open(); !opened) return opened.error();
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace kymo::stacks
