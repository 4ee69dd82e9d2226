#include "lens/analysis/metadata.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.h"
#include "base/json_object.h"
#include "kymo/version.h"
#include "lens/analysis/left_out.h"
#include "recorder/metrics/unit_names.h"
#include "recorder/sampling/files/stats_members.h"

namespace kymo::analysis {
namespace {

using Json = nlohmann::json;

// More than the metadata of 4096 columns needs, which is the most that a recorder can have.
constexpr std::size_t kMaxBytes = 64 * 1024 * 1024;

constexpr std::array<const char*, 2> kKinds = {"counter", "gauge"};
constexpr std::array<const char*, 4> kCauses = {"late", "ring_full", "sink_error", "frozen"};

template <class Enum, std::size_t N>
std::optional<Enum> parse_name(const std::array<const char*, N>& names, std::string_view text) {
  const auto* found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    return std::nullopt;
  }
  return static_cast<Enum>(found - names.begin());
}

ColumnInfo column_of(const Json& json) {
  ColumnInfo column;
  column.name = text_of(json, "name");
  column.metric = text_of(json, "metric");
  column.help = text_of(json, "help");
  const auto kind = parse_name<Kind>(kKinds, text_of(json, "kind"));
  column.kind = kind.value_or(Kind::gauge);
  column.unit = parse_name<Unit>(kUnitNames, text_of(json, "unit")).value_or(Unit::count);
  column.described = kind.has_value();
  for (const auto& [name, value] : member(json, "fields").items()) {
    if (value.is_string()) {
      column.fields.emplace_back(name, value.get<std::string>());
    }
  }
  return column;
}

ProfilerStats stats_of(const Json& json) {
  ProfilerStats stats;
  for (const StatsMember& figure : kStatsMembers) {
    stats.*figure.value = number_of(json, figure.name);
  }
  // A recorder counts timing errors in buckets and writes the upper bound of a bucket. This bound
  // can be above the largest error.
  if (stats.timing_error_max_ns != 0) {
    for (std::uint64_t* const percentile :
         {&stats.timing_error_p50_ns, &stats.timing_error_p99_ns, &stats.timing_error_p999_ns}) {
      *percentile = std::min(*percentile, stats.timing_error_max_ns);
    }
  }
  return stats;
}

void read_lists(const Json& json, Metadata& metadata) {
  for (const Json& column : member(json, "columns")) {
    metadata.columns.push_back(column_of(column));
  }
  for (const Json& gap : member(json, "longest_gaps")) {
    const auto cause = parse_cause(text_of(gap, "cause"));
    if (cause) {
      metadata.longest_gaps.push_back(
          {number_of(gap, "start_ns"), number_of(gap, "end_ns"), number_of(gap, "ticks"), *cause});
    }
  }
  for (const Json& mark : member(json, "marks")) {
    if (member(mark, "at_ns").is_number_unsigned()) {
      metadata.marks.push_back({text_of(mark, "name"), number_of(mark, "at_ns")});
    }
  }
  for (const Json& error : member(json, "callback_errors")) {
    if (number_of(error, "count") == 0) continue;
    metadata.callback_errors.push_back(
        {text_of(error, "metric"), number_of(error, "count"), text_of(error, "what"),
         member(error, "negative") == Json(true), member(error, "no_value") == Json(true)});
  }
  std::stable_sort(metadata.marks.begin(), metadata.marks.end(),
                   [](const Mark& a, const Mark& b) { return a.at_ns < b.at_ns; });
}

}  // namespace

Result<Metadata> parse_metadata(const std::string& text, const std::string& name) {
  const Json json = parse_object(text);
  if (!json.is_object()) {
    return Error{Code::data_loss, "read metadata " + name + ": not a whole JSON object"};
  }
  if (!member(json, "format_version").is_number_unsigned()) {
    return Error{Code::data_loss, "read metadata " + name + ": it has no format_version"};
  }
  const std::uint64_t version = number_of(json, "format_version");
  if (version > kFormatVersion) {
    return Error{Code::failed_precondition,
                 "read metadata " + name + ": format_version " + std::to_string(version) +
                     " is newer than " + std::to_string(kFormatVersion) +
                     ", the newest that kymo " KYMO_VERSION " reads; use a newer kymo"};
  }
  Metadata metadata;
  metadata.kymo_version = text_of(json, "kymo_version");
  metadata.state = text_of(json, "state");
  metadata.clock = text_of(json, "clock");
  metadata.host = text_of(json, "host");
  metadata.kernel = text_of(json, "kernel");
  metadata.interval_ns = number_of(json, "interval_ns");
  metadata.pid = number_of(json, "pid");
  const Json& process = member(json, "process");
  metadata.process = {text_of(process, "boot_id"), number_of(process, "pid_namespace"),
                      number_of(process, "start_ticks")};
  metadata.ring_file = text_of(member(json, "ring"), "file");
  metadata.pace = text_of(json, "pace");
  const Json& spin = member(json, "max_spin_share");
  metadata.max_spin_share = spin.is_number() ? spin.get<double>() : 0;
  if (const Json& prefix = member(json, "prometheus_prefix"); prefix.is_string()) {
    metadata.prometheus_prefix = prefix.get<std::string>();
  }
  const Json& start = member(json, "start_unix_ns");
  metadata.start_unix_ns = start.is_number_integer() ? start.get<std::int64_t>() : 0;
  metadata.start_monotonic_ns = number_of(json, "start_monotonic_ns");
  if (member(json, "stats").is_object()) {
    metadata.stats = stats_of(member(json, "stats"));
  }
  const Json& part = member(json, "part");
  metadata.part = number_of(part, "number");
  metadata.previous_part = text_of(part, "previous");
  metadata.next_part = text_of(part, "next");
  const Json& about = member(json, "about");
  if (about.is_object()) metadata.about = std::make_shared<const Json>(about);
  if (const Json& scopes = member(json, "scopes"); scopes.is_array()) {
    metadata.scopes = std::make_shared<const Json>(scopes);
    for (const Json& tree : scopes) {
      metadata.scopes_left_out += number_of(tree, "scopes_left_out");
    }
  }
  metadata.scope_trees_left_out = number_of(json, "scope_trees_left_out");
  read_lists(json, metadata);
  return metadata;
}

std::shared_ptr<const Json> no_about() {
  static const auto kEmpty = std::make_shared<const Json>(Json::object());
  return kEmpty;
}

Result<Metadata> read_metadata(const std::string& path) {
  const Result<std::string> text = read_file(path, kMaxBytes);
  if (!text) {
    return Error{text.error().code, "read metadata: " + text.error().message,
                 text.error().errno_value};
  }
  return parse_metadata(*text, path);
}

const char* to_string(Kind kind) {
  return kKinds.at(static_cast<std::size_t>(kind));
}
const char* to_string(Unit unit) {
  return unit_name(unit);
}
const char* to_string(MissCause cause) {
  return kCauses.at(static_cast<std::size_t>(cause));
}

std::optional<MissCause> parse_cause(std::string_view text) {
  return parse_name<MissCause>(kCauses, text);
}

}  // namespace kymo::analysis
