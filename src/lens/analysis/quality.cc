#include "lens/analysis/quality.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "base/human.h"
#include "lens/analysis/histograms.h"

namespace kymo::analysis {
namespace {

// Thresholds for a warning: beyond them, a recording can mislead.
constexpr double kCaptureWarning = 0.99;
constexpr double kCaptureBad = 0.90;
constexpr double kTimingWarning = 0.10;   // mean timing error, in intervals
constexpr double kBackoffWarning = 0.05;  // share of the time slept because the ring was full
constexpr double kGapShare = 0.01;        // of the recording's length, in one gap
constexpr std::uint64_t kGapTicks = 10;   // shorter gaps count only as missed ticks
constexpr double kAboveBounds = 0.01;     // share of a histogram's values: its p99 is not known
constexpr std::uint64_t kFirstNegative = std::uint64_t{1} << 63;

constexpr std::array<const char*, 4> kAdvice = {
    "the collector ran late: lower the rate, or give it a core",
    "the ring was full: give it more slots, or a faster disk",
    "rows could not be kept: see that the disk has space, and that nothing removes or cuts off the "
    "file",
    "the program stood still: it was checkpointed or stopped, or its machine paused",
};

// What to do about missed ticks. If most late ticks had to wait for a sample, neither a lower rate
// nor a core helps much.
std::string advice_on(std::size_t cause, const Summary& summary) {
  const auto& metadata = summary.recording.metadata;
  if (cause == static_cast<std::size_t>(MissCause::late) && metadata && metadata->stats &&
      metadata->stats->late_sample > metadata->stats->missed_late / 2) {
    return "samples took too long, probably because a callback of a metric is slow or waits: let "
           "it read a value that the program keeps in a std::atomic";
  }
  return kAdvice.at(cause);
}

// Whether the metadata count the rows of the whole recording. A recorder that was cut short, or that
// could not finish, wrote rows after its last totals.
bool counts_all_rows(const Metadata& metadata) {
  return metadata.stats && metadata.stats->rows_written != 0 && metadata.state != "running" &&
         metadata.state != "failed";
}

// The rows that are in the file are true, because every figure is made of them.
void judge_row_count(const Capture& capture, const Summary& summary,
                     std::vector<Verdict>& verdicts) {
  const auto text = [&](std::uint64_t counted) {
    return "its metadata count " + human::with_commas(counted) + (counted == 1 ? " row" : " rows") +
           ", and the file holds " + human::with_commas(summary.rows);
  };
  if (capture.gone != 0) {
    verdicts.push_back({Verdict::Level::bad,
                        text(capture.rows + capture.gone) +
                            ": it was cut off, changed or damaged after it was recorded, and no "
                            "figure includes the rows that are gone"});
    return;
  }
  const auto& metadata = summary.recording.metadata;
  // Of rows that somebody cut off, which its recorder counts as missed, some can still be there.
  if (metadata && counts_all_rows(*metadata) &&
      metadata->stats->rows_written + metadata->stats->missed_sink_error < summary.rows) {
    verdicts.push_back({Verdict::Level::warning,
                        text(metadata->stats->rows_written) +
                            ": the metadata are probably those of another recording; all figures "
                            "but the captured ticks are of the rows in the file"});
  }
}

void judge_capture(const Capture& capture, const Summary& summary, std::vector<Verdict>& verdicts) {
  // Of the rows that are gone, judge_row_count() tells.
  Capture recorded = capture;
  recorded.rows += capture.gone;
  if (recorded.share() >= kCaptureWarning) {
    return;
  }
  std::size_t main_cause = 0;
  for (std::size_t cause = 1; cause < capture.missed.size(); ++cause) {
    main_cause = capture.missed[cause] > capture.missed[main_cause] ? cause : main_cause;
  }
  const std::string how_many =
      capture.gone == 0
          ? "only " + human::percent(recorded.share()) + " of the ticks left a row"
          : human::with_commas(capture.ticks_due - recorded.rows) + " ticks never left a row";
  verdicts.push_back(
      {recorded.share() < kCaptureBad ? Verdict::Level::bad : Verdict::Level::warning,
       how_many + ": " + advice_on(main_cause, summary)});
}

// Warns about a long gap, which hides a part of what happened even if most ticks left a row.
void judge_gaps(const Summary& summary, std::vector<Verdict>& verdicts) {
  if (!summary.recording.gaps || summary.recording.gaps->longest.empty()) return;
  const std::vector<Gap>& gaps = summary.recording.gaps->longest;
  const Gap& longest = *std::max_element(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) {
    return a.end_ns - a.start_ns < b.end_ns - b.start_ns;
  });
  const auto ns = static_cast<double>(longest.end_ns - longest.start_ns);
  if (longest.ticks < kGapTicks || ns < kGapShare * static_cast<double>(summary.duration_ns())) {
    return;
  }
  verdicts.push_back({Verdict::Level::warning,
                      "nothing was recorded for " + human::duration(ns) + " from " +
                          human::duration(longest.start_ns) +
                          " on: " + advice_on(static_cast<std::size_t>(longest.cause), summary)});
}

void judge_stats(const Metadata& metadata, std::vector<Verdict>& verdicts) {
  const ProfilerStats& stats = *metadata.stats;
  if (stats.rows_captured != 0 && metadata.interval_ns != 0) {
    const double error = static_cast<double>(stats.timing_error_ns) /
                         static_cast<double>(stats.rows_captured) /
                         static_cast<double>(metadata.interval_ns);
    if (error > kTimingWarning) {
      verdicts.push_back(
          {Verdict::Level::warning,
           "samples came " + human::percent(error) +
               " of an interval late on average: use the precise pace or a lower rate"});
    }
  }
  const double backoff = stats.duration_ns == 0 ? 0
                                                : static_cast<double>(stats.backoff_ns) /
                                                      static_cast<double>(stats.duration_ns);
  if (backoff > kBackoffWarning) {
    verdicts.push_back({Verdict::Level::warning, "the collector waited " + human::percent(backoff) +
                                                     " of the time because " + kAdvice[1]});
  }
}

std::string callback_text(const CallbackError& error) {
  constexpr std::size_t kLength = 200;
  const std::string times =
      std::to_string(error.count) + (error.count == 1 ? " time" : " times") +
      (error.what.empty() ? "" : " (last: " + error.what.substr(0, kLength) + ")");
  return error.negative
             ? "values of " + error.metric + " are probably negative: they were 2^63 or more " +
                   times
             : "the callback of " + error.metric + " has thrown " + times +
                   (error.no_value ? ": it has never returned a value, so its columns are 0"
                                   : ": its columns kept their last values meanwhile");
}

constexpr const char* kNotFinished =
    "its recorder could not finish it: rows, gaps and totals may be missing; see that its disk has "
    "space";

std::string left_out_text(std::uint64_t lines) {
  return std::to_string(lines) + (lines == 1 ? " line" : " lines") +
         " could not be read, so no figure includes them: see what was left out, and whether the "
         "disk was full or the recorder killed";
}

// A few of the callbacks that have thrown or returned negative values, and how many more there are.
void judge_callbacks(const Metadata& metadata, std::vector<Verdict>& verdicts) {
  constexpr std::size_t kShown = 5;
  const std::size_t all = metadata.callback_errors.size();
  for (std::size_t i = 0; i < std::min(all, kShown); ++i) {
    std::string text = callback_text(metadata.callback_errors[i]);
    if (i + 1 == kShown && all > kShown) {
      text += "; callback_errors in the metadata has " + std::to_string(all - kShown) + " more";
    }
    verdicts.push_back({Verdict::Level::warning, std::move(text)});
  }
}

// Counters to which a number below zero was added, such as a difference of two clocks: it counts as
// itself + 2^64, so the counter is then 2^63 or more, or goes back.
void judge_counters(const Summary& summary, std::vector<Verdict>& verdicts) {
  constexpr std::size_t kShown = 5;
  std::size_t found = 0;
  for (const ColumnSummary& column : summary.columns) {
    const bool fell = column.info.described && column.falls != 0;
    if (column.info.kind != Kind::counter || (column.max < kFirstNegative && !fell)) continue;
    if (++found > kShown) continue;
    verdicts.push_back(
        {Verdict::Level::warning,
         "the counter " + column.info.name +
             (column.max >= kFirstNegative ? " was 2^63 or more" : " goes back") +
             ": a number below zero was probably added or recorded, or its callback returned less "
             "than before, so its rates, and the mean of its histogram, are wrong; check for it "
             "before, or register what may fall as a gauge"});
  }
  if (found > kShown) {
    verdicts.back().text += "; so are " + std::to_string(found - kShown) + " more";
  }
}

// Histograms whose bounds are too low for their values.
void judge_histograms(const Summary& summary, std::vector<Verdict>& verdicts) {
  constexpr std::size_t kShown = 5;
  std::size_t found = 0;
  for (const HistogramSummary& one : summarize_histograms(summary.columns)) {
    if (one.values == 0) continue;
    const double share =
        static_cast<double>(one.values_above_max) / static_cast<double>(one.values);
    if (share < kAboveBounds || ++found > kShown) continue;
    verdicts.push_back({Verdict::Level::warning,
                        human::percent(share) + " of the values of " + one.metric +
                            " are above its highest bound (" + std::to_string(one.max) +
                            "), so its high quantiles are not known: give it higher bounds"});
  }
  if (found > kShown) {
    verdicts.back().text += "; so need " + std::to_string(found - kShown) + " more histograms";
  }
}

bool has_failed(const Summary& summary) {
  return summary.recording.metadata && summary.recording.metadata->state == "failed";
}

// Why a recording holds no rows.
std::string why_empty(const Summary& summary) {
  const auto& metadata = summary.recording.metadata;
  const std::uint64_t refused =
      metadata && metadata->stats ? metadata->stats->missed_sink_error : 0;
  if (refused != 0) {
    return "its disk did not take " + std::to_string(refused) + (refused == 1 ? " row" : " rows") +
           ": see that it has space";
  }
  if (metadata && counts_all_rows(*metadata)) {
    return "its metadata count " + human::with_commas(metadata->stats->rows_written) +
           ", so it was cut off or changed after it was recorded";
  }
  if (has_failed(summary)) {
    return "its recorder could not write them: see that its disk has space";
  }
  return "the recorder was stopped or killed before its first was written";
}

}  // namespace

