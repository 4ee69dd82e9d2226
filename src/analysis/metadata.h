#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kymo/metric.h"
#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo::analysis {

// The newest version of the recording format that is read here.
inline constexpr std::uint64_t kFormatVersion = 1;

// What a column is. Without metadata only its name is known, and `kind` is told from its values.
struct ColumnInfo {
  std::string name;
  std::string metric;
  std::string help;
  Kind kind = Kind::gauge;
  Unit unit = Unit::count;
  std::vector<std::pair<std::string, std::string>> fields;
  bool described = false;  // the metadata has it
};

// A named instant: a phase of CRIU, a step of a request.
struct Mark {
  std::string name;
  std::uint64_t at_ns = 0;  // on the clock of the rows
};

// NAME.meta.json, as far as it is there: a recorder may have been cut short at any time.
struct Metadata {  // NOLINT(bugprone-exception-escape): moving its json does not throw
  std::string kymo_version;
  std::string state;  // running, ended, recovered
  std::string clock;
  std::string host;
  std::string kernel;
  std::uint64_t interval_ns = 0;  // 0: unknown
  std::uint64_t pid = 0;
  std::string pace;           // thrifty or precise; empty: unknown
  double max_spin_share = 0;  // of the precise pace
  // What the names on /metrics begin with; none: a recording from before there was a choice.
  std::optional<std::string> prometheus_prefix;
  std::int64_t start_unix_ns = 0;
  std::uint64_t start_monotonic_ns = 0;
  std::vector<ColumnInfo> columns;
  std::optional<ProfilerStats> stats;
  std::vector<Gap> longest_gaps;
  std::vector<Mark> marks;  // by time
  // An object: request, job, target, outcome. Never null.
  std::shared_ptr<const nlohmann::json> about;
};

// Reads `path`. Errors: not_found; failed_precondition for a newer format_version, naming it;
// data_loss for what is no metadata at all. A member of the wrong type is treated as missing.
Result<Metadata> read_metadata(const std::string& path);
Result<Metadata> parse_metadata(const std::string& text, const std::string& name);

const char* to_string(Kind kind);
const char* to_string(Unit unit);
const char* to_string(MissCause cause);
std::optional<MissCause> parse_cause(std::string_view text);

}  // namespace kymo::analysis
