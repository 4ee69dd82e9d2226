#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "recorder/sampling/collect/recorder_counts.h"

namespace kymo {

// Finds out why the collector was late, without work for the collector.
//
// Twice a second the writer's thread looks at what the kernel counts for the collector's thread: how
// long it waited for a CPU, and how often it waited for a page from a disk (/proc/self/task/TID);
// and at the time that the hypervisor took from the machine (/proc/stat). The ticks that were late
// meanwhile are divided among these causes by time, in this order: waiting for a CPU, samples that
// took too long (the collector counts these), stolen time, page faults. The rest is unexplained.
//
// A collector that is on time also waits a little for a CPU after each sleep. How long is learned
// from looks between which no tick was late, and is left out.
//
// Threads: begin() and end() on the collector's thread, before its first tick and after its last;
//          look() and finish() on the writer's thread, finish() after end(). Before begin() has
//          returned, look() does nothing.
class LateCauses {
 public:
  // What the kernel counts for a thread.
  struct Use {
    std::uint64_t waited_ns = 0;    // for a CPU
    std::uint64_t page_faults = 0;  // that had to read from a disk
    bool known = false;
  };
  // Where it reads what it judges by.
  struct Source {
    Use (*use)(pid_t thread);
    std::uint64_t (*stolen_ns)();  // from one CPU, on average over all CPUs
  };
  static const Source kSystem;

  LateCauses(std::uint64_t interval_ns, const RecorderCounts::Collected& collected,
             RecorderCounts::Written& counts, const Source& source = kSystem);

  void begin();
  void end();
  void look();
  void finish();

 private:
  struct Seen {
    Use use;
    std::uint64_t stolen_ns = 0;
    std::uint64_t late = 0;    // ticks
    std::uint64_t sample = 0;  // ticks
    std::uint64_t rows = 0;
    std::uint64_t timing_error_ns = 0;
  };
  [[nodiscard]] Seen now(const Use& use) const;
  void judge(const Seen& now);

  std::uint64_t interval_ns_;
  const RecorderCounts::Collected& collected_;
  RecorderCounts::Written& counts_;
  Source source_;
  std::atomic<pid_t> thread_{0};  // 0: begin() has not returned
  Use last_use_;                  // set by end()
  Seen before_;
  std::uint64_t usual_wait_ns_ = 0;  // for a CPU, a row
  bool usual_wait_known_ = false;
};

}  // namespace kymo
