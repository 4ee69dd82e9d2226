#pragma once

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json_text.h"
#include "checkpoints/podman_stats.h"
#include "client/client.h"
#include "messages.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {

// Adds --profiling and the options that belong to it.
void add_timing_options(CLI::App& app, Context& context);

// What is shown of the timing of a request, if the user asked for it: that of one that failed only with -v or
// --profiling-detailed. If the user named a file, it is written in any case.
enum class ShowTiming : unsigned char { of_success, of_failure, to_file };

// Writes the file, if the user named one, and prints the tables, unless JSON is printed.
void show_timing(Context& context, const client::Client::Timing& timing, ShowTiming show);
// Adds the tree to the JSON of a response, unless profiling is off.
void add_timing(const Context& context, const client::Client::Timing& timing, nlohmann::json& json);

// Shows the result and the timing of a dump or restore: for a person with `print`, as JSON, or, if
// `print_stats`, like podman's --print-stats. `target`: the target as the user gave it. `failure`:
// why it failed.
template <class Response, class Print>
void show_outcome(Context& context, const Result<Response>& response,
                  const client::Client::Timing& timing, const v1::Failure& failure,
                  const std::string& target, bool print_stats, const Print& print) {
  if (!response) {
    fail(context, response.error());
    if (context.json && !print_stats) print_json(failed_json(response.error(), failure));
    return show_timing(context, timing, ShowTiming::of_failure);
  }
  for (const std::string& warning : response->warnings()) say(warning);
  if (context.quiet) return show_timing(context, timing, ShowTiming::to_file);
  if (print_stats) {
    std::cout << json_text(podman_stats(*response, target), 4) << '\n';
    return show_timing(context, timing, ShowTiming::to_file);
  }
  if (context.json) {
    nlohmann::json json = to_json(*response);
    add_timing(context, timing, json);
    print_json(json);
  } else {
    print(*response);
  }
  show_timing(context, timing, ShowTiming::of_success);
}

}  // namespace kymo::cli
