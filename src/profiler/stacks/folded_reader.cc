#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "profiler/stacks/named_profile.h"
#include "profiler/stacks/output.h"

namespace kymo::stacks {
namespace {

constexpr std::uint64_t kNanosPerFoldedUnit = 1000;  // of times

class FoldedReader {
 public:
  explicit FoldedReader(Quantity quantity) {
    profile_.quantity = quantity;
    profile_.counts_samples = quantity == Quantity::cpu || quantity == Quantity::goroutine;
  }

  // Returns false if the line is no stack.
  bool add(std::string_view line);
  [[nodiscard]] std::size_t frames() const { return frames_; }
  NamedProfile take() { return std::move(profile_); }

 private:
  std::uint32_t function(std::string_view frame);
  [[nodiscard]] Weight weight_of(std::uint64_t value) const;

  NamedProfile profile_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::size_t frames_ = 0;
};

std::uint32_t FoldedReader::function(std::string_view frame) {
  constexpr std::string_view kKernel = "_[k]";
  const auto [known, added] =
      ids_.try_emplace(std::string(frame), static_cast<std::uint32_t>(profile_.functions.size()));
  if (!added) return known->second;
  const bool kernel = frame.ends_with(kKernel);
  if (kernel) frame.remove_suffix(kKernel.size());
  const bool known_name = !frame.empty() && !frame.starts_with('[');
  profile_.functions.push_back(
      {frame.empty() ? "[unknown]" : std::string(frame), kernel ? "[kernel]" : "", known_name});
  return known->second;
}

Weight FoldedReader::weight_of(std::uint64_t value) const {
  value = std::min(value, kMaxStackValue);
  if (profile_.quantity == Quantity::cpu) return {value, 0};
  if (profile_.quantity == Quantity::goroutine) return {value, value};
  const bool time = facts_of(profile_.quantity).unit == std::string_view("ns");
  return {1, time ? std::min(value * kNanosPerFoldedUnit, kMaxStackValue) : value};
}

bool FoldedReader::add(std::string_view line) {
  const std::size_t space = line.rfind(' ');
  if (space == std::string_view::npos || space == 0) return false;
  const std::string_view number = line.substr(space + 1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) return false;
  std::string_view rest = line.substr(0, space);
  NamedProfile::Stack stack;
  const std::size_t first = rest.find(';');
  if (first != std::string_view::npos) {
    stack.process = rest.substr(0, first);
    rest.remove_prefix(first + 1);
    constexpr std::string_view kCut = kTruncated;
    if (rest.starts_with(kCut) && rest.substr(kCut.size()).starts_with(';')) {
      stack.truncated = true;
      rest.remove_prefix(kCut.size() + 1);
    }
  }
  while (frames_++ < kMaxFramesOfFile) {
    const std::size_t next = rest.find(';');
    stack.functions.push_back(function(rest.substr(0, next)));
    if (next == std::string_view::npos) break;
    rest.remove_prefix(next + 1);
  }
  std::reverse(stack.functions.begin(), stack.functions.end());
  stack.weight = weight_of(value);
  profile_.stacks.push_back(std::move(stack));
  return true;
}

}  // namespace

Result<NamedProfile> read_folded(std::string_view text, const std::string& path,
                                 Quantity quantity) {
  FoldedReader reader(quantity);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    if (!reader.add(line)) {
      return Error{Code::data_loss, path + ", line " + std::to_string(number) +
                                        ": this is no stack: give lines such as "
                                        "\"process;main;work 12\", or a file of pprof"};
    }
    if (reader.frames() > kMaxFramesOfFile) {
      return Error{Code::failed_precondition,
                   path + " is too large: kymo reads at most 33 million frames of a profile"};
    }
  }
  return reader.take();
}

bool is_folded(std::string_view path) {
  return path.ends_with(".folded") || path.ends_with(".txt");
}

}  // namespace kymo::stacks
