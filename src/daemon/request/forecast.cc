#include "daemon/request/forecast.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"
#include "daemon/request/dump_record.h"
#include "daemon/request/room.h"
#include "lens/analysis/robust.h"
#include "lens/report/human.h"

namespace kymo::daemon {
namespace {

constexpr std::size_t kMaxEarlier = 20;
constexpr std::size_t kMaxOthers = 200;
// In bytes. Where times are only scaled with what was written, this is added to the bytes of each
// dump. It stands for the part of a time that does not depend on them.
constexpr double kConstantPart = 16 << 20;

std::optional<std::uint64_t> number_in(const nlohmann::json& stats, const char* name) {
  if (!stats.is_object()) return std::nullopt;
  const auto found = stats.find(name);
  if (found == stats.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

// What a forecast needs of an earlier dump.
struct Earlier {
  double bytes = 0;  // that it wrote
  double stood_still_ns = 0;
  double total_ns = 0;
};
using Time = double Earlier::*;

Earlier earlier_of(const store::Run& run) {
  const nlohmann::json stats = parse_json(run.stats_json);
  std::uint64_t still_ns = run.stood_still_ns;
  if (still_ns == 0) {  // stored by an older kymod
    still_ns = (number_in(stats, "freezing_time_us").value_or(0) +
                number_in(stats, "frozen_time_us").value_or(0)) *
               1000;
  }
  return {static_cast<double>(written_by(run)), static_cast<double>(still_ns),
          static_cast<double>(run.duration_ns)};
}

// The newest dumps to this disk that succeeded.
std::vector<Earlier> newest_of(const std::vector<store::Run>& runs, const std::string& disk,
                               std::size_t most) {
  std::vector<Earlier> newest;
  for (auto run = runs.rbegin(); run != runs.rend() && newest.size() < most; ++run) {
    const bool counts = run->error.empty() && run->duration_ns != 0;
    if (counts && run->disk == disk) newest.push_back(earlier_of(*run));
  }
  return newest;
}

// How a time grows with what is written, in nanoseconds a byte: the median, and the slopes that a tenth of the
// pairs are below or above.
struct Slope {
  double low = 0;
  double middle = 0;
  double high = 0;
};

// The slopes between those pairs of dumps that differ much in size (Theil and Sen's estimate, which one
// odd dump does not move). Nothing if the dumps differ too little.
std::optional<Slope> slope_of(const std::vector<Earlier>& dumps, Time time) {
  constexpr std::size_t kMinDumps = 3;
  constexpr double kSpan = 0.5;  // of the largest size
  if (dumps.size() < kMinDumps) return std::nullopt;
  const auto [least, most] =
      std::minmax_element(dumps.begin(), dumps.end(),
                          [](const Earlier& a, const Earlier& b) { return a.bytes < b.bytes; });
  const double span = most->bytes - least->bytes;
  if (span < kConstantPart || span < kSpan * most->bytes) return std::nullopt;
  std::vector<double> slopes;
  for (const Earlier& a : dumps) {
    for (const Earlier& b : dumps) {
      const double apart = b.bytes - a.bytes;
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

// The shortest time that these dumps leave possible. Of those that wrote no more than is planned, or little, it is the
// shortest. Those that wrote more are only scaled down if there are no others.
double floor_of(const std::vector<Earlier>& dumps, Time time, double bytes) {
  std::optional<double> small;
  std::optional<double> scaled;
  for (const Earlier& dump : dumps) {
    const double took = dump.*time;
    if (took == 0) continue;  // not known
    const bool is_small = dump.bytes <= std::max(bytes, kConstantPart);
    std::optional<double>& least = is_small ? small : scaled;
    const double part =
        is_small ? took : took * (bytes + kConstantPart) / (dump.bytes + kConstantPart);
    least = std::min(least.value_or(part), part);
  }
  return small ? *small : scaled.value_or(0);
}

// The estimate for `bytes` on the line with this slope through the middle of the dumps. The range
// is as wide as the dumps lie around the line. It widens with the distance from the dumps, because
// the slope is not exact.
Range on_line(const std::vector<Earlier>& dumps, Time time, const Slope& slope, double bytes,
              double floor) {
  std::vector<double> fixed;
  std::vector<double> sizes;
  for (const Earlier& dump : dumps) {
    fixed.push_back(dump.*time - slope.middle * dump.bytes);
    sizes.push_back(dump.bytes);
  }
  const double base = analysis::median(fixed);
  const auto [least, most] = std::minmax_element(fixed.begin(), fixed.end());
  const double away = bytes - analysis::median(sizes);
  const double expected = base + slope.middle * bytes;
  const double lower = away > 0 ? slope.low - slope.middle : slope.high - slope.middle;
  const double higher = away > 0 ? slope.high - slope.middle : slope.low - slope.middle;
  const double low = std::max(floor, expected + (*least - base) + lower * away);
  return rounded(low, std::max(low, expected),
                 std::max({low, expected, expected + (*most - base) + higher * away}));
}

// How far one or two dumps may lie from the next one. Nobody has seen how much they differ.
constexpr double kOfOne = 2;
constexpr double kOfTwo = 1.5;

// Each time in proportion to what was written. Of so few dumps that do not show this, the time may as well not depend on it.
Range in_proportion(const std::vector<Earlier>& dumps, Time time, double bytes, double floor) {
  std::vector<double> scaled;
  std::vector<double> took;
  for (const Earlier& dump : dumps) {
    const double part = dump.*time * (bytes + kConstantPart) / (dump.bytes + kConstantPart);
    scaled.push_back(std::max(floor, part));
    took.push_back(dump.*time);
  }
  const Range range = range_of(std::move(scaled));
  if (dumps.size() > 2) return range;
  const Range same = range_of(std::move(took));
  const double factor = dumps.size() == 1 ? kOfOne : kOfTwo;
  return rounded(static_cast<double>(std::min(range.low, same.low)) / factor,
                 static_cast<double>(range.expected),
                 static_cast<double>(std::max(range.high, same.high)) * factor);
}

}  // namespace

Result<EarlierDumps> earlier_dumps(store::Store& store, const std::string& owner, bool container,
                                   const Extras& extras) {
  const auto differs = [&extras](const store::Run& run) {
    const auto has = [&run](std::string_view condition) {
      return run.conditions.find(condition) != std::string::npos;
    };
    return has(kProve) != extras.prove || has(kSync) != extras.sync;
  };
  const auto kind = store::RunKind::dump;
  EarlierDumps earlier;
  Result<std::vector<store::Run>> runs = store.runs(owner, kind);
  if (!runs) return runs.error();
  earlier.own = *std::move(runs);
  std::erase_if(earlier.own, differs);
  if (container) return earlier;
  runs = store.runs({}, kind, kMaxOthers);
  if (!runs) return runs.error();
  earlier.others = *std::move(runs);
  std::erase_if(earlier.others, differs);
  return earlier;
}

DumpTimes forecast_times(const EarlierDumps& earlier, const PlannedDump& planned) {
  DumpTimes times;
  const std::vector<Earlier> here = newest_of(earlier.others, planned.disk, kMaxOthers);
  std::vector<Earlier> dumps = newest_of(earlier.own, planned.disk, kMaxEarlier);
  times.of_others = dumps.empty();
  if (dumps.empty()) dumps = newest_of(earlier.others, planned.disk, kMaxEarlier);
  if (dumps.empty()) return {};
  times.dumps = dumps.size();
  std::vector<Earlier> all = dumps;
  all.insert(all.end(), here.begin(), here.end());
  const auto bytes = static_cast<double>(planned.bytes);
  const auto foretold = [&](Time time) {
    const double floor = floor_of(all, time, bytes);
    std::optional<Slope> slope = slope_of(dumps, time);
    if (!slope) slope = slope_of(here, time);
    return slope ? on_line(dumps, time, *slope, bytes, floor)
                 : in_proportion(dumps, time, bytes, floor);
  };
  std::vector<double> written;
  for (const Earlier& dump : dumps) written.push_back(dump.bytes);
  times.written_bytes = range_of(std::move(written));
  times.stood_still_ns = foretold(&Earlier::stood_still_ns);
  times.total_ns = foretold(&Earlier::total_ns);
  return times;
}

Forecast forecast_dump(const EarlierDumps& earlier, const PlannedDump& planned,
                       std::uint64_t deadline_ns) {
  const DumpTimes times = forecast_times(earlier, planned);
  const std::string size = report::bytes(planned.bytes);
  const std::string within = "the deadline of " + report::duration(deadline_ns);
  Forecast forecast;
  if (times.dumps == 0) {
    forecast.text = "kymod cannot say whether the dump will meet " + within +
                    ": there is no earlier dump like it to this disk; it has to write about " +
                    size;
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
  const std::string by = std::to_string(times.dumps) +
                         (times.dumps == 1 ? " earlier dump" : " earlier dumps") +
                         (times.of_others ? " of others" : "") + " to this disk";
  forecast.text = verdict + within + ": judged by " + by + ", " + size + " take about " +
                  report::duration(forecast.expected_ns) + ", at most " +
                  report::duration(forecast.worst_ns);
  return forecast;
}

}  // namespace kymo::daemon
