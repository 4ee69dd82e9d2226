#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/adler32.h"
#include "kymo/annotated_sink.h"
#include "kymo/sink.h"

namespace kymo {

// The lines of gVisor's profiling file (docs/formats.md). Each ends with a newline.
//
// The lines before the rows: one META line for each metric, START_TIME, and the header.
std::string annotated_header(const RecordingInfo& info, AnnotatedFormat format);
// The line that ends the recording.
std::string annotated_stats(const RecordingInfo& info, const ProfilerStats& stats);

// Prepares lines for a log stream that may lose lines and mix them with other lines. Each line gets
// a prefix and a checksum. Each piece gets a blank line before and after it. The last line is a
// checksum over all pieces.
//
// Threads: one.
// Memory:  grows to the largest piece.
// Cost:    one pass over the text.
class LossyLines {
 public:
  // Returns these whole lines as one piece, valid until the next call.
  std::string_view wrap(std::string_view lines);
  // Tells that the piece of the last wrap() was written: the final checksum then covers it.
  void accept() { all_ = all_with_piece_; }
  // The last line, with the checksum over all pieces.
  [[nodiscard]] std::string closing() const;

 private:
  std::string piece_;
  Adler32 all_;
  Adler32 all_with_piece_;
};

}  // namespace kymo
