#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kymo::analysis {

// Consecutive lines of a file that could not be read, all for the same reason.
struct LeftOutSpan {
  std::uint64_t first_line = 0;  // the file's first line is 1
  std::uint64_t last_line = 0;
  std::string reason;
};

// The lines of a damaged file that a reader left out.
//
// Threads: one at a time.
// Cost:    memory for kMaxSpans spans. Further lines are only counted, so that a file that is
//          damaged everywhere stays cheap to read.
class LeftOut {
 public:
  static constexpr std::size_t kMaxSpans = 100;

  // `line` must not be before the line that was added last.
  void add(std::uint64_t line, std::string reason);

  // Adds those of another file, whose name the reasons then begin with.
  void add_all(const LeftOut& other, const std::string& name);

  [[nodiscard]] bool empty() const { return lines_ == 0; }
  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  [[nodiscard]] const std::vector<LeftOutSpan>& spans() const { return spans_; }
  // One sentence for each span, and one with the number of further lines.
  [[nodiscard]] std::vector<std::string> sentences() const;

 private:
  std::vector<LeftOutSpan> spans_;
  std::uint64_t lines_ = 0;
  std::uint64_t unlisted_ = 0;  // lines that are in no span
};

// `text` in quotation marks, shortened. All but printable ASCII is shown as `?`, because a terminal
// could take it for an escape sequence.
std::string in_quotes(std::string_view text, std::size_t max_length = 32);

}  // namespace kymo::analysis
