#include <string_view>

#include "base/http/head.h"
#include "base/http/request_reader.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

void read(const std::string& request) {
  const http::Head head = http::read_head(request);
  require(head.refused == 0 || head.refused >= 400, "what is refused has a status");
  require(head.refused != 0 || !head.method.empty(), "what is understood has a method");
  const auto again = http::head_in(http::json_of(head));
  require(again.has_value(), "what is written can be read");
  require(http::json_of(*again) == http::json_of(head), "what is written is what was read");
}

}  // namespace

void http(Bytes data) {
  const std::string text = text_of(data);
  http::Framing at_once;
  at_once.read(text);
  http::Framing bit_by_bit;
  const std::string_view all = text;
  for (std::size_t size = 1; size <= all.size(); ++size) {
    bit_by_bit.read(all.substr(0, size));
  }
  require(at_once.length() == bit_by_bit.length() && at_once.refused() == bit_by_bit.refused(),
          "it does not matter how a request comes in");
  require(at_once.refused() == 0 || at_once.refused() >= 400, "what is refused has a status");
  require(at_once.length() <= http::RequestReader::kMaxHead + http::RequestReader::kMaxBody,
          "a request is bounded");
  if (at_once.refused() == 0 && at_once.length() != 0 && at_once.length() <= text.size()) {
    read(text.substr(0, at_once.length()));
  }
}

}  // namespace kymo::fuzz
