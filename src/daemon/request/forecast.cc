#include "daemon/request/forecast.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"
#include "report/human.h"

namespace kymo::daemon {
namespace {

constexpr std::size_t kMaxEarlier = 20;
constexpr std::uint64_t kPageBytes = 4096;
// In bytes. Added to the memory of each dump, for the part of its time that does not depend on
// memory.
constexpr double kConstantPart = 16 << 20;

std::optional<std::uint64_t> number_in(const nlohmann::json& stats, const char* name) {
  if (!stats.is_object()) return std::nullopt;
  const auto found = stats.find(name);
  if (found == stats.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

// What a forecast needs of an earlier dump.
struct Earlier {
  std::uint64_t memory_bytes = 0;  // that it wrote
  std::uint64_t frozen_ns = 0;
  std::uint64_t total_ns = 0;
  double scale = 1;  // from its times to those of the dump that is planned
};

// The newest dumps that succeeded.
std::vector<Earlier> newest_of(const std::vector<store::Run>& earlier, std::uint64_t memory_bytes) {
  std::vector<Earlier> newest;
  for (auto run = earlier.rbegin(); run != earlier.rend() && newest.size() < kMaxEarlier; ++run) {
    if (!run->error.empty() || run->duration_ns == 0) continue;
    const nlohmann::json stats = parse_json(run->stats_json);
    const std::optional<std::uint64_t> pages = number_in(stats, "pages_written");
    Earlier one;
    one.memory_bytes = pages ? *pages * kPageBytes : run->image_bytes;  // these may be compressed
    one.frozen_ns = number_in(stats, "frozen_time_us").value_or(0) * 1000;
    one.total_ns = run->duration_ns;
    one.scale = (static_cast<double>(memory_bytes) + kConstantPart) /
                (static_cast<double>(one.memory_bytes) + kConstantPart);
    newest.push_back(one);
  }
  return newest;
}

std::uint64_t scaled(std::uint64_t time_ns, const Earlier& run) {
  return static_cast<std::uint64_t>(static_cast<double>(time_ns) * run.scale);
}

// Precondition: `values` is not empty.
Range range_of(std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

}  // namespace

DumpTimes forecast_times(const std::vector<store::Run>& earlier, std::uint64_t memory_bytes) {
  std::vector<std::uint64_t> written;
  std::vector<std::uint64_t> frozen;
  std::vector<std::uint64_t> total;
  for (const Earlier& run : newest_of(earlier, memory_bytes)) {
    written.push_back(run.memory_bytes);
    frozen.push_back(scaled(run.frozen_ns, run));
    total.push_back(scaled(run.total_ns, run));
  }
  if (total.empty()) return {};
  return {total.size(), range_of(written), range_of(frozen), range_of(total)};
}

Forecast forecast_dump(const std::vector<store::Run>& earlier, std::uint64_t memory_bytes,
                       std::uint64_t deadline_ns) {
  const DumpTimes times = forecast_times(earlier, memory_bytes);
  const std::string memory = report::bytes(memory_bytes) + " of memory";
  const std::string within = "the deadline of " + report::duration(deadline_ns);
  Forecast forecast;
  if (times.dumps == 0) {
    forecast.text = "kymod cannot say whether the dump will meet " + within +
                    ": there is no earlier dump to compare with; it has to write " + memory;
    return forecast;
  }
  forecast.expected_ns = times.total_ns.expected;
  forecast.worst_ns = times.total_ns.high;
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
      std::to_string(times.dumps) + (times.dumps == 1 ? " earlier dump" : " earlier dumps");
  forecast.text = verdict + within + ": judged by " + by + ", " + memory + " take about " +
                  report::duration(forecast.expected_ns) + ", at most " +
                  report::duration(forecast.worst_ns);
  return forecast;
}

}  // namespace kymo::daemon
