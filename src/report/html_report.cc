#include "report/html_report.h"

#include <array>
#include <string_view>

#include "report/json_report.h"
#include "report/packed_rows.h"
#include "report/phases.h"
#include "report/web_assets.h"

namespace kymo::report {
namespace {

using Json = nlohmann::ordered_json;

void append_base64(std::string_view bytes, std::string& out) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  out.reserve(out.size() + bytes.size() / 3 * 4 + 4);
  const auto at = [&](std::size_t i) {
    return i < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) : 0U;
  };
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t three = at(i) << 16U | at(i + 1) << 8U | at(i + 2);
    out += kDigits[three >> 18U];
    out += kDigits[(three >> 12U) & 63U];
    out += i + 1 < bytes.size() ? kDigits[(three >> 6U) & 63U] : '=';
    out += i + 2 < bytes.size() ? kDigits[three & 63U] : '=';
  }
}

// A part of the page that scripts read. Nothing in it may end the element: names in a recording are
// anybody's.
void append_data(std::string_view id, std::string_view text, std::string& page) {
  page += "<script type=\"application/json\" id=\"";
  page += id;
  page += "\">";
  for (const char c : text) {
    if (c == '<') {
      page += "\\u003c";
    } else {
      page += c;
    }
  }
  page += "</script>\n";
}

void append_packed(const std::string& id, std::string_view bytes, std::string& page) {
  page += "<script type=\"text/plain\" id=\"" + id + "\">";
  append_base64(bytes, page);
  page += "</script>\n";
}

PackRequest request_for(const analysis::Summary& summary, const HtmlOptions& options) {
  std::uint64_t columns = 1;
  for (const analysis::ColumnSummary& column : summary.columns) columns += column.idle() ? 0U : 1U;
  PackRequest request;
  if (summary.rows * columns <= options.most_values) {
    request.keep.emplace_back(0, UINT64_MAX);
  } else if (options.samples) {
    request.keep.push_back(*options.samples);
  } else {
    for (const Phase& phase : phases_of(summary)) {
      request.keep.emplace_back(phase.begin_ns, phase.end_ns);
    }
  }
  return request;
}

}  // namespace

Result<std::string> html_report(const analysis::Summary& summary, const HtmlOptions& options) {
  if (web_assets::kScript.empty()) {
    return Error{Code::unimplemented,
                 "write a page: this kymo was built without its page (CMake option KYMO_WEB)"};
  }
  const Result<PackedRows> packed = pack_rows(summary, request_for(summary, options));
  if (!packed) return packed.error();
  Json json = json_report({summary})["recordings"][0];
  json["block_rows"] = PackedRows::kBlockRows;
  json["samples_left_out"] = packed->samples_left_out;
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Kymograph</title>\n<style>\n";
  page += web_assets::kChartStyle;
  page += web_assets::kStyle;
  page += "</style>\n</head>\n<body>\n";
  page += web_assets::kBody;
  append_data("recording", json.dump(-1, ' ', false, Json::error_handler_t::replace), page);
  // The outlines first: the page shows them before it has the rest.
  for (std::size_t i = 0; i < packed->columns.size(); ++i) {
    append_packed("outline" + std::to_string(i), packed->columns[i].outline, page);
  }
  page += "<script>\n";
  page += web_assets::kChartScript;
  page += "\n</script>\n<script>\n";
  page += web_assets::kScript;
  page += "</script>\n";
  for (std::size_t i = 0; i < packed->columns.size(); ++i) {
    append_packed("samples" + std::to_string(i), packed->columns[i].samples, page);
  }
  page += "<script>kymoSamplesAreThere();</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace kymo::report
