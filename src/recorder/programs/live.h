#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::record {

// The value of one column, for a live view.
struct LiveValue {
  std::string name;
  bool counter = true;  // false: it is a gauge, which has no rate
  std::string unit;     // as in a recording's metadata
  std::uint64_t value = 0;
  std::string shown{};  // the name of a state, to be shown in place of its number
};

struct LiveRow {
  std::uint64_t time_ns = 0;  // on a monotonic clock, to compute rates
  bool ended = false;         // there will be no newer row
  std::vector<LiveValue> values;
};

// The source of the rows of a live view. It does not disturb the process that it reads.
//
// Threads: one.
class LiveSource {
 public:
  LiveSource() = default;
  virtual ~LiveSource() = default;
  LiveSource(const LiveSource&) = delete;
  LiveSource& operator=(const LiveSource&) = delete;

  // The newest row. It has no values if there has been no sample yet.
  virtual Result<LiveRow> read() = 0;
};

// Reads the ring file of a running recorder.
//
// Errors: those of RingMemory::open_file().
Result<std::unique_ptr<LiveSource>> watch_ring(const std::string& path);

// Reads the counter file that the process `pid` has mapped, or else its ring file.
//
// Errors: not_found if it has neither, and those of the file.
Result<std::unique_ptr<LiveSource>> watch_process(pid_t pid);

}  // namespace kymo::record
