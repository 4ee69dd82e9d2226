#include "lens/report/text_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "lens/analysis/histograms.h"
#include "lens/analysis/quality.h"
#include "lens/report/about.h"
#include "lens/report/human.h"
#include "lens/report/phases.h"
#include "lens/report/scopes.h"
#include "lens/report/table.h"

namespace kymo::report {
namespace {

using analysis::ColumnSummary;
using analysis::Metadata;
using analysis::Summary;
using Align = Table::Align;

constexpr std::size_t kMaxGaps = 5;
constexpr std::size_t kLineWidth = 100;
constexpr std::size_t kLabelWidth = 12;

std::string line(const char* label, const std::string& text) {
  return fmt::format("{:<{}}{}\n", label, kLabelWidth, text);
}

std::string shown_files(const analysis::Recording& recording) {
  std::string name = printable(recording.path);
  if (const auto& parts = recording.parts; !parts.empty()) {
    const std::size_t more = parts.size() - 1;
    const std::string last = printable(parts.back());
    name += more == 1 ? fmt::format(" and the part after it, {}", last)
                      : fmt::format(" and the {} parts after it, up to {}", more, last);
  }
  return name;
}

// A time on the clock of the rows, so that it can be found in the file, too.
std::string at(std::uint64_t time_ns) {
  return fmt::format("{:.3f} s", static_cast<double>(time_ns) / 1e9);
}

std::string origin(const Metadata& metadata) {
  std::string text = about_lines(*metadata.about, kLabelWidth, kLineWidth);
  text += line("state", printable(metadata.state));
  text += line("started",
               fmt::format("{} on {}, {}, process {}", wall_clock(metadata.start_unix_ns),
                           printable(metadata.host), printable(metadata.kernel), metadata.pid));
  return text;
}

std::string length(const Summary& summary) {
  const auto& metadata = summary.recording.metadata;
  std::string text = fmt::format("{}, {} rows of {} columns", duration(summary.duration_ns()),
                                 with_commas(summary.rows), summary.columns.size());
  if (metadata && metadata->interval_ns != 0) {
    text += ", one every " + duration(metadata->interval_ns);
  }
  return line("length", text);
}

// Why ticks were late; empty if the recorder did not find out.
std::string late_causes(const ProfilerStats& stats) {
  const std::array<std::pair<std::uint64_t, const char*>, 4> causes = {
      {{stats.late_waited, "waited for a CPU"},
       {stats.late_sample, "sample before took too long"},
       {stats.late_stolen, "stolen by the hypervisor"},
       {stats.late_page_fault, "page fault"}}};
  std::string text;
  std::uint64_t unexplained = stats.missed_late;
  for (const auto& [ticks, what] : causes) {
    if (ticks != 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_commas(ticks), what);
      unexplained -= std::min(unexplained, ticks);
    }
  }
  if (unexplained != 0) {
    text += fmt::format("{}{} unexplained", text.empty() ? "" : ", ", with_commas(unexplained));
  }
  return text;
}

std::string captured(const Summary& summary) {
  const auto capture = analysis::capture_of(summary);
  if (!capture) {
    return {};
  }
  if (capture->ticks_due == 0) {
    return line("captured", "nothing: no tick was counted before it ended");
  }
  std::string text =
      fmt::format("{} of {}{} ticks ({}{})", with_commas(capture->rows),
                  capture->at_most ? "at least " : "", with_commas(capture->ticks_due),
                  capture->at_most ? "at most " : "", percent(capture->share()));
  if (capture->gone != 0) {
    text +=
        fmt::format(", {} more were recorded and are not in the file", with_commas(capture->gone));
  }
  for (std::size_t cause = 0; cause < capture->missed.size(); ++cause) {
    if (capture->missed.at(cause) != 0) {
      text += fmt::format(", {} missed: {}", with_commas(capture->missed.at(cause)),
                          analysis::to_string(static_cast<MissCause>(cause)));
    }
  }
  // Only a recorder's own output has percentiles and causes, not a recording that is cut out of it.
  const auto& metadata = summary.recording.metadata;
  if (capture->exact && metadata->stats->missed_late != 0 &&
      metadata->stats->timing_error_p999_ns != 0) {
    text += fmt::format("\n{:{}}late: {}", "", kLabelWidth, late_causes(*metadata->stats));
  }
  return line("captured", text);
}

std::string timing(const Metadata& metadata) {
  // A recording that is cut out of a longer one has no timing of its own.
  if (!metadata.stats || metadata.stats->rows_captured == 0 ||
      metadata.stats->timing_error_max_ns == 0) {
    return {};
  }
  const ProfilerStats& stats = *metadata.stats;
  const double mean =
      static_cast<double>(stats.timing_error_ns) / static_cast<double>(stats.rows_captured);
  std::string text = duration(mean) + " late on average, ";
  if (stats.timing_error_p999_ns != 0) {
    text +=
        fmt::format("half at most {}, 99 % {}, 99.9 % {}, ", duration(stats.timing_error_p50_ns),
                    duration(stats.timing_error_p99_ns), duration(stats.timing_error_p999_ns));
  }
  text += fmt::format("{} at most{}; longest sample {}", duration(stats.timing_error_max_ns),
                      stats.missed_late == 0 ? "" : ", of the ticks that were captured",
                      duration(stats.sample_window_max_ns));
  if (stats.timing_error_p999_ns != 0 && stats.ticks_due != 0) {
    text += fmt::format(
        "\n{:{}}{} of the ticks sampled within half an interval", "", kLabelWidth,
        percent(static_cast<double>(stats.rows_on_time) / static_cast<double>(stats.ticks_due)));
  }
  return line("timing", text);
}

// How much the collector spun. If the precise pace was not allowed enough, also how much it needs.
std::string pace(const Metadata& metadata) {
  if (metadata.pace.empty() || !metadata.stats || metadata.interval_ns == 0 ||
      metadata.stats->duration_ns == 0 ||
      (metadata.stats->spin_ns == 0 && metadata.stats->wakeup_latency_ns == 0)) {
    return {};
  }
  const ProfilerStats& stats = *metadata.stats;
  std::string text = fmt::format(
      "{}: spun {} of the time", metadata.pace,
      percent(static_cast<double>(stats.spin_ns) / static_cast<double>(stats.duration_ns)));
  if (metadata.pace != "precise") {
    return line("pace", text + " (the interval is below 200 µs)");
  }
  text += ", allowed " + percent(metadata.max_spin_share);
  const double needed =
      static_cast<double>(stats.wakeup_latency_ns) / static_cast<double>(metadata.interval_ns);
  if (needed > metadata.max_spin_share) {
    text += fmt::format("; wake-ups here take up to {}: {}", duration(stats.wakeup_latency_ns),
                        needed <= 1 ? fmt::format("a max spin share of {:.2f} would keep the time",
                                                  std::ceil(100 * needed) / 100)
                                    : "longer than the interval, ask for a longer one");
  }
  return line("pace", text);
}

std::string phase_table(const Summary& summary) {
  const auto& metadata = summary.recording.metadata;
  const bool marks = !metadata || !metadata->about->contains("phases");
  Table table({{marks ? "PHASE, from mark to mark" : "PHASE of the request", Align::left},
               {"begins"},
               {"lasts"},
               {"share"}});
  for (const diagnosis::Phase& phase : phases_of(summary)) {
    const auto lasts = static_cast<double>(phase.end_ns - phase.begin_ns);
    const auto whole = static_cast<double>(std::max<std::uint64_t>(summary.duration_ns(), 1));
    table.add({printable(phase.name), at(phase.begin_ns), duration(lasts),
               fmt::format("{:.1f} %", 100 * lasts / whole)});
  }
  return table.empty() ? "" : "\n" + table.str(0);
}

// Formats the values of a column, scaled or as recorded.
class Figures {
 public:
  Figures(Unit unit, const TextOptions& options) : unit_(unit), exact_(options.exact) {}

