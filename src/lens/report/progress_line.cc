#include "lens/report/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lens/report/human.h"

namespace kymo::report {
namespace {

constexpr std::size_t kMinBar = 10;
constexpr std::size_t kMaxBar = 40;

struct SizeScale {
  double divisor;
  const char* unit;
};

SizeScale scale_of(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double divisor = 1;
  std::size_t unit = 0;
  while (static_cast<double>(bytes) / divisor >= 1024 && unit + 1 < kUnits.size()) {
    divisor *= 1024;
    ++unit;
  }
  return {divisor, kUnits.at(unit)};
}

// The done and total bytes, both in the unit of the total.
std::string sizes_of(const ProgressLine& progress) {
  if (!progress.total_bytes) return bytes(progress.done_bytes);
  const SizeScale scale = scale_of(*progress.total_bytes);
  return fmt::format("{:.1f}/{:.1f} {}", static_cast<double>(progress.done_bytes) / scale.divisor,
                     static_cast<double>(*progress.total_bytes) / scale.divisor, scale.unit);
}

std::string seconds_of(std::uint64_t ns) {
  const auto seconds = static_cast<double>(ns) / 1e9;
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

std::string bar_of(double share, std::size_t length) {
  const auto full = static_cast<std::size_t>(share * static_cast<double>(length));
  std::string bar = "[" + std::string(full, '=');
  if (full < length) bar += '>' + std::string(length - full - 1, ' ');
  return bar + "]";
}

// Control characters would move the cursor, and the name of a job or folder may contain any.
std::string ascii_of(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

}  // namespace

std::string progress_line(const ProgressLine& progress, std::size_t width) {
  const bool known = progress.total_bytes && *progress.total_bytes > 0;
  const double share = known ? std::min(1.0, static_cast<double>(progress.done_bytes) /
                                                 static_cast<double>(*progress.total_bytes))
                             : 0;
  std::string what = ascii_of(progress.what);
  const std::string phase = ascii_of(progress.phase);
  const std::string percent = known ? fmt::format("{:3.0f} %", share * 100) : "";
  const std::string left = progress.remaining_ns
                               ? seconds_of(*progress.remaining_ns) + " left"
                               : seconds_of(progress.elapsed_ns) + ", end unknown";
  const std::string sizes = sizes_of(progress);
  const std::string rate = bytes(progress.bytes_per_second) + "/s";
  std::vector<std::string> parts{what, phase, percent, sizes, rate, left};
  const auto length = [&] {
    std::size_t sum = 0;
    for (const std::string& part : parts) sum += part.empty() ? 0 : part.size() + 2;
    return sum == 0 ? 0 : sum - 2;
  };
  for (const std::size_t gives_way : {std::size_t{4}, std::size_t{3}, std::size_t{1}}) {
    if (length() > width) parts[gives_way].clear();
  }
  std::string bar;
  if (known && length() + kMinBar + 4 <= width) {
    bar = bar_of(share, std::min(width - length() - 4, kMaxBar));
  }
  std::string line;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == 2 && !bar.empty()) line += (line.empty() ? "" : "  ") + bar;
    if (!parts[i].empty()) line += (line.empty() ? "" : "  ") + parts[i];
  }
  return line.substr(0, width);
}

}  // namespace kymo::report
