#include "recorder/sampling/files/annotated_format.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_text.h"
#include "recorder/metrics/exposition_name.h"
#include "recorder/sampling/files/tsv_format.h"

namespace kymo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kLossyPrefix = "GVISOR_METRICS\t";

// Follows protobuf's JSON mapping: a field with its default value is left out.
Json describe_metric(const Metric& metric, std::string_view prefix) {
  Json json = {{"name", metric.name}, {"prometheusName", exposition_name(metric, prefix)}};
  if (!metric.help.empty()) {
    json["description"] = metric.help;
  }
  if (metric.kind == Kind::counter) {
    json["cumulative"] = true;
  }
  if (metric.unit == Unit::nanoseconds) {  // the only unit that the format knows
    json["units"] = "UNITS_NANOSECONDS";
  }
  for (const Field& field : metric.fields) {
    json["fields"].push_back({{"fieldName", field.name}, {"allowedValues", field.values}});
  }
  return json;
}

void append_checksum(std::string& out, const Adler32& sum) {
  std::array<char, 8> hex{};
  const auto [end, error] = std::to_chars(hex.data(), hex.data() + hex.size(), sum.value(), 16);
  out += "0x";
  out.append(hex.data(), end);
}

}  // namespace

std::string annotated_header(const RecordingInfo& info, AnnotatedFormat format) {
  std::string text;
  std::vector<std::string_view> described;
  for (const Column& column : info.columns) {
    const std::string_view name = column.metric->name;
    if (described.empty() || described.back() != name) {  // the columns of a metric are adjacent
      described.push_back(name);
      text += "META\t" + column.metric->name + '\t' +
              json_text(describe_metric(*column.metric, info.prometheus_prefix)) + '\n';
    }
  }
  text += "START_TIME\t" + std::to_string(info.start_unix_ns) + '\n';
  std::string header = tsv_header(info.columns);
  if (format == AnnotatedFormat::lossy) {
    header.insert(header.size() - 1, "\tChecksum");
  }
  return text + header;
}

std::string annotated_stats(const RecordingInfo& info, const ProfilerStats& stats) {
  // Four of the figures have two names. A reader that knows either of them finds it.
  const Json json = {{"collection_rate", info.interval.count()},
                     {"collection_rate_nanos", info.interval.count()},
                     {"cheap_start_nanos", info.start_monotonic_ns},
                     {"cheap_last_collection_nanos", info.start_monotonic_ns + stats.duration_ns},
                     {"total_snapshots", stats.rows_captured},
                     {"total_sleep_timing_error", stats.timing_error_ns},
                     {"total_sleep_timing_error_nanos", stats.timing_error_ns},
                     {"total_collection_timing_error", stats.sample_window_ns},
                     {"total_collection_timing_error_nanos", stats.sample_window_ns},
                     {"num_backoff_sleeps", stats.backoffs},
                     {"total_backoff_sleep", stats.backoff_ns},
                     {"total_backoff_sleep_nanos", stats.backoff_ns}};
  return "STATS\t" + json_text(json) + '\n';
}

std::string_view LossyLines::wrap(std::string_view lines) {
  piece_ = '\n';
  all_with_piece_ = all_;
  for (std::size_t end = 0; (end = lines.find('\n')) != lines.npos;) {
    const std::string_view line = lines.substr(0, end);
    Adler32 sum;
    sum.add(line);
    piece_ += kLossyPrefix;
    const std::size_t begin = piece_.size();
    piece_ += line;
    piece_ += '\t';
    append_checksum(piece_, sum);
    piece_ += '\n';
    const std::string_view piece = piece_;
    all_with_piece_.add(piece.substr(begin));
    lines.remove_prefix(end + 1);
  }
  piece_ += '\n';
  return piece_;
}

std::string LossyLines::closing() const {
  std::string line = "\n";
  line += kLossyPrefix;
  line += "ADLER32\t";
  append_checksum(line, all_);
  return line + '\n';
}

}  // namespace kymo
