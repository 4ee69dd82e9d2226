#include "recorder/sampling/ring/ring_description.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_object.h"

namespace kymo {
namespace {

// Whether the header of a TSV can contain this name.
bool is_column_name(const std::string& name) {
  return !name.empty() && std::none_of(name.begin(), name.end(),
                                       [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

}  // namespace

Result<RingDescription> describe(const RingMemory& ring, const std::string& path) {
  const Error damaged{Code::invalid_argument,
                      path + " is not a ring that can be read: its description is damaged", 0};
  if (ring.header().description_check != ring_check(ring.description())) {
    return damaged;
  }
  const nlohmann::json json = parse_object(ring.description());
  if (!member(json, "recording").is_object() || !member(json, "output").is_string()) {
    return damaged;
  }
  RingDescription description{
      std::make_shared<const nlohmann::json>(json["recording"]), {}, json["output"]};
  for (const nlohmann::json& column : member(*description.recording, "columns")) {
    const std::string unit = text_of(column, "unit");
    description.columns.push_back({text_of(column, "name"), text_of(column, "kind") != "gauge",
                                   unit.empty() ? "count" : unit});
    if (!is_column_name(description.columns.back().name)) {
      return damaged;
    }
  }
  if (description.columns.size() + 1 != ring.header().stride) {
    return damaged;
  }
  return description;
}

}  // namespace kymo
