#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/dump_context.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The entries that checkpoint.json has before a dump, and after it in any case.
nlohmann::json entry_of(const DumpContext& c, std::string_view state);

// For Request::explain().
diagnosis::Facts facts_of(const DumpContext& c, const Result<void>& result);
std::string images_of(const DumpContext& c);

// How long the process stood still.
void measure(DumpContext& c);

// Saves how the dump ended in the directory, the store and the recording. Errors become warnings of the request.
void conclude(DumpContext& c, const Result<void>& result);

v1::DumpResponse response_of(const DumpContext& c);

}  // namespace kymo::daemon
