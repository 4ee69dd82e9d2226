#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/http/server.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"
#include "lens/report/envelope.h"

namespace kymo::daemon {

// What a page asks to see of the recorder.
struct LiveRequest {
  std::shared_ptr<const RecorderRun> run;  // null: kymod has not recorded anything yet
  std::vector<report::Envelope::Column> columns;
  std::uint64_t span_ns = 0;  // 0: every row
  std::uint64_t interval_ns = 0;
  std::uint64_t from_ns = 0;  // on the recording's clock
};

// Finds the columns of a recording whose names are in `list`, separated by commas. A comma inside
// brackets is part of a name.
// Errors: invalid_argument: too many names; not_found: a column is not recorded.
Result<std::vector<report::Envelope::Column>> parse_columns(const std::string& list,
                                                            const RecordingInfo& info);

// Reads the parameters of an HTTP request:
//
//   columns     names of columns, separated by commas; empty: none
//   per_second  how many spans of time each second is divided into; 0: every row (default 100)
//   back_ns     how far back in time the samples begin (default 0)
//
// Errors: invalid_argument; not_found: a column is not recorded.
Result<LiveRequest> parse_live(const http::Request& request, const Recorder& recorder);

// The gaps of a recording that end after `from_ns`, in the form that the page reads.
nlohmann::json gaps_json(const RecorderRun& run, std::uint64_t from_ns);

// Sends the events `samples` and `requests` (docs/web.md) until the client disconnects, the server
// stops, or the recorder starts another recording or stops.
void serve_live(const Parts& parts, const LiveRequest& request, http::EventStream& events);

}  // namespace kymo::daemon
