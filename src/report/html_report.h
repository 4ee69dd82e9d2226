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
  // If a recording is too long for a page, only the rows between these times keep their single
  // samples. If empty, the rows of the phases do.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> samples;
  // A recording with more values than this is too long: its page would have about 100 MB.
  std::uint64_t most_values = 60'000'000;
  // The nonce of the scripts and styles of a page that is served. Empty if the page is a file.
  std::string nonce{};
};

// Adds a column's samples to the page, one element for each plane: `id`-0 and so on.
void add_samples(const PackedColumn& column, const std::string& id, Page& page);

// The page of a recording whose rows are packed. If `served`, the page does not hold the samples
// but requests them at /samples (RecordingView).
Result<std::string> report_page(const analysis::Summary& summary, const PackedRows& packed,
                                const std::string& nonce, bool served);

// A recording as one page that needs only a browser and no network: charts that zoom down to single
// samples, phases, gaps, the summary, the metadata and the timing tree.
//
// Errors: those of reading.
//         unimplemented if the pages are not built in (CMake option KYMO_WEB).
Result<std::string> html_report(const analysis::Summary& summary, const HtmlOptions& options);

}  // namespace kymo::report