  [[nodiscard]] std::string whole(std::uint64_t v) const {
    if (exact_) return std::to_string(v);
    const bool number = unit_ == Unit::count || unit_ == Unit::pages;
    return number ? with_commas(v) : value(static_cast<double>(v), unit_);
  }
  [[nodiscard]] std::string mean(double v) const {
    return exact_ ? fmt::format("{:.3f}", v) : value(v, unit_);
  }
  [[nodiscard]] std::string per_second(double v) const {
    return exact_ ? fmt::format("{:.3f}", v) : rate(v, unit_);
  }

 private:
  Unit unit_;
  bool exact_;
};

// The name of a counter, and the window of its rates if it is not that of the others.
std::string name_with_window(const ColumnSummary& column, const Summary& summary) {
  const std::string name = printable(column.info.name);
  return column.rate_window_ns == summary.rate_window_ns
             ? name
             : fmt::format("{} (over {})", name, duration(column.rate_window_ns));
}

std::string counter_table(const Summary& summary, const TextOptions& options) {
  const std::string highest = fmt::format("highest in {}", duration(summary.rate_window_ns));
  Table table(
      {{"COUNTER", Align::left}, {"first"}, {"last"}, {"delta"}, {"mean rate"}, {highest}, {"at"}});
  for (const ColumnSummary& column : summary.columns) {
    if (column.info.kind != Kind::counter || column.idle()) {
      continue;
    }
    const Figures figures(column.info.unit, options);
    table.add({name_with_window(column, summary), figures.whole(column.first),
               figures.whole(column.last), figures.whole(column.delta),
               figures.per_second(column.rate), figures.per_second(column.highest_rate),
               at(std::max(column.highest_rate_at_ns, summary.first_ns))});
  }
  return table.empty() ? "" : "\n" + table.str(0);
}

// The percentiles of the rates, over the same windows as the highest rate.
std::string rate_table(const Summary& summary, const TextOptions& options) {
  bool exact = true;
  Table table({{fmt::format("RATE over {}", duration(summary.rate_window_ns)), Align::left},
               {"p50"},
               {"p90"},
               {"p99"},
               {"max"}});
  for (const ColumnSummary& column : summary.columns) {
    if (column.info.kind != Kind::counter || column.idle() || column.rates.windows == 0) continue;
    const Figures figures(column.info.unit, options);
    exact = exact && column.rates.exact;
    table.add({name_with_window(column, summary), figures.per_second(column.rates.p50),
               figures.per_second(column.rates.p90), figures.per_second(column.rates.p99),
               figures.per_second(column.highest_rate)});
  }
  if (table.empty()) return {};
  return "\n" + table.str(0) + (exact ? "" : "p50, p90 and p99 are within 1 % of the true ones\n");
}

// The phase that contains most of a stretch.
std::string phase_of(const analysis::BusyStretch& stretch,
                     const std::vector<diagnosis::Phase>& phases) {
  std::uint64_t most = 0;
  std::string name;
  for (const diagnosis::Phase& phase : phases) {
    const std::uint64_t begin = std::max(phase.begin_ns, stretch.begin_ns);
    const std::uint64_t end = std::min(phase.end_ns, stretch.end_ns);
    if (end > begin && end - begin > most) {
      most = end - begin;
      name = phase.name;
    }
  }
  return printable(name);
}

// The time at which each counter was busiest. Counters with the same time share a line.
std::string busiest_table(const Summary& summary) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<const ColumnSummary*>> stretches;
  for (const ColumnSummary& column : summary.columns) {
    const analysis::BusyStretch& busiest = column.busiest;
    if (column.info.kind == Kind::counter && busiest.end_ns > busiest.begin_ns) {
      stretches[{busiest.begin_ns, busiest.end_ns}].push_back(&column);
    }
  }
  Table table({{"BUSIEST, at half the highest rate or more", Align::left},
               {"begins"},
               {"lasts"},
               {"phase", Align::left},
               {"of its whole"}});
  const std::vector<diagnosis::Phase> phases = phases_of(summary);
  for (const auto& [range, columns] : stretches) {
    const ColumnSummary& first = *columns.front();
    std::string name = printable(first.info.name);
    if (columns.size() > 1) name += fmt::format(" and {} more", columns.size() - 1);
    const double share =
        first.delta == 0 ? 0 : first.busiest.growth / static_cast<double>(first.delta);
    table.add({std::move(name), at(range.first), duration(range.second - range.first),
               phase_of(first.busiest, phases), fmt::format("{:.1f} %", 100 * share)});
  }
  return table.empty() ? "" : "\n" + table.str(0);
}

