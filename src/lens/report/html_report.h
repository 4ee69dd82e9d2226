#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kymo/result.h"
#include "lens/analysis/summary.h"
#include "lens/report/packed_rows.h"
#include "lens/report/page_data.h"

namespace kymo::report {

struct HtmlOptions {
  // If a recording is too long for a page, only the rows between these times keep their single
  // samples. If empty, the rows of the phases do.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> samples;
  // A recording with more values than this is too long: its page would have about 100 MB.
  std::uint64_t most_values = 60'000'000;
};

// Adds a column's samples to the data, one element for each plane: `id`-0 and so on.
void add_samples(const PackedColumn& column, const std::string& id, PageData& data);

// The data of the page of a recording (page_data.h). To be made in a process without rights.
//
// Errors: those of reading.
//         unimplemented if the pages are not built in (CMake option KYMO_WEB).
Result<std::string> report_data(const analysis::Summary& summary, const HtmlOptions& options);
// The same of a page that does not hold the samples but requests them at /samples (RecordingView).
std::string served_report_data(const analysis::Summary& summary, const PackedRows& packed);

// A recording as one page that needs only a browser and no network: charts that zoom down to single
// samples, phases, gaps, the summary, the metadata and the timing tree. `nonce`: see Page.
//
// Errors: data_loss: `data` is not what report_data() returns; unimplemented, as above.
Result<std::string> report_page(std::string_view data, const std::string& nonce);

}  // namespace kymo::report
