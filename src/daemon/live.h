#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "daemon/parts.h"
#include "http/server.h"
#include "kymo/result.h"
#include "report/envelope.h"

namespace kymo::daemon {

// What a page asks to see of the recorder's columns.
struct LiveRequest {
  std::shared_ptr<const RecorderRun> run;  // null: nothing was ever recorded
  std::vector<report::Envelope::Column> columns;
  std::uint64_t span_ns = 0;  // 0: every row
  std::uint64_t from_ns = 0;  // on the recording's clock
};

// Names with commas between them as columns of a recording. Errors: invalid_argument for too many;
// not_found for one that is not recorded.
Result<std::vector<report::Envelope::Column>> parse_columns(const std::string& list,
                                                            const RecordingInfo& info);

// `columns`: names with commas between them (a comma in a name is within brackets), empty: none;
// `per_second`: how many spans, 0: every row (100); `back_ns`: how far back it begins (0). Errors:
// invalid_argument; not_found for a column that is not recorded.
Result<LiveRequest> parse_live(const http::Request& request, const Recorder& recorder);

// The gaps of a recording that end after `from_ns`, as the page has them.
nlohmann::json gaps_json(const RecorderRun& run, std::uint64_t from_ns);

// Sends the events `samples` and `requests` (docs/web.md) until the client goes, the server stops,
// or what is recorded changes.
void serve_live(const Parts& parts, const LiveRequest& request, http::EventStream& events);

}  // namespace kymo::daemon
