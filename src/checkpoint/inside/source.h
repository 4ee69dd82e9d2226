#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kymo/metric.h"

namespace kymo::inside {

// A task that was seen in uninterruptible sleep (state D).
struct Sleeper {
  pid_t task = 0;  // 0: none was seen
  std::uint64_t slept_ns = 0;
  std::string where;  // the function of the kernel in which it slept; empty: not known
};

// Something that can be seen during a dump or restore, as columns of the recording of that request.
//
// Threads: one at a time.
class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // The same from the constructor to the destructor. What cannot be read here has no column.
  [[nodiscard]] virtual const std::vector<Metric>& columns() const = 0;
  // Each how many-th time it is read: its files are dear, or change seldom.
  [[nodiscard]] virtual unsigned every() const { return 1; }
  // Reads the values of all columns, in their order, over those of the last reading. A counter never decreases. If a value
  // cannot be read any more, for example because its process has ended, it stays as it was.
  virtual void read(std::uint64_t now_monotonic_ns, std::span<std::uint64_t> values) = 0;
  // Why a part of it cannot be seen, and what to do about that, in one line. Empty: nothing is
  // missing.
  [[nodiscard]] virtual std::string missing() const { return {}; }
  // The thread of the target that was longest seen in uninterruptible sleep.
  [[nodiscard]] virtual Sleeper sleeper() const { return {}; }
  // How long that thread of the target waited for a disk that waited longest for it. Threads wait side by side.
  [[nodiscard]] virtual std::uint64_t longest_disk_wait_ns() const { return 0; }
};

}  // namespace kymo::inside
