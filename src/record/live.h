#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::record {

// One column's value, for a live view.
struct LiveValue {
  std::string name;
  bool counter = true;  // false: a gauge, which has no rate
  std::string unit;     // as in a recording's metadata
  std::uint64_t value = 0;
};

struct LiveRow {
  std::uint64_t time_ns = 0;  // for rates: since some start
  bool ended = false;         // no newer row will come
  std::vector<LiveValue> values;
};

// Where a live view takes its rows from. Threads: one. Disturbs nobody who is looked at.
class LiveSource {
 public:
  LiveSource() = default;
  virtual ~LiveSource() = default;
  LiveSource(const LiveSource&) = delete;
  LiveSource& operator=(const LiveSource&) = delete;

  // The newest row; one without values where none has been taken yet.
  virtual Result<LiveRow> read() = 0;
};

// The ring file of a running recorder. Errors: those of RingMemory::open_file().
Result<std::unique_ptr<LiveSource>> watch_ring(const std::string& path);

// What process `pid` has mapped: its counter file, else its ring. Errors: not_found where there is
// neither, and those of the file.
Result<std::unique_ptr<LiveSource>> watch_process(pid_t pid);

}  // namespace kymo::record