std::optional<Capture> capture_of(const Summary& summary) {
  const auto& metadata = summary.recording.metadata;
  const auto& gaps = summary.recording.gaps;
  Capture capture;
  capture.at_most = has_failed(summary);
  std::array<std::uint64_t, 4> counted{};
  if (metadata && metadata->stats && metadata->state != "running") {
    const ProfilerStats& stats = *metadata->stats;
    counted = {stats.missed_late, stats.missed_ring_full, stats.missed_sink_error,
               stats.missed_frozen};
    if (!capture.at_most) {
      capture.ticks_due = stats.ticks_due;
      capture.rows = std::min(stats.rows_written, summary.rows);
      capture.gone = stats.rows_written - capture.rows;
      capture.missed = counted;
      capture.exact = true;
      return capture;
    }
  }
  // A recorder that was cut short, or that could not finish, wrote rows after its last totals.
  capture.rows = summary.rows;
  capture.missed = gaps ? gaps->ticks_by_cause : counted;
  for (std::size_t cause = 0; cause < counted.size(); ++cause) {
    capture.missed.at(cause) = std::max(capture.missed.at(cause), counted.at(cause));
  }
  const std::uint64_t missed =
      std::accumulate(capture.missed.begin(), capture.missed.end(), std::uint64_t{0});
  if (!gaps && missed == 0) {
    return std::nullopt;
  }
  capture.ticks_due = capture.rows + missed;
  // It may have ended before it listed a gap.
  const std::uint64_t interval_ns = metadata && summary.rows != 0 ? metadata->interval_ns : 0;
  const std::uint64_t passed =
      interval_ns == 0 ? 0 : summary.last_ns / interval_ns - summary.first_ns / interval_ns + 1;
  if (passed > capture.ticks_due) {
    capture.missed.at(static_cast<std::size_t>(MissCause::late)) += passed - capture.ticks_due;
    capture.ticks_due = passed;
  }
  return capture;
}

