#include "lens/report/page.h"

#include <cstdint>
#include <utility>

#include "lens/report/web_assets.h"

namespace kymo::report {
namespace {

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

}  // namespace

Result<Page> Page::begin(std::string_view body, std::string nonce, std::string_view style) {
  if (web_assets::kScript.empty()) {
    return Error{Code::unimplemented,
                 "write a page: this kymo was built without its pages (CMake option KYMO_WEB)"};
  }
  Page page;
  if (!nonce.empty()) page.nonce_ = " nonce=\"" + nonce + "\"";
  page.text_ =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Kymograph</title>\n<link rel=\"icon\" href=\"data:,\">\n<style" +
      page.nonce_ + ">\n";
  page.text_ += web_assets::kChartStyle;
  page.text_ += web_assets::kStyle;
  page.text_ += style;
  page.text_ += "</style>\n</head>\n<body>\n";
  page.text_ += body;
  return page;
}

Result<Page> Page::begin_recording(std::string_view body, std::string nonce) {
  return begin(std::string(web_assets::kRecordingHead) + std::string(body), std::move(nonce));
}

void Page::add_json(std::string_view id, std::string_view text) {
  text_ += "<script type=\"application/json\" id=\"";
  text_ += id;
  text_ += "\">";
  for (const char c : text) {
    if (c == '<') {
      text_ += "\\u003c";
    } else {
      text_ += c;
    }
  }
  text_ += "</script>\n";
}

void Page::add_packed(std::string_view id, std::string_view bytes) {
  text_ += "<script type=\"text/plain\" id=\"";
  text_ += id;
  text_ += "\">";
  append_base64(bytes, text_);
  text_ += "</script>\n";
}

void Page::add_script(std::string_view code) {
  text_ += "<script" + nonce_ + ">\n";
  text_ += code;
  text_ += "\n</script>\n";
}

std::string Page::finish() && {
  text_ += "</body>\n</html>\n";
  return std::move(text_);
}

}  // namespace kymo::report
