#include "lens/analysis/annotated_lines.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"

namespace kymo::analysis {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPrefix = "GVISOR_METRICS\t";
constexpr std::string_view kMeta = "META\t";
constexpr std::string_view kStart = "START_TIME\t";
constexpr std::string_view kStats = "STATS\t";
constexpr std::string_view kSum = "ADLER32\t";
constexpr std::string_view kTime = "Time (ns)";
constexpr std::string_view kChecksum = "\tChecksum";

template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint32_t> parse_sum(std::string_view text) {
  return text.starts_with("0x") ? parse_number<std::uint32_t>(text.substr(2), 16) : std::nullopt;
}

std::string string_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The number called `key`, or `key` with the suffix. 0 if there is neither.
std::uint64_t number_of(const Json& json, const std::string& key, const char* suffix = "_nanos") {
  for (const std::string& name : {key, key + suffix}) {
    const auto found = json.find(name);
    if (found != json.end() && found->is_number_unsigned()) {
      return found->get<std::uint64_t>();
    }
  }
  return 0;
}

Unit unit_of(const std::string& name, const std::string& units) {
  if (units == "UNITS_NANOSECONDS" || name.ends_with("_ns")) {
    return Unit::nanoseconds;
  }
  if (name.ends_with("_us")) {
    return Unit::microseconds;
  }
  return name.ends_with("_bytes") ? Unit::bytes : Unit::count;
}

}  // namespace

bool AnnotatedLines::begins_plain(std::string_view line) {
  return line.starts_with(kMeta) || line.starts_with(kStart);
}

bool AnnotatedLines::is_lossy(std::string_view line) {
  return line.find(kPrefix) != line.npos;
}

AnnotatedLines::Line AnnotatedLines::classify(std::string_view line) {
  // If there are several prefixes, the last one counts: text before it is a line that was cut off.
  const std::size_t prefix = line.rfind(kPrefix);
  if (prefix == line.npos) {
    return lossy_ || line.empty() ? Line{} : classify_own(line);
  }
  lossy_ = true;
  line.remove_prefix(prefix + kPrefix.size());
  if (line.starts_with(kSum)) {
    expected_sum_ = parse_sum(line.substr(kSum.size()));
    closed_ = true;
    return expected_sum_ ? Line{}
                         : Line{Kind::damaged, {}, "the checksum over all lines is not a number"};
  }
  const std::size_t tab = line.rfind('\t');
  const auto expected = tab == line.npos ? std::nullopt : parse_sum(line.substr(tab + 1));
  const std::string_view text = line.substr(0, tab);
  if (!expected || *expected != adler32(text)) {
    return {Kind::damaged, {}, expected ? "its checksum does not match" : "it has no checksum"};
  }
  if (!closed_) {
    sum_.add(line);
    sum_.add("\n");
  }
  return classify_own(text);
}

AnnotatedLines::Line AnnotatedLines::classify_own(std::string_view text) {
  if (closed_) {
    followed_ = followed_ || begins_plain(text);
    return {};
  }
  if (text.starts_with(kMeta)) {
    return read_meta(text.substr(kMeta.size()))
               ? Line{}
               : Line{Kind::damaged, {}, "not the JSON of a metric"};
  }
  if (text.starts_with(kStart)) {
    const auto start = parse_number<std::int64_t>(text.substr(kStart.size()));
    metadata_.start_unix_ns = start.value_or(0);
    return start ? Line{} : Line{Kind::damaged, {}, "the start time is not a number"};
  }
  if (text.starts_with(kStats)) {
    closed_ = !lossy_;
    return read_stats(text.substr(kStats.size()))
               ? Line{}
               : Line{Kind::damaged, {}, "not the JSON of statistics"};
  }
  if (!header_seen_ && text.starts_with(kTime)) {
    header_seen_ = true;
    if (lossy_ && text.ends_with(kChecksum)) {
      text.remove_suffix(kChecksum.size());
    }
    read_header(text);
    return {Kind::header, text, {}};
  }
  return header_seen_ ? Line{Kind::row, text, {}} : Line{};
}