std::string gauge_table(const Summary& summary, const TextOptions& options) {
  // The phases of a request stand in their own table, by name.
  const std::vector<diagnosis::Phase> phases = phases_of(summary);
  const bool named = !phases.empty() && !phases.front().evidence.empty();
  Table table({{"GAUGE", Align::left}, {"first"}, {"last"}, {"lowest"}, {"highest"}, {"mean"}});
  for (const ColumnSummary& column : summary.columns) {
    if (column.info.kind != Kind::gauge || column.idle()) {
      continue;
    }
    if (named && column.info.name == "phase") {
      continue;
    }
    const Figures figures(column.info.unit, options);
    table.add({printable(column.info.name), figures.whole(column.first), figures.whole(column.last),
               figures.whole(column.min), figures.whole(column.max), figures.mean(column.mean)});
  }
  return table.empty() ? "" : "\n" + table.str(0);
}

// "idle        5 columns never changed: a = 0, b = 7, ..." broken into lines.
std::string idle_columns(const Summary& summary) {
  std::vector<std::string> names;
  for (const ColumnSummary& column : summary.columns) {
    if (summary.rows != 0 && column.no_value) {
      names.push_back(printable(column.info.name) + " (it never had a value)");
    } else if (summary.rows != 0 && column.idle()) {
      names.push_back(column.first == 0
                          ? printable(column.info.name)
                          : printable(column.info.name) + " = " + with_commas(column.first));
    }
  }
  if (names.empty()) {
    return {};
  }
  names.front().insert(
      0, fmt::format("{} column{} never changed: ", names.size(), names.size() == 1 ? "" : "s"));
  return "\n" + wrapped_list("idle", names, kLabelWidth, kLineWidth);
}