std::string large_miss(const Summary& summary) {
  const std::optional<Capture> capture = capture_of(summary);
  if (!capture || capture->share() >= kCaptureBad) return {};
  return "only " + human::percent(capture->share()) + " of its ticks left a row";
}

std::vector<std::string> what_is_missing(const Summary& summary,
                                         const std::vector<std::string>& metrics) {
  std::vector<std::string> missing;
  const auto& metadata = summary.recording.metadata;
  if (summary.recording.finish != Finish::ended) {
    missing.push_back(sentence_of(summary.recording.finish, *metadata));
  }
  if (has_failed(summary)) missing.emplace_back(kNotFinished);
  if (const auto capture = capture_of(summary)) {
    std::vector<Verdict> counted;
    judge_row_count(*capture, summary, counted);
    for (Verdict& verdict : counted) missing.push_back(std::move(verdict.text));
    for (const MissCause cause : {MissCause::ring_full, MissCause::sink_error}) {
      const std::uint64_t lost = capture->missed.at(static_cast<std::size_t>(cause));
      if (lost == 0) continue;
      missing.push_back(human::with_commas(lost) + (lost == 1 ? " row was" : " rows were") +
                        " lost: " + kAdvice.at(static_cast<std::size_t>(cause)));
    }
  }
  if (const std::uint64_t lines = summary.left_out.lines(); lines != 0) {
    missing.push_back(left_out_text(lines));
  }
  if (!metadata) return missing;
  const auto compared = [&](const std::string& metric) {
    return metrics.empty() || std::any_of(metrics.begin(), metrics.end(), [&](const auto& name) {
             return name.starts_with(metric);
           });
  };
  for (const CallbackError& error : metadata->callback_errors) {
    if (compared(error.metric)) missing.push_back(callback_text(error));
  }
  for (const ColumnSummary& column : summary.columns) {
    const std::string said = falls_text(column);
    if (!said.empty() && compared(column.info.metric)) {
      missing.push_back(said + ": how much it grew is not known");
    }
  }
  return missing;
}

