#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/file.h"
#include "kymo/result.h"
#include "profiler/stacks/event.h"

namespace kymo::stacks {

// The CPUs that are online.
// Errors: those of reading /sys/devices/system/cpu/online.
Result<std::vector<int>> online_cpus();

// Opens an event of perf_event_open(2). Errors: the system's.
Result<FileDescriptor> open_event(perf_event_attr& attributes, pid_t pid, int cpu);

// An event's ring buffer in memory that the kernel shares with us, and its records as events.
//
// Threads: one.
class PerfRing {
 public:
  // The attributes of an event that tells which files processes map, what they execute, and when
  // they fork and exit. It takes no samples.
  static perf_event_attr side_events();
  // The attributes of an event that reports the same, and also takes the stack of the running
  // thread after each `period_ns` of CPU time. The event's record of a sample has no names.
  static perf_event_attr samples(std::uint64_t period_ns);

  // `bytes`: of the ring, a power of two. Errors: the system's.
  static Result<PerfRing> open(perf_event_attr attributes, pid_t pid, int cpu, std::size_t bytes);
  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  ~PerfRing();

  // Appends what has come since the last call.
  void drain(std::vector<Event>& events);
  // Records that were lost because the ring was full.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] int fd() const { return event_.get(); }

 private:
  PerfRing(FileDescriptor event, perf_event_mmap_page* page, std::size_t bytes)
      : event_(std::move(event)), page_(page), bytes_(bytes) {}
  [[nodiscard]] std::span<const std::byte> record_at(std::uint64_t at);
  void add(std::span<const std::byte> record, std::vector<Event>& events);

  FileDescriptor event_;
  perf_event_mmap_page* page_;
  std::size_t bytes_;
  std::uint64_t lost_ = 0;
  std::vector<std::byte> joined_;  // a record that begins at the ring's end
};

}  // namespace kymo::stacks
