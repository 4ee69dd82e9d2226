#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/metadata.h"
#include "base/adler32.h"

namespace kymo::analysis {

// Tells the lines of gVisor's profiling file apart (docs/annotated-format.md), and keeps what they
// say of the recording. In a log stream it finds its lines among others' and verifies each.
//
// Threads: one at a time. Errors: a damaged line is reported as such.
class AnnotatedLines {  // NOLINT(bugprone-exception-escape): moving its json does not throw
 public:
  enum class Kind : std::uint8_t { other, header, row, damaged };
  struct Line {
    Kind kind = Kind::other;
    std::string_view text{};  // of a header or a row, without prefix and checksum
    std::string reason{};     // of a damaged one
  };

  // Whether a file that begins with this line is one of these.
  static bool begins_plain(std::string_view line);
  // Whether the line is one of a log stream's.
  static bool is_lossy(std::string_view line);

  // The next line of the file, without its end; the text it returns is valid as long as `line` is.
  Line classify(std::string_view line);
  // After the last line: what the whole says of itself, also what is wrong with it.
  void finish();

  // The columns' descriptions go by the names of the header.
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  Line classify_own(std::string_view text);
  void read_header(std::string_view header);
  bool read_meta(std::string_view text);
  bool read_stats(std::string_view text);

  bool lossy_ = false;
  bool header_seen_ = false;
  bool closed_ = false;    // nothing of this recording follows
  bool followed_ = false;  // by another recording
  std::optional<std::uint32_t> expected_sum_;
  Adler32 sum_;
  std::map<std::string, ColumnInfo, std::less<>> metrics_;
  std::map<std::string, std::vector<std::string>, std::less<>> field_names_;
  Metadata metadata_;
  std::vector<std::string> notes_;
};

}  // namespace kymo::analysis
