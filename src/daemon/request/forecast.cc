#include "daemon/request/forecast.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "report/human.h"

namespace kymo::daemon {
namespace {

constexpr std::size_t kMaxEarlier = 20;
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

}  // namespace

Forecast forecast_dump(const std::vector<store::Run>& earlier, std::uint64_t memory_bytes,
                       std::uint64_t deadline_ns) {
  std::vector<std::uint64_t> expected;
  for (auto it = earlier.rbegin(); it != earlier.rend() && expected.size() < kMaxEarlier; ++it) {
    if (!it->error.empty() || it->duration_ns == 0) continue;
    const double scale = (static_cast<double>(memory_bytes) + kConstantPart) /
                         (static_cast<double>(memory_of(*it)) + kConstantPart);
    expected.push_back(static_cast<std::uint64_t>(static_cast<double>(it->duration_ns) * scale));
  }
  const std::string memory = report::bytes(memory_bytes) + " of memory";
  const std::string within = "the deadline of " + report::duration(deadline_ns);
  Forecast forecast;
  if (expected.empty()) {
    forecast.text = "kymod cannot say whether the dump will meet " + within +
                    ": there is no earlier dump to compare with; it has to write " + memory;
    return forecast;
  }
  std::sort(expected.begin(), expected.end());
  forecast.expected_ns = expected[expected.size() / 2];
  forecast.worst_ns = expected.back();
  std::string verdict;
  if (forecast.worst_ns <= deadline_ns) {
    forecast.verdict = Forecast::Verdict::likely;
    verdict = "the dump will probably meet ";
  } else if (forecast.expected_ns <= deadline_ns) {
    forecast.verdict = Forecast::Verdict::doubtful;
    verdict = "the dump may or may not meet ";
  } else {
    forecast.verdict = Forecast::Verdict::unlikely;
    verdict = "the dump will probably not meet ";
  }
  const std::string by =
      std::to_string(expected.size()) + (expected.size() == 1 ? " earlier dump" : " earlier dumps");
  forecast.text = verdict + within + ": judged by " + by + ", " + memory + " take about " +
                  report::duration(forecast.expected_ns) + ", at most " +
                  report::duration(forecast.worst_ns);
  return forecast;
}

}  // namespace kymo::daemon
