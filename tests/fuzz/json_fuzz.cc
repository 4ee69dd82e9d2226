#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_object.h"
#include "base/json_text.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

constexpr int kDeepest = 64;

int depth_of(const nlohmann::json& value) {
  int deepest = 0;
  if (value.is_structured()) {
    for (const nlohmann::json& part : value) deepest = std::max(deepest, depth_of(part));
    ++deepest;
  }
  return deepest;
}

}  // namespace

void json(Bytes data) {
  const nlohmann::json value = parse_json(text_of(data));
  if (value.is_discarded()) return;
  require(depth_of(value) <= kDeepest, "it does not nest deeper than ours");
  const std::string text = json_text(value);
  require(parse_json(text) == value, "what is written is what was read");
  // Reads the members in the way in which the record of a checkpoint is read.
  for (const char* key : {"state", "criu", "options", "container", "job"}) {
    static_cast<void>(kymo::text_of(member(value, key), "id"));
    static_cast<void>(number_of(value, key));
  }
}

}  // namespace kymo::fuzz
