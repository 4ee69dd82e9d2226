#include "lens/analysis/gap_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ext/stdio_filebuf.h>
#include <istream>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "lens/analysis/metadata.h"

namespace kymo::analysis {
namespace {

constexpr std::string_view kHeader = "Start (ns)\tEnd (ns)\tTicks\tCause";
constexpr std::size_t kMaxGapLine = 256;

// Reads a line. False at the end, and at a line that is longer than any gap.
bool next_line(std::istream& file, std::string& line) {
  std::array<char, kMaxGapLine> text{};
  file.getline(text.data(), text.size());
  line = text.data();
  return !file.fail();
}

bool longer(const Gap& a, const Gap& b) {
  return a.end_ns - a.start_ns > b.end_ns - b.start_ns;
}

// Takes one number and the tab behind it from the front of `line`.
bool take_number(std::string_view& line, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  const auto used = static_cast<std::size_t>(end - line.data());
  if (error != std::errc() || used == line.size() || line[used] != '\t') {
    return false;
  }
  line.remove_prefix(used + 1);
  return true;
}

std::optional<Gap> parse_gap(std::string_view line) {
  Gap gap;
  if (!take_number(line, gap.start_ns) || !take_number(line, gap.end_ns) ||
      !take_number(line, gap.ticks) || gap.end_ns < gap.start_ns) {
    return std::nullopt;
  }
  const auto cause = parse_cause(line);
  if (!cause) {
    return std::nullopt;
  }
  gap.cause = *cause;
  return gap;
}

void add(Gaps& gaps, const Gap& gap) {
  gaps.ticks_by_cause.at(static_cast<std::size_t>(gap.cause)) += gap.ticks;
  ++gaps.count;
  std::vector<Gap>& heap = gaps.longest;  // the shortest of these gaps is at the top
  if (heap.size() == Gaps::kMaxLongest) {
    if (!longer(gap, heap.front())) {
      return;
    }
    std::pop_heap(heap.begin(), heap.end(), longer);
    heap.pop_back();
  }
  heap.push_back(gap);
  std::push_heap(heap.begin(), heap.end(), longer);
}

}  // namespace

Result<Gaps> read_gaps(const std::string& path, const std::function<void(const Gap&)>& take) {
  Result<FileDescriptor> fd = open_regular(path);
  if (!fd) return fd.error();
  errno = 0;
  __gnu_cxx::stdio_filebuf<char> buffer(fd->release(), std::ios::in | std::ios::binary);
  std::istream file(&buffer);
  std::string line;
  if (!next_line(file, line) || line != kHeader) {
    return Error{Code::data_loss, "read list of gaps " + path + ": its header is missing or wrong"};
  }
  Gaps gaps;
  std::uint64_t number = 2;
  for (; next_line(file, line); ++number) {
    const auto gap = parse_gap(line);
    // Without a line end, the cause may be cut off in the middle of the word.
    if (file.eof()) {
      gaps.left_out.add(number, "cut short: the file ends in the middle of this gap");
    } else if (!gap) {
      gaps.left_out.add(number, in_quotes(line) + " is not a gap");
    } else {
      add(gaps, *gap);
      if (take) take(*gap);
    }
  }
  if (file.gcount() == kMaxGapLine - 1) {
    gaps.left_out.add(number, "longer than any gap: the rest of the list was not read");
  }
  if (file.bad()) {
    return system_error("read list of gaps " + path, errno != 0 ? errno : EIO);
  }
  std::sort(gaps.longest.begin(), gaps.longest.end(),
            [](const Gap& a, const Gap& b) { return a.start_ns < b.start_ns; });
  return gaps;
}

}  // namespace kymo::analysis
