#include "daemon/request/forecast.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/robust.h"
#include "base/json_text.h"
#include "daemon/request/dump_record.h"
#include "report/human.h"

namespace kymo::daemon {
namespace {

constexpr std::size_t kMaxEarlier = 20;
constexpr std::size_t kMaxOthers = 200;
constexpr std::uint64_t kPageBytes = 4096;
// In bytes. Where times are only scaled with memory, this is added to the memory of each dump. It
// stands for the part of a time that does not depend on memory.
constexpr double kConstantPart = 16 << 20;

std::optional<std::uint64_t> number_in(const nlohmann::json& stats, const char* name) {
  if (!stats.is_object()) return std::nullopt;
  const auto found = stats.find(name);
  if (found == stats.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

// What a forecast needs of an earlier dump.
struct Earlier {
  double memory_bytes = 0;  // that it wrote
  double stood_still_ns = 0;
  double total_ns = 0;
};
using Time = double Earlier::*;

Earlier earlier_of(const store::Run& run) {
  const nlohmann::json stats = parse_json(run.stats_json);
  std::optional<std::uint64_t> pages = number_in(stats, "pages_written");
  if (pages) *pages += number_in(stats, "shpages_written").value_or(0);
  std::uint64_t still_ns = run.stood_still_ns;
  if (still_ns == 0) {  // stored by an older kymod
    still_ns = (number_in(stats, "freezing_time_us").value_or(0) +
                number_in(stats, "frozen_time_us").value_or(0)) *
               1000;
  }
  // Images may be compressed.
  return {static_cast<double>(pages ? *pages * kPageBytes : run.image_bytes),
          static_cast<double>(still_ns), static_cast<double>(run.duration_ns)};
}

// The newest dumps that succeeded, on this disk or, if it is empty, on any.
std::vector<Earlier> newest_of(const std::vector<store::Run>& runs, const std::string& disk,
                               std::size_t most) {
  std::vector<Earlier> newest;
  for (auto run = runs.rbegin(); run != runs.rend() && newest.size() < most; ++run) {
    const bool counts = run->error.empty() && run->duration_ns != 0;
    if (counts && (disk.empty() || run->disk == disk)) newest.push_back(earlier_of(*run));
  }
  return newest;
}

// How a time grows with memory, in nanoseconds a byte: the median, and the slopes that a tenth of the
// pairs are below or above.
struct Slope {
  double low = 0;
  double middle = 0;
  double high = 0;
};

// The slopes between those pairs of dumps that differ much in memory (Theil and Sen's estimate, which one
// odd dump does not move). Nothing if the dumps differ too little.
std::optional<Slope> slope_of(const std::vector<Earlier>& dumps, Time time) {
  constexpr std::size_t kMinDumps = 3;
  constexpr double kSpan = 0.5;  // of the largest memory
  if (dumps.size() < kMinDumps) return std::nullopt;
  const auto [least, most] = std::minmax_element(
      dumps.begin(), dumps.end(),
      [](const Earlier& a, const Earlier& b) { return a.memory_bytes < b.memory_bytes; });
  const double span = most->memory_bytes - least->memory_bytes;
  if (span < kConstantPart || span < kSpan * most->memory_bytes) return std::nullopt;
  std::vector<double> slopes;
  for (const Earlier& a : dumps) {
    for (const Earlier& b : dumps) {
      const double apart = b.memory_bytes - a.memory_bytes;
      if (apart >= span / 3) slopes.push_back(std::max(0.0, (b.*time - a.*time) / apart));
    }
  }
  constexpr double kTenth = 0.1;
  return Slope{analysis::quantile(slopes, kTenth), analysis::median(slopes),
               analysis::quantile(slopes, 1 - kTenth)};
}

Range rounded(double low, double expected, double high) {
  const auto whole = [](double value) {
    return static_cast<std::uint64_t>(std::llround(std::max(0.0, value)));
  };
  return {whole(low), whole(expected), whole(high)};
}

Range range_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return rounded(values.front(), values[values.size() / 2], values.back());
}

// The estimate for `memory` on the line with this slope through the middle of the dumps. The range
// is as wide as the dumps lie around the line. It widens with the distance from the dumps, because
// the slope is not exact.
Range on_line(const std::vector<Earlier>& dumps, Time time, const Slope& slope, double memory) {
  std::vector<double> fixed;
  std::vector<double> memories;
  for (const Earlier& dump : dumps) {
    fixed.push_back(dump.*time - slope.middle * dump.memory_bytes);
    memories.push_back(dump.memory_bytes);
  }
  const double base = analysis::median(fixed);
  const auto [least, most] = std::minmax_element(fixed.begin(), fixed.end());
  const double away = memory - analysis::median(memories);
  const double expected = base + slope.middle * memory;
  const double lower = away > 0 ? slope.low - slope.middle : slope.high - slope.middle;
  const double higher = away > 0 ? slope.high - slope.middle : slope.low - slope.middle;
  // For little memory the line may be below 0. So no estimate is below this: each earlier time,
  // scaled down in proportion to memory if its dump had more of it, and of these the shortest.
  double floor = 0;
  for (const Earlier& dump : dumps) {
    const double part = dump.*time * std::min(1.0, memory / std::max(dump.memory_bytes, 1.0));
    floor = floor == 0 ? part : std::min(floor, part);
  }
  const double low = std::max(floor, expected + (*least - base) + lower * away);
  return rounded(low, std::max(low, expected),
                 std::max({low, expected, expected + (*most - base) + higher * away}));
}

// Each time in proportion to memory.
Range in_proportion(const std::vector<Earlier>& dumps, Time time, double memory) {
  std::vector<double> scaled;
  for (const Earlier& dump : dumps) {
    scaled.push_back(dump.*time * (memory + kConstantPart) / (dump.memory_bytes + kConstantPart));
  }
  return range_of(std::move(scaled));
}

}  // namespace

Result<EarlierDumps> earlier_dumps(store::Store& store, const std::string& owner, bool container,
                                   bool prove) {
  const auto is_other = [prove](const store::Run& run) {
    return (run.conditions.find(kProve) != std::string::npos) != prove;
  };
  const auto kind = store::RunKind::dump;
  EarlierDumps earlier;
  Result<std::vector<store::Run>> runs = store.runs(owner, kind);
  if (!runs) return runs.error();
  earlier.own = *std::move(runs);
  std::erase_if(earlier.own, is_other);
  if (container) return earlier;
  runs = store.runs({}, kind, kMaxOthers);
  if (!runs) return runs.error();
  earlier.others = *std::move(runs);
  std::erase_if(earlier.others, is_other);
  return earlier;
}

DumpTimes forecast_times(const EarlierDumps& earlier, const PlannedDump& planned) {
  DumpTimes times;
  std::vector<Earlier> dumps;
  const auto choose = [&](const std::vector<store::Run>& runs, bool others, bool any_disk) {
    if (!dumps.empty()) return;
    dumps = newest_of(runs, any_disk ? "" : planned.disk, kMaxEarlier);
    times.of_others = others;
    times.other_disks = any_disk && !planned.disk.empty();
  };
  choose(earlier.own, false, false);
  choose(earlier.own, false, true);
  choose(earlier.others, true, false);
  choose(earlier.others, true, true);
  if (dumps.empty()) return {};
  times.dumps = dumps.size();
  const auto memory = static_cast<double>(planned.memory_bytes);
  const std::vector<Earlier> here = newest_of(earlier.others, planned.disk, kMaxOthers);
  const auto foretold = [&](Time time) {
    std::optional<Slope> slope = slope_of(dumps, time);
    if (!slope) slope = slope_of(here, time);
    return slope ? on_line(dumps, time, *slope, memory) : in_proportion(dumps, time, memory);
  };
  std::vector<double> written;
  for (const Earlier& dump : dumps) written.push_back(dump.memory_bytes);
  times.written_bytes = range_of(std::move(written));
  times.stood_still_ns = foretold(&Earlier::stood_still_ns);
  times.total_ns = foretold(&Earlier::total_ns);
  return times;
}

Forecast forecast_dump(const EarlierDumps& earlier, const PlannedDump& planned,
                       std::uint64_t deadline_ns) {
  const DumpTimes times = forecast_times(earlier, planned);
  const std::string memory = report::bytes(planned.memory_bytes) + " of memory";
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
      std::to_string(times.dumps) + (times.dumps == 1 ? " earlier dump" : " earlier dumps") +
      (times.of_others ? " of others" : "") + (times.other_disks ? " on other disks" : "");
  forecast.text = verdict + within + ": judged by " + by + ", " + memory + " take about " +
                  report::duration(forecast.expected_ns) + ", at most " +
                  report::duration(forecast.worst_ns);
  return forecast;
}

}  // namespace kymo::daemon
