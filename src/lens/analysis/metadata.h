#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/process_identity.h"
#include "kymo/metric.h"
#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo::analysis {

// The newest version of the recording format that this code can read.
inline constexpr std::uint64_t kFormatVersion = 1;

// Describes a column. Without metadata only the name is known, and `kind` is guessed from the
// values.
struct ColumnInfo {
  std::string name;
  std::string metric;
  std::string help;
  Kind kind = Kind::gauge;
  Unit unit = Unit::count;
  std::vector<std::pair<std::string, std::string>> fields;
  bool described = false;  // by the metadata
};

// A named point in time: a phase of CRIU, or a step of a request.
struct Mark {
  std::string name;
  std::uint64_t at_ns = 0;  // on the clock of the rows
};

// An empty object.
std::shared_ptr<const nlohmann::json> no_about();

// The content of NAME.meta.json. Members may be missing, because a recorder can be killed at any
// time.
struct Metadata {  // NOLINT(bugprone-exception-escape): moving its json does not throw
  std::string kymo_version;
  std::string state;  // running, ended, failed, recovered
  std::string clock;
  std::string host;
  std::string kernel;
  std::uint64_t interval_ns = 0;  // 0: unknown
  std::uint64_t pid = 0;
  ProcessIdentity process;    // what else identifies it; unknown in an older recording
  std::string ring_file;      // of the memory between sampling and writing; empty: none
  std::string pace;           // thrifty or precise; empty: unknown
  double max_spin_share = 0;  // of the precise pace
  // What the names on /metrics begin with. Nothing if the recording is older than this option.
  std::optional<std::string> prometheus_prefix;
  std::int64_t start_unix_ns = 0;
  std::uint64_t start_monotonic_ns = 0;
  std::vector<ColumnInfo> columns;
  std::optional<ProfilerStats> stats;
  std::vector<Gap> longest_gaps;
  std::vector<Mark> marks;  // by time
  std::vector<CallbackError> callback_errors;
  // If this is one part of a recording: its number, and the file names of its neighbours. A name is
  // empty if there is none.
  std::uint64_t part = 0;
  std::string previous_part;
  std::string next_part;
  // A JSON object with the request, job, target and outcome. The pointer is never null.
  std::shared_ptr<const nlohmann::json> about = no_about();
  // The trees of scopes that the program has made, a JSON array. Null: none.
  std::shared_ptr<const nlohmann::json> scopes;
  std::uint64_t scope_trees_left_out = 0;
  std::uint64_t scopes_left_out = 0;  // that had no room in the trees
};

// Reads `path`. A member of the wrong type is treated as missing.
//
// Errors: not_found.
//         failed_precondition for a newer format_version, naming it.
//         data_loss if the file does not hold metadata.
Result<Metadata> read_metadata(const std::string& path);
Result<Metadata> parse_metadata(const std::string& text, const std::string& name);

const char* to_string(Kind kind);
const char* to_string(Unit unit);
const char* to_string(MissCause cause);
std::optional<MissCause> parse_cause(std::string_view text);

}  // namespace kymo::analysis
