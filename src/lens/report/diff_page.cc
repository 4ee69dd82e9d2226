#include "lens/report/diff_page.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "lens/report/html_report.h"
#include "lens/report/json_report.h"
#include "lens/report/packed_rows.h"
#include "lens/report/page_data.h"
#include "lens/report/recording_diff.h"
#include "lens/report/web_assets.h"

namespace kymo::report {
namespace {

using Json = nlohmann::ordered_json;
using Runs = std::vector<const analysis::DiffRun*>;

Runs all_runs(const analysis::RecordingDiff& diff) {
  Runs runs;
  for (const analysis::DiffRun& run : diff.before) runs.push_back(&run);
  for (const analysis::DiffRun& run : diff.after) runs.push_back(&run);
  return runs;
}

std::uint64_t values_of(const Runs& runs) {
  std::uint64_t values = 0;
  for (const analysis::DiffRun* run : runs) {
    values += run->summary.rows * (run->summary.columns.size() + 1);
  }
  return values;
}

Json described(const analysis::DiffRun& run, bool after, const PackedRows& packed) {
  Json json = json_report({run.summary})["recordings"][0];
  json["block_rows"] = PackedRows::kBlockRows;
  json["samples_left_out"] = packed.samples_left_out;
  json["side"] = after ? "B" : "A";
  json["origin_ns"] = run.origin_ns;
  json["window_ns"] = {run.window.begin_ns, run.window.end_ns};
  return json;
}

}  // namespace

Result<std::string> diff_data(const analysis::RecordingDiff& diff,
                              std::optional<AllowedChange> allowed, std::uint64_t most_values,
                              const nlohmann::json& checkpoints) {
  // Find out whether the pages are built in before the long work.
  if (const Result<Page> page = Page::begin({}); !page) return page.error();
  const Runs runs = all_runs(diff);
  const bool whole = values_of(runs) <= most_values;
  Json json = json_of(diff, allowed);
  if (!checkpoints.is_null()) json["checkpoints"] = checkpoints;
  json["recordings"] = Json::array();
  std::vector<PackedRows> packed;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    PackRequest request;
    request.keep.emplace_back(whole ? 0 : runs[i]->window.begin_ns,
                              whole ? UINT64_MAX : runs[i]->window.end_ns);
    Result<PackedRows> rows = pack_rows(runs[i]->summary, request);
    if (!rows) return rows.error();
    json["recordings"].push_back(described(*runs[i], i >= diff.before.size(), *rows));
    packed.push_back(std::move(rows).value());
  }
  PageData data;
  data.add_data("diff", json);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    for (std::size_t k = 0; k < packed[i].columns.size(); ++k) {
      const std::string run = "r" + std::to_string(i) + "-";
      data.add_packed(run + "outline" + std::to_string(k), packed[i].columns[k].outline);
      add_samples(packed[i].columns[k], run + "samples" + std::to_string(k), data);
    }
  }
  return std::move(data).text();
}

Result<std::string> diff_page(std::string_view data) {
  Result<Page> page = Page::begin_recording(web_assets::kDiffBody);
  if (!page) return page.error();
  if (Result<void> added = add_page_data(data, web_assets::kDiffScript, *page); !added) {
    return added.error();
  }
  return std::move(*page).finish();
}

}  // namespace kymo::report
