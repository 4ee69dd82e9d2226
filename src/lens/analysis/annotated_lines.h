#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/adler32.h"
#include "lens/analysis/metadata.h"

namespace kymo::analysis {

// Classifies the lines of gVisor's profiling file (docs/formats.md) and collects the
// metadata in them. In a log stream, it finds the recording's lines among other lines and verifies
// the checksum of each.
//
// Threads: one at a time.
// Errors:  a damaged line has Kind::damaged.
class AnnotatedLines {  // NOLINT(bugprone-exception-escape): moving its json does not throw
 public:
  enum class Kind : std::uint8_t { other, header, row, damaged };
  struct Line {
    Kind kind = Kind::other;
    std::string_view text{};  // the header or row without prefix and checksum
    std::string reason{};     // why the line is damaged
  };

  // Whether a file that begins with this line is a profiling file (not a log stream).
  static bool begins_plain(std::string_view line);
  // Whether the line is a recording's line in a log stream.
  static bool is_lossy(std::string_view line);

  // Takes the next line of the file, without its line end. The returned text refers to `line`.
  Line classify(std::string_view line);
  // Call it after the last line: completes the metadata, and notes what is wrong with the file as
  // a whole.
  void finish();

  // The columns have the names from the header.
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  Line classify_own(std::string_view text);
  void read_header(std::string_view header);
  bool read_meta(std::string_view text);
  bool read_stats(std::string_view text);

  bool lossy_ = false;
  bool header_seen_ = false;
  bool closed_ = false;    // this recording has no more lines
  bool followed_ = false;  // another recording follows in the file
  std::optional<std::uint32_t> expected_sum_;
  Adler32 sum_;
  std::map<std::string, ColumnInfo, std::less<>> metrics_;
  std::map<std::string, std::vector<std::string>, std::less<>> field_names_;
  Metadata metadata_;
  std::vector<std::string> notes_;
};

}  // namespace kymo::analysis