// One line for each histogram, in place of one for each bucket.
std::string histogram_table(const Summary& summary, const TextOptions& options) {
  Table table(
      {{"HISTOGRAM", Align::left}, {"values"}, {"mean"}, {"p50"}, {"p90"}, {"p99"}, {"max"}});
  std::vector<std::string> before;
  for (const analysis::HistogramSummary& one : analysis::summarize_histograms(summary.columns)) {
    if (one.values_before != 0) {
      before.push_back(printable(one.metric) + " " + with_commas(one.values_before));
    }
    if (one.values == 0) {
      table.add({printable(one.metric), "0", "-", "-", "-", "-", "-"});
      continue;
    }
    const Figures figures(one.unit, options);
    // In the bucket without a bound, all that is known is that it is above the last bound; in the first
    // one, that it is not above the first.
    const auto quantile = [&](double value) {
      return value <= static_cast<double>(one.first_bound) ? "<= " + figures.whole(one.first_bound)
             : one.above_max && value > static_cast<double>(one.max) ? "> " + figures.whole(one.max)
                                                                     : figures.mean(value);
    };
    table.add({printable(one.metric), with_commas(one.values), figures.mean(one.mean),
               quantile(one.p50), quantile(one.p90), quantile(one.p99),
               (one.above_max ? "> " : "<= ") + figures.whole(one.max)});
  }
  if (table.empty()) return {};
  std::string text = "\n" + table.str(0);
  if (!before.empty()) {
    before.front().insert(0, "values that came before the first row, and are in no figure: ");
    text += wrapped_list("before", before, kLabelWidth, kLineWidth);
  }
  return text;
}

