#pragma once

#include <nlohmann/json.hpp>

#include "client/client.h"
#include "verbs.h"

namespace kymo::cli {

// --profiling and what belongs to it.
void add_timing_options(CLI::App& app, Context& context);

// When a request's time is shown; to the file that was asked for it goes in any case.
enum class ShowTiming : unsigned char { always, if_detailed, to_file };

// Writes the file that was asked for, and prints the tables unless JSON is printed.
void show_timing(Context& context, const client::Client::Timing& timing, ShowTiming show);
// Adds the tree to the JSON of a response, unless profiling is off.
void add_timing(const Context& context, const client::Client::Timing& timing, nlohmann::json& json);

}  // namespace kymo::cli
