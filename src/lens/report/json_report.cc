#include "lens/report/json_report.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "lens/analysis/histograms.h"
#include "lens/analysis/quality.h"
#include "lens/report/phases.h"
#include "recorder/sampling/files/stats_members.h"

namespace kymo::report {
namespace {

using analysis::ColumnSummary;
using analysis::Summary;
using Json = nlohmann::ordered_json;

constexpr int kReportFormatVersion = 1;

Json column_json(const ColumnSummary& column) {
  Json json = {
      {"name", column.info.name},
      {"metric", column.info.metric},
      {"fields", Json::object()},
      {"kind", analysis::to_string(column.info.kind)},
      {"unit", column.info.described ? Json(analysis::to_string(column.info.unit)) : Json()},
      {"described", column.info.described},
      {"idle", column.idle()},
      {"first", column.first},
      {"last", column.last},
      {"min", column.min},
      {"max", column.max},
      {"mean", column.mean}};
  for (const auto& [name, value] : column.info.fields) {
    json["fields"][name] = value;
  }
  if (column.no_value) {
    json["no_value"] = true;
    for (const char* figure : {"first", "last", "min", "max", "mean"}) json[figure] = nullptr;
  } else if (column.info.kind == Kind::counter) {
    json["delta"] = column.delta;
    json["rate_per_second"] = column.rate;
    json["rate_window_ns"] = column.rate_window_ns;
    json["highest_rate_per_second"] = column.highest_rate;
    json["highest_rate_at_ns"] = column.highest_rate_at_ns;
    json["rate_percentiles"] = {{"p50", column.rates.p50},
                                {"p90", column.rates.p90},
                                {"p99", column.rates.p99},
                                {"windows", column.rates.windows},
                                {"exact", column.rates.exact}};
    json["busiest"] = {{"begin_ns", column.busiest.begin_ns},
                       {"end_ns", column.busiest.end_ns},
                       {"growth", column.busiest.growth}};
    json["falls"] = column.falls;
  }
  return json;
}

Json gap_json(const Gap& gap) {
  return {{"start_ns", gap.start_ns},
          {"end_ns", gap.end_ns},
          {"ticks", gap.ticks},
          {"cause", analysis::to_string(gap.cause)}};
}

Json capture_json(const Summary& summary) {
  const auto capture = analysis::capture_of(summary);
  if (!capture) {
    return nullptr;
  }
  Json missed;
  for (std::size_t cause = 0; cause < capture->missed.size(); ++cause) {
    missed[analysis::to_string(static_cast<MissCause>(cause))] = capture->missed.at(cause);
  }
  return {{"ticks_due", capture->ticks_due}, {"rows", capture->rows}, {"rows_gone", capture->gone},
          {"share", capture->share()},       {"missed", missed},      {"exact", capture->exact},
          {"at_most", capture->at_most}};
}

Json stats_json(const ProfilerStats& stats) {
  Json json = Json::object();
  for (const StatsMember& figure : kStatsMembers) {
    if (!figure.reported) continue;
    json[figure.name] = is_known(figure, stats) ? Json(stats.*figure.value) : Json();
  }
  return json;
}

void add_metadata(const analysis::Metadata& metadata, Json& json) {
  json["state"] = metadata.state;
  json["about"] = *metadata.about;
  if (metadata.scopes != nullptr) {
    json["scopes"] = *metadata.scopes;
    json["scope_trees_left_out"] = metadata.scope_trees_left_out;
  }
  json["host"] = metadata.host;
  json["kernel"] = metadata.kernel;
  json["pid"] = metadata.pid;
  json["clock"] = metadata.clock;
  json["interval_ns"] = metadata.interval_ns;
  json["start_unix_ns"] = metadata.start_unix_ns;
  json["start_monotonic_ns"] = metadata.start_monotonic_ns;
  json["recorder"] = metadata.stats ? stats_json(*metadata.stats) : Json();
}

void add_lists(const Summary& summary, Json& json) {
  json["phases"] = Json::array();
  for (const diagnosis::Phase& phase : phases_of(summary)) {
    json["phases"].push_back({{"name", phase.name},
                              {"begin_ns", phase.begin_ns},
                              {"end_ns", phase.end_ns},
                              {"uncertainty_ns", phase.uncertainty_ns},
                              {"evidence", phase.evidence},
                              {"frozen", phase.frozen}});
  }
  json["columns"] = Json::array();
  for (const ColumnSummary& column : summary.columns) {
    json["columns"].push_back(column_json(column));
  }
  json["histograms"] = Json::array();
  for (const analysis::HistogramSummary& one : analysis::summarize_histograms(summary.columns)) {
    json["histograms"].push_back({{"metric", one.metric},
                                  {"unit", analysis::to_string(one.unit)},
                                  {"values", one.values},
                                  {"mean", one.mean},
                                  {"p50", one.p50},
                                  {"p90", one.p90},
                                  {"p99", one.p99},
                                  {"first_bound", one.first_bound},
                                  {"max", one.max},
                                  {"above_max", one.above_max},
                                  {"values_above_max", one.values_above_max},
                                  {"values_before", one.values_before}});
  }
  json["gaps"] = Json::array();
  if (summary.recording.gaps) {
    for (const Gap& gap : summary.recording.gaps->longest) {
      json["gaps"].push_back(gap_json(gap));
    }
  }
  json["left_out"] = Json::array();
  for (const analysis::LeftOutSpan& span : summary.left_out.spans()) {
    json["left_out"].push_back(
        {{"first_line", span.first_line}, {"last_line", span.last_line}, {"reason", span.reason}});
  }
  json["left_out_lines"] = summary.left_out.lines();
  json["notes"] = summary.recording.notes;
}

Json recording_json(const Summary& summary) {
  Json json = {{"path", summary.recording.path},       {"rows", summary.rows},
               {"first_ns", summary.first_ns},         {"last_ns", summary.last_ns},
               {"duration_ns", summary.duration_ns()}, {"rate_window_ns", summary.rate_window_ns},
               {"capture", capture_json(summary)},     {"quality", Json::array()}};
  if (!summary.recording.parts.empty()) json["parts"] = summary.recording.parts;
  for (const analysis::Verdict& verdict : analysis::judge(summary)) {
    json["quality"].push_back(
        {{"level", analysis::to_string(verdict.level)}, {"text", verdict.text}});
  }
  if (summary.recording.metadata) {
    add_metadata(*summary.recording.metadata, json);
    json["finish"] = analysis::to_string(summary.recording.finish);
  }
  add_lists(summary, json);
  return json;
}

}  // namespace

Json json_report(const std::vector<Summary>& summaries) {
  Json json = {{"format_version", kReportFormatVersion}, {"recordings", Json::array()}};
  for (const Summary& summary : summaries) {
    json["recordings"].push_back(recording_json(summary));
  }
  return json;
}

}  // namespace kymo::report
