#include "lens/report/html_report.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/recording_name.h"
#include "lens/report/flame_page.h"
#include "lens/report/json_report.h"
#include "lens/report/packed_rows.h"
#include "lens/report/page.h"
#include "lens/report/phases.h"
#include "lens/report/stack_summary.h"
#include "lens/report/web_assets.h"
#include "profiler/stacks/frame_tree.h"

namespace kymo::report {
namespace {

using Json = nlohmann::ordered_json;

PackRequest request_for(const analysis::Summary& summary, const HtmlOptions& options) {
  std::uint64_t columns = 1;
  for (const analysis::ColumnSummary& column : summary.columns) columns += column.idle() ? 0U : 1U;
  PackRequest request;
  if (summary.rows * columns <= options.most_values) {
    request.keep.emplace_back(0, UINT64_MAX);
  } else if (options.samples) {
    request.keep.push_back(*options.samples);
  } else {
    for (const diagnosis::Phase& phase : phases_of(summary)) {
      request.keep.emplace_back(phase.begin_ns, phase.end_ns);
    }
  }
  return request;
}

// The stacks that were taken beside the recording, phase by phase, if there are any.
void add_stacks(const std::string& recording, PageData& data) {
  const std::filesystem::path stem = recording_stem(recording);
  const std::string folder = stem.parent_path();
  const Result<stacks::NamedProfile> profile =
      read_stacks(folder.empty() ? "." : folder, stem.filename());
  if (!profile && profile.error().code == Code::not_found) return;
  if (!profile) return data.add_data("stacks-data", {{"error", profile.error().message}});
  Json phases = Json::array();
  for (const StackSummary::PhaseStacks& phase : summary_of(*profile, 0).phases) {
    Json json{{"name", phase.phase}, {"samples", phase.weight.samples}};
    add_tree(stacks::frame_tree(stacks::of_phase(*profile, phase.phase)), json);
    phases.push_back(std::move(json));
  }
  data.add_data(
      "stacks-data",
      {{"period_ns", profile->period_ns}, {"lost", profile->lost}, {"phases", std::move(phases)}});
}

// All data but the samples.
PageData begin_data(const analysis::Summary& summary, const PackedRows& packed, bool served) {
  PageData data;
  Json json = json_report({summary})["recordings"][0];
  json["block_rows"] = PackedRows::kBlockRows;
  json["samples_left_out"] = packed.samples_left_out;
  json["served"] = served;
  data.add_data("recording", json);
  add_stacks(summary.recording.path, data);
  // The outlines come first, because the page shows them before the rest is loaded.
  for (std::size_t i = 0; i < packed.columns.size(); ++i) {
    data.add_packed("outline" + std::to_string(i), packed.columns[i].outline);
  }
  data.add_script_here();
  return data;
}

}  // namespace

void add_samples(const PackedColumn& column, const std::string& id, PageData& data) {
  for (std::size_t plane = 0; plane < column.planes.size(); ++plane) {
    data.add_packed(id + "-" + std::to_string(plane), column.planes[plane]);
  }
}

Result<std::string> report_data(const analysis::Summary& summary, const HtmlOptions& options) {
  // Find out whether the pages are built in before the long work.
  if (const Result<Page> page = Page::begin({}); !page) return page.error();
  const Result<PackedRows> packed = pack_rows(summary, request_for(summary, options));
  if (!packed) return packed.error();
  PageData data = begin_data(summary, *packed, false);
  for (std::size_t i = 0; i < packed->columns.size(); ++i) {
    add_samples(packed->columns[i], "samples" + std::to_string(i), data);
  }
  return std::move(data).text();
}

std::string served_report_data(const analysis::Summary& summary, const PackedRows& packed) {
  return begin_data(summary, packed, true).text();
}

Result<std::string> report_page(std::string_view data, const std::string& nonce) {
  Result<Page> page = Page::begin_recording(web_assets::kBody, nonce);
  if (!page) return page.error();
  if (Result<void> added = add_page_data(data, web_assets::kScript, *page); !added) {
    return added.error();
  }
  return std::move(*page).finish();
}

}  // namespace kymo::report
