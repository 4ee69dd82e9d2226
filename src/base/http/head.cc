#include "base/http/head.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "base/http/request_reader.h"
#include "base/json_object.h"
#include "base/json_text.h"

namespace kymo::http {
namespace {

namespace beast = boost::beast;

constexpr int kBadRequest = 400;

std::string_view view_of(beast::string_view text) {
  return {text.data(), text.size()};
}

// The byte of a code %XX at the start of the text. Returns nothing if there is no such code.
std::optional<char> byte_of(std::string_view text) {
  if (text.size() < 3 || text[0] != '%') return std::nullopt;
  unsigned char byte = 0;
  const char* const end = text.data() + 3;
  const auto [read, error] = std::from_chars(text.data() + 1, end, byte, 16);
  if (error != std::errc() || read != end) return std::nullopt;
  return static_cast<char>(byte);
}

// The text with its codes %XX decoded. Anything else stays as it is.
std::string decoded(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::optional<char> byte = byte_of(text);
    out += byte.value_or(text.front());
    text.remove_prefix(byte ? 3 : 1);
  }
  return out;
}

// The same for a name or value of a query, in which a plus sign is a space.
std::string decoded_query(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return decoded(spaced);
}

std::map<std::string, std::string> query_of(std::string_view text) {
  std::map<std::string, std::string> query;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (pair.empty()) continue;
    query[decoded_query(pair.substr(0, equals))] =
        decoded_query(pair.substr(std::min(equals + 1, pair.size())));
  }
  return query;
}

}  // namespace

Head read_head(std::string_view request) {
  beast::http::request_parser<beast::http::empty_body> parser;
  parser.header_limit(RequestReader::kMaxHead);
  parser.body_limit(RequestReader::kMaxBody);
  beast::error_code error;
  parser.put(boost::asio::buffer(request), error);
  Head head;
  const auto& seen = parser.get();
  if (!parser.is_header_done() || seen.method() == beast::http::verb::unknown) {
    head.refused = kBadRequest;
    return head;
  }
  std::string_view target = view_of(seen.target());
  target = target.substr(0, target.find('#'));
  const std::string_view path = target.substr(0, target.find('?'));
  head.method = view_of(seen.method_string());
  head.path = decoded(path);
  head.query = query_of(target.substr(std::min(path.size() + 1, target.size())));
  head.host = view_of(seen[beast::http::field::host]);
  head.origin = view_of(seen[beast::http::field::origin]);
  head.authorization = view_of(seen[beast::http::field::authorization]);
  return head;
}

std::string json_of(const Head& head) {
  nlohmann::json query = nlohmann::json::object();
  for (const auto& [name, value] : head.query) query[valid_utf8(name)] = value;
  return json_text(nlohmann::json{{"refused", head.refused},
                                  {"method", head.method},
                                  {"path", head.path},
                                  {"query", std::move(query)},
                                  {"host", head.host},
                                  {"origin", head.origin},
                                  {"authorization", head.authorization}});
}

std::optional<Head> head_in(std::string_view json) {
  const nlohmann::json said = parse_object(json);
  const nlohmann::json& query = member(said, "query");
  if (!query.is_object()) return std::nullopt;
  Head head;
  head.refused = static_cast<int>(number_of(said, "refused") % 1000);
  head.method = text_of(said, "method");
  head.path = text_of(said, "path");
  for (const auto& [name, value] : query.items()) {
    if (!value.is_string()) return std::nullopt;
    head.query[name] = value.get<std::string>();
  }
  head.host = text_of(said, "host");
  head.origin = text_of(said, "origin");
  head.authorization = text_of(said, "authorization");
  return head;
}

}  // namespace kymo::http