// A column for each bucket would fill the tables, and says little.
Summary without_histograms(const Summary& summary) {
  const std::vector<bool> in = analysis::in_histograms(summary.columns);
  Summary rest = summary;
  rest.columns.clear();
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) rest.columns.push_back(summary.columns[i]);
  }
  return rest;
}

std::string gap_lines(const Summary& summary) {
  if (!summary.recording.gaps || summary.recording.gaps->count == 0) {
    return {};
  }
  std::vector<Gap> gaps = summary.recording.gaps->longest;
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.ticks > b.ticks; });
  gaps.resize(std::min(gaps.size(), kMaxGaps));
  Table table({{fmt::format("GAP ({} longest of {})", gaps.size(), summary.recording.gaps->count),
                Align::left},
               {"begins"},
               {"lasts"},
               {"ticks"}});
  for (const Gap& gap : gaps) {
    table.add({analysis::to_string(gap.cause), at(gap.start_ns),
               duration(gap.end_ns - gap.start_ns), with_commas(gap.ticks)});
  }
  return "\n" + table.str(0);
}

// What kymod could not see inside a dump or restore, with the reason (docs/phases.md). Anybody may have
// written the metadata.
std::vector<std::string> not_seen(const Summary& summary) {
  std::vector<std::string> lines;
  const auto& metadata = summary.recording.metadata;
  if (!metadata || !metadata->about->is_object()) return lines;
  const auto inside = metadata->about->find("inside");
  if (inside == metadata->about->end() || !inside->is_object()) return lines;
  const auto missing = inside->find("missing");
  if (missing == inside->end() || !missing->is_array()) return lines;
  for (const auto& reason : *missing) {
    if (reason.is_string()) lines.push_back(reason.get<std::string>());
  }
  return lines;
}

// `verdicts`: what is said on top, and is not repeated.
std::string remarks(const Summary& summary, const std::vector<analysis::Verdict>& verdicts) {
  std::string text;
  for (const std::string& sentence : summary.left_out.sentences()) {
    text += line("left out", sentence);
  }
  for (const std::string& note : summary.recording.notes) {
    const bool said = std::any_of(verdicts.begin(), verdicts.end(),
                                  [&](const auto& verdict) { return verdict.text == note; });
    if (!said) text += line("note", printable(note));
  }
  for (const std::string& missing : not_seen(summary)) text += line("not seen", printable(missing));
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string text_report(const Summary& summary, const TextOptions& options) {
  const auto& metadata = summary.recording.metadata;
  std::string text = line("recording", shown_files(summary.recording));
  text += metadata ? origin(*metadata) : "";
  text += length(summary);
  text += captured(summary);
  text += metadata ? timing(*metadata) : "";
  text += metadata ? pace(*metadata) : "";
  const std::vector<analysis::Verdict> verdicts = analysis::judge(summary);
  for (const analysis::Verdict& verdict : verdicts) {
    text += line("quality",
                 std::string(analysis::to_string(verdict.level)) + ": " + printable(verdict.text));
  }
  const Summary columns = without_histograms(summary);
  text += phase_table(summary);
  text += counter_table(columns, options);
  text += rate_table(columns, options);
  text += busiest_table(columns);
  text += histogram_table(summary, options);
  text += metadata ? scope_table(*metadata) : "";
  text += gauge_table(columns, options);
  text += idle_columns(columns);
  text += gap_lines(summary);
  text += remarks(summary, verdicts);
  return text;
}

}  // namespace kymo::report
