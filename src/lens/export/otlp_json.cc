// Scopes as spans of OpenTelemetry, in the JSON encoding of OTLP: one ExportTraceServiceRequest on
// one line, as collectors read from a file, and take over HTTP. Each outermost scope is a trace.

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/fnv.h"
#include "base/json_text.h"
#include "kymo/version.h"
#include "lens/export/formats.h"
#include "lens/export/parts.h"

namespace kymo::exporting {
namespace {

using Json = nlohmann::json;

// Sixteen digits. Never 0, which is no valid id.
std::string hex_id(std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  number = number == 0 ? 1 : number;
  std::string digits(16, '0');
  for (std::size_t at = digits.size(); at-- != 0; number >>= 4U) {
    digits[at] = kDigits[number & 0xFU];
  }
  return digits;
}

Json text_value(const char* key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", valid_utf8(value)}}}};
}
// 64-bit integers are text in this encoding.
Json number_value(const char* key, std::uint64_t value) {
  return {{"key", key}, {"value", {{"intValue", std::to_string(value)}}}};
}

Json attributes_of(const report::RecordedScope& scope) {
  Json attributes = Json::array();
  if (scope.thread != 0) attributes.push_back(number_value("thread.id", scope.thread));
  if (!scope.category.empty()) attributes.push_back(text_value("kymo.category", scope.category));
  if (scope.bytes != 0) attributes.push_back(number_value("kymo.bytes", scope.bytes));
  for (const auto& [key, set] :
       {std::pair("kymo.parallel", scope.parallel), std::pair("kymo.redundant", scope.redundant),
        std::pair("kymo.unfinished", scope.unfinished)}) {
    if (set) attributes.push_back({{"key", key}, {"value", {{"boolValue", true}}}});
  }
  return attributes;
}

// The ids depend on the recording and the scope alone: a second export gives the same traces.
Json spans_of(const analysis::Metadata& metadata,
              const std::vector<report::RecordedScope>& scopes) {
  const std::uint64_t origin =
      fnv1a(metadata.host + ' ' + metadata.process.boot_id + ' ' + std::to_string(metadata.pid) +
            ' ' + std::to_string(metadata.start_unix_ns));
  const auto id = [&](std::size_t scope) {
    return hex_id(fnv1a(std::to_string(origin) + ' ' + std::to_string(scopes[scope].start_ns) +
                        ' ' + std::to_string(scope)));
  };
  Json spans = Json::array();
  std::string trace;
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    const report::RecordedScope& scope = scopes[i];
    const bool root = scope.parent == report::RecordedScope::kNoParent;
    if (root) trace = hex_id(origin) + id(i);
    Json span = {{"traceId", trace},
                 {"spanId", id(i)},
                 {"name", valid_utf8(scope.name)},
                 {"kind", 1},  // internal
                 {"startTimeUnixNano", std::to_string(metadata.start_unix_ns + scope.start_ns)},
                 {"endTimeUnixNano", std::to_string(metadata.start_unix_ns + scope.end_ns())},
                 {"attributes", attributes_of(scope)}};
    if (!root) span["parentSpanId"] = id(scope.parent);
    if (!scope.error.empty()) {
      span["status"] = {{"code", 2}, {"message", valid_utf8(scope.error)}};  // error
    }
    spans.push_back(std::move(span));
  }
  return spans;
}

}  // namespace

Result<void> write_otlp(const analysis::Summary& summary, ExportFile& file, Exported& exported) {
  const std::vector<report::RecordedScope> scopes = scopes_of(summary);
  if (scopes.empty()) {
    return Error{Code::failed_precondition,
                 "export " + summary.recording.path +
                     " as otlp: it has no scopes, and OpenTelemetry's spans are made of these; a "
                     "program adds its own with Profiler::add_scopes()"};
  }
  const analysis::Metadata& metadata = *summary.recording.metadata;
  const Json resource = {text_value("service.name", name_of(summary)),
                         text_value("host.name", metadata.host),
                         number_value("process.pid", metadata.pid)};
  const Json request = {{"resourceSpans",
                         {{{"resource", {{"attributes", resource}}},
                           {"scopeSpans",
                            {{{"scope", {{"name", "kymo"}, {"version", KYMO_VERSION}}},
                              {"spans", spans_of(metadata, scopes)}}}}}}}};
  file.text() += json_text(request) + '\n';
  exported.rows = exported.columns = 0;
  exported.spans = scopes.size();
  return {};
}

}  // namespace kymo::exporting
