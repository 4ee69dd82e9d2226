#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "analysis/summary.h"
#include "kymo/result.h"
#include "report/packed_rows.h"
#include "report/page.h"

namespace kymo::report {

struct HtmlOptions {
  // Of a recording that is too long for a page, the rows between these times keep their single
  // samples; none: those of the phases.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> samples;
  // Values that a page holds singly before it counts as too long: some 100 MB of page.
  std::uint64_t most_values = 60'000'000;
  // Of the page's scripts and styles, where it is served; empty: it is a file.
  std::string nonce{};
};

// A column's samples, an element a plane: `id`-0 and so on.
void add_samples(const PackedColumn& column, const std::string& id, Page& page);

// The page of what was packed; `served`: its samples are asked for at /samples (RecordingView).
Result<std::string> report_page(const analysis::Summary& summary, const PackedRows& packed,
                                const std::string& nonce, bool served);

// A recording as one page that needs no network and no program but a browser: charts that zoom down
// to single samples, phases, gaps, the summary, the metadata and the timing tree.
// Errors: those of reading; not built in (CMake option KYMO_WEB).
Result<std::string> html_report(const analysis::Summary& summary, const HtmlOptions& options);

}  // namespace kymo::report
