#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "checkpoint/failures/catalogue.h"
#include "checkpoint/failures/root_line.h"
#include "kymo/result.h"

namespace kymo::failures {

// Why a dump or restore failed, in words.
struct Explanation {
  std::string id;    // of the catalogue (docs/errors.md), or "unknown"
  std::string what;  // what happened, and to which file, process or mount, as far as known
  std::string why;
  std::string remedy;  // what to do
  std::string retry;   // whether it helps to repeat the request
  std::string root;    // the line of CRIU's log that names the cause
  std::string step;    // what CRIU did then
};

// Whether the error of a runtime says that its CRIU ended without a result, so that it was killed or crashed.
bool says_criu_died(std::string_view error);

// Explains a root line.
// Threads: any.
Explanation explain(const Root& root);

// The explanation on one line, for an error message: "WHAT. REMEDY (failure ID; CRIU: ROOT)".
std::string one_line(const Explanation& why);

// Several lines for a person. `log` is where the log is, if there is one.
std::string text_of(const Explanation& why, std::string_view log);

nlohmann::json to_json(const Explanation& why);

// The explanation in JSON that anybody may have written: what is no text there is empty.
Explanation from_json(const nlohmann::json& json);

// Adds to the error of a request where its time went, without a full stop, and what would have helped, which may be empty.
// of_error() puts both into the explanation.
void add_time(Error& error, const std::string& where, const std::string& advice);

// The explanation of a failed request: the one that one_line() put into its message, or that of `id`, or one of
// kymod's own failures by its code. "unknown" if there is none. `id`: what this returned before the error was
// stored without its code; may be empty.
Explanation of_error(const Error& error, std::string_view id = {});

}  // namespace kymo::failures
