#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "profiler/stacks/collector.h"

namespace kymo::stacks {
namespace {

using nlohmann::json;

// The JSON object in the line. If there is none, the result is `discarded` (json::value_t).
json object_in(std::string_view line) {
  json parsed = parse_json(line);
  return parsed.is_object() ? parsed : json(json::value_t::discarded);
}

}  // namespace

std::string order_text(const CollectorOrder& order) {
  return json_text(json{{"rate", order.rate},
                        {"starter", order.starter},
                        {"target", order.target},
                        {"restored", order.restored},
                        {"container", order.container},
                        {"restored_container", order.restored_container},
                        {"output", order.output},
                        {"waits", order.waits}}) +
         "\n";
}

std::string phases_text(const std::vector<PhaseTimes>& phases) {
  json list = json::array();
  for (const PhaseTimes& phase : phases) list.push_back({phase.name, phase.begin_ns, phase.end_ns});
  return json_text(json{{"phases", std::move(list)}}) + "\n";
}

std::optional<CollectorOrder> order_in(std::string_view line) {
  const json object = object_in(line);
  if (object.is_discarded()) return std::nullopt;
  try {
    CollectorOrder order;
    object.at("rate").get_to(order.rate);
    object.at("starter").get_to(order.starter);
    object.at("target").get_to(order.target);
    object.at("restored").get_to(order.restored);
    object.at("container").get_to(order.container);
    object.at("restored_container").get_to(order.restored_container);
    object.at("output").get_to(order.output);
    object.at("waits").get_to(order.waits);
    return order;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::optional<std::vector<PhaseTimes>> phases_in(std::string_view line) {
  const json object = object_in(line);
  if (object.is_discarded()) return std::nullopt;
  try {
    std::vector<PhaseTimes> phases;
    for (const json& one : object.at("phases")) {
      phases.push_back({one.at(0).get<std::string>(), one.at(1).get<std::uint64_t>(),
                        one.at(2).get<std::uint64_t>()});
    }
    return phases;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace kymo::stacks