std::vector<Verdict> judge(const Summary& summary) {
  std::vector<Verdict> verdicts;
  if (const Finish finish = summary.recording.finish; finish != Finish::ended) {
    verdicts.push_back({Verdict::Level::warning, sentence_of(finish, *summary.recording.metadata)});
  }
  for (const std::string& note : summary.recording.notes) {
    if (is_incomplete_sentence(note)) verdicts.push_back({Verdict::Level::warning, note});
  }
  if (summary.rows == 0) {
    verdicts.push_back({Verdict::Level::bad, "it holds no rows: " + why_empty(summary)});
    return verdicts;
  }
  if (has_failed(summary)) {
    verdicts.push_back({Verdict::Level::bad, kNotFinished});
  }
  if (const auto capture = capture_of(summary)) {
    judge_row_count(*capture, summary, verdicts);
    judge_capture(*capture, summary, verdicts);
  } else {
    verdicts.push_back(
        {Verdict::Level::warning,
         "how many ticks were missed is unknown: keep .meta.json and .gaps.tsv beside "
         "the .tsv"});
  }
  if (summary.rows == 1) {
    verdicts.push_back({Verdict::Level::warning,
                        "it has only one row, so nothing can be compared: what was counted before "
                        "that row is in no figure"});
  }
  judge_gaps(summary, verdicts);
  if (const auto& metadata = summary.recording.metadata; metadata && metadata->stats) {
    judge_stats(*metadata, verdicts);
  }
  if (summary.recording.metadata) judge_callbacks(*summary.recording.metadata, verdicts);
  judge_counters(summary, verdicts);
  judge_histograms(summary, verdicts);
  if (const std::uint64_t lines = summary.left_out.lines(); lines != 0) {
    verdicts.push_back({Verdict::Level::warning, left_out_text(lines)});
  }
  if (verdicts.empty()) {
    verdicts.push_back({Verdict::Level::good, "no problem was found"});
  }
  return verdicts;
}

const char* to_string(Verdict::Level level) {
  switch (level) {
    case Verdict::Level::good:
      return "good";
    case Verdict::Level::warning:
      return "warning";
    case Verdict::Level::bad:
      return "bad";
  }
  return "";
}

}  // namespace kymo::analysis
