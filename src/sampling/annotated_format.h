#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/adler32.h"
#include "kymo/sink.h"

namespace kymo {

// The lines of gVisor's profiling file (docs/annotated-format.md), each with its line end.
//
// What comes before the rows: one META line a metric, START_TIME, the header.
std::string annotated_header(const RecordingInfo& info, AnnotatedFormat format);
// The line that ends the recording.
std::string annotated_stats(const RecordingInfo& info, const ProfilerStats& stats);

// Makes lines fit for a log stream that may lose some and mixes them with others': a prefix and a
// checksum for each, a blank line before and after each piece, a checksum over all at the end.
//
// Threads: one. Memory: grows to the largest piece. Cost: one pass over the text.
class LossyLines {
 public:
  // These whole lines as one piece, valid until the next call.
  std::string_view wrap(std::string_view lines);
  // The piece of the last wrap() has gone out: the checksum at the end covers it.
  void accept() { all_ = all_with_piece_; }
  // The very last line.
  [[nodiscard]] std::string closing() const;

 private:
  std::string piece_;
  Adler32 all_;
  Adler32 all_with_piece_;
};

}  // namespace kymo
