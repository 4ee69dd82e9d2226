#include "daemon/forecast.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "report/human.h"

namespace kymo::daemon {
namespace {

constexpr std::size_t kMostEarlier = 20;
constexpr std::uint64_t kPageBytes = 4096;
// In bytes. Added to the memory of each dump, for the part of its time that does not depend on
// memory.
constexpr double kConstantPart = 16 << 20;

// The bytes of memory that a dump wrote, from its statistics, because the images may be compressed.
std::uint64_t memory_of(const store::Run& run) {
  const nlohmann::json stats = parse_json(run.stats_json);
  if (stats.is_object()) {
    const auto pages = stats.find("pages_written");
    if (pages != stats.end() && pages->is_number_unsigned()) {
      return pages->get<std::uint64_t>() * kPageBytes;
    }
  }
  return run.image_bytes;
}

std::string seconds(std::uint64_t ns) {
  return report::duration(static_cast<double>(ns));
}

}  // namespace

Forecast forecast_dump(const std::vector<store::Run>& earlier, std::uint64_t memory_bytes,
                       std::uint64_t deadline_ns) {
  std::vector<std::uint64_t> expected;
  for (auto it = earlier.rbegin(); it != earlier.rend() && expected.size() < kMostEarlier; ++it) {
    if (!it->error.empty() || it->duration_ns == 0) continue;
    const double scale = (static_cast<double>(memory_bytes) + kConstantPart) /
                         (static_cast<double>(memory_of(*it)) + kConstantPart);
    expected.push_back(static_cast<std::uint64_t>(static_cast<double>(it->duration_ns) * scale));
  }
  const std::string memory = report::bytes(static_cast<double>(memory_bytes)) + " of memory";
  const std::string within = "the deadline of " + seconds(deadline_ns);
  Forecast forecast;
  if (expected.empty()) {
    forecast.text = "whether it fits into " + within +
                    " is not known: there is no earlier dump to go by; " + memory +
                    " are to be written";
    return forecast;
  }
  std::sort(expected.begin(), expected.end());
  forecast.expected_ns = expected[expected.size() / 2];
  forecast.worst_ns = expected.back();
  std::string verdict;
  if (forecast.worst_ns <= deadline_ns) {
    forecast.verdict = Forecast::Verdict::likely;
    verdict = "it is likely to fit into ";
  } else if (forecast.expected_ns <= deadline_ns) {
    forecast.verdict = Forecast::Verdict::doubtful;
    verdict = "it may or may not fit into ";
  } else {
    forecast.verdict = Forecast::Verdict::unlikely;
    verdict = "it is not likely to fit into ";
  }
  const std::string by =
      std::to_string(expected.size()) + (expected.size() == 1 ? " earlier dump" : " earlier dumps");
  forecast.text = verdict + within + ": by " + by + ", " + memory + " take about " +
                  seconds(forecast.expected_ns) + ", at most " + seconds(forecast.worst_ns);
  return forecast;
}

}  // namespace kymo::daemon
