#include "analysis/gap_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>

#include "analysis/metadata.h"

namespace kymo::analysis {
namespace {

constexpr std::string_view kHeader = "Start (ns)\tEnd (ns)\tTicks\tCause";

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
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return system_error("open list of gaps " + path, errno != 0 ? errno : EIO);
  }
  std::string line;
  if (!std::getline(file, line) || line != kHeader) {
    return Error{Code::data_loss, "read list of gaps " + path + ": it has no such header"};
  }
  Gaps gaps;
  for (std::uint64_t number = 2; std::getline(file, line); ++number) {
    const auto gap = parse_gap(line);
    // Without a line end, the cause may be cut off in the middle of the word.
    if (file.eof()) {
      gaps.left_out.add(number, "cut short: the file ends in the middle of this gap");
    } else if (!gap) {
      gaps.left_out.add(number, in_quotes(line) + " is no gap");
    } else {
      add(gaps, *gap);
      if (take) take(*gap);
    }
  }
  if (file.bad()) {
    return system_error("read list of gaps " + path, errno != 0 ? errno : EIO);
  }
  std::sort(gaps.longest.begin(), gaps.longest.end(),
            [](const Gap& a, const Gap& b) { return a.start_ns < b.start_ns; });
  return gaps;
}

}  // namespace kymo::analysis