void AnnotatedLines::read_header(std::string_view header) {
  while (!header.empty()) {
    const std::size_t tab = header.find('\t');
    header.remove_prefix(tab == header.npos ? header.size() : tab + 1);
    const std::string_view name = header.substr(0, header.find('\t'));
    const std::size_t bracket = name.find('[');
    const auto known = metrics_.find(name.substr(0, bracket));
    if (name.empty() || known == metrics_.end()) {
      continue;
    }
    ColumnInfo column = known->second;
    column.name = name;
    if (bracket != name.npos && name.ends_with(']')) {
      std::string_view values = name.substr(bracket + 1, name.size() - bracket - 2);
      for (const std::string& field : field_names_[column.metric]) {
        const std::size_t comma = values.find(',');
        column.fields.emplace_back(field, values.substr(0, comma));
        values.remove_prefix(comma == values.npos ? values.size() : comma + 1);
      }
    }
    metadata_.columns.push_back(std::move(column));
  }
}

bool AnnotatedLines::read_meta(std::string_view text) {
  const std::size_t tab = text.find('\t');
  if (tab == text.npos) {
    return false;
  }
  const Json json = parse_json(text.substr(tab + 1));
  if (!json.is_object()) {
    return false;
  }
  ColumnInfo column;
  column.metric = text.substr(0, tab);
  column.help = string_at(json, "description");
  const auto cumulative = json.find("cumulative");
  column.kind =
      cumulative != json.end() && *cumulative == true ? kymo::Kind::counter : kymo::Kind::gauge;
  column.unit = unit_of(column.metric, string_at(json, "units"));
  column.described = true;
  if (const auto fields = json.find("fields"); fields != json.end() && fields->is_array()) {
    for (const Json& field : *fields) {
      if (field.is_object()) {
        field_names_[column.metric].push_back(string_at(field, "fieldName"));
      }
    }
  }
  metrics_.insert_or_assign(column.metric, column);
  return true;
}

bool AnnotatedLines::read_stats(std::string_view text) {
  const Json json = parse_json(text);
  if (!json.is_object()) {
    return false;
  }
  ProfilerStats stats;
  stats.rows_captured = stats.rows_written = number_of(json, "total_snapshots");
  stats.timing_error_ns = number_of(json, "total_sleep_timing_error");
  stats.sample_window_ns = number_of(json, "total_collection_timing_error");
  stats.backoffs = number_of(json, "num_backoff_sleeps");
  stats.backoff_ns = number_of(json, "total_backoff_sleep");
  metadata_.interval_ns = number_of(json, "collection_rate");
  metadata_.start_monotonic_ns = number_of(json, "cheap_start_nanos");
  const std::uint64_t last = number_of(json, "cheap_last_collection_nanos");
  stats.duration_ns = last - std::min(last, metadata_.start_monotonic_ns);
  stats.ticks_due = stats.rows_captured;
  if (metadata_.interval_ns != 0) {
    stats.ticks_due = std::max(stats.ticks_due, stats.duration_ns / metadata_.interval_ns);
  }
  // The format does not say why a tick was missed. It says how long the collector slept because the
  // ring was full, and the other ticks were late.
  const std::uint64_t missed = stats.ticks_due - stats.rows_captured;
  if (metadata_.interval_ns != 0) {
    stats.missed_ring_full = std::min(missed, stats.backoff_ns / metadata_.interval_ns);
  }
  stats.missed_late = missed - stats.missed_ring_full;
  metadata_.stats = stats;
  metadata_.state = "ended";
  return true;
}

void AnnotatedLines::finish() {
  notes_.clear();  // finish() may be called more than once
  if (!metadata_.stats) {
    metadata_.state = "running";
  }
  if (expected_sum_ && *expected_sum_ != sum_.value()) {
    notes_.emplace_back("the checksum over all lines does not match: the log has lost some");
  }
  if (followed_) {
    notes_.emplace_back("another recording follows in the file and was left out");
  }
}

}  // namespace kymo::analysis
