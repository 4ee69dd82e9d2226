#include "profiler/stacks/profile_text.h"

#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_text.h"

namespace kymo::stacks {
namespace {

using nlohmann::json;

constexpr std::size_t kHeadParts = 5;
constexpr std::size_t kStackParts = 6;

std::optional<std::uint64_t> value_in(const json& said) {
  if (!said.is_number_unsigned()) return std::nullopt;
  const auto number = said.get<std::uint64_t>();
  return number <= kMaxStackValue ? std::optional(number) : std::nullopt;
}

bool read_head(const json& said, NamedProfile& profile) {
  if (!said.is_array() || said.size() != kHeadParts || !said[0].is_string()) return false;
  const std::optional<Quantity> quantity = quantity_named(said[0].get<std::string>());
  const std::optional<std::uint64_t> period = value_in(said[1]);
  const std::optional<std::uint64_t> duration = value_in(said[2]);
  const std::optional<std::uint64_t> lost = value_in(said[3]);
  if (!quantity || !period || !duration || !lost || !said[4].is_boolean()) return false;
  profile.quantity = *quantity;
  profile.period_ns = *period;
  profile.duration_ns = *duration;
  profile.lost = *lost;
  profile.counts_samples = said[4].get<bool>();
  return true;
}

bool add_function(const json& said, NamedProfile& profile) {
  if (!said.is_array() || said.size() != 3 || !said[0].is_string() || !said[1].is_string() ||
      !said[2].is_boolean()) {
    return false;
  }
  profile.functions.push_back(
      {said[0].get<std::string>(), said[1].get<std::string>(), said[2].get<bool>()});
  return true;
}

bool add_frames(const json& said, NamedProfile& profile, NamedProfile::Stack& stack) {
  if (!said.is_array()) return false;
  for (const json& one : said) {
    const std::optional<std::uint64_t> function = value_in(one);
    if (!function || *function >= profile.functions.size()) return false;
    stack.functions.push_back(static_cast<std::uint32_t>(*function));
  }
  return true;
}

bool add_stack(const json& said, NamedProfile& profile) {
  if (!said.is_array() || said.size() != kStackParts || !said[0].is_string() ||
      !said[1].is_string() || !said[2].is_boolean()) {
    return false;
  }
  NamedProfile::Stack stack;
  stack.process = said[0].get<std::string>();
  stack.role = said[1].get<std::string>();
  stack.truncated = said[2].get<bool>();
  const std::optional<std::uint64_t> samples = value_in(said[3]);
  const std::optional<std::uint64_t> value = value_in(said[4]);
  if (!samples || !value || !add_frames(said[kStackParts - 1], profile, stack)) return false;
  stack.weight = {*samples, *value};
  profile.stacks.push_back(std::move(stack));
  return true;
}

// The entries of a member, each read by `add`.
template <typename Add>
bool read_list(const json& object, const char* name, NamedProfile& profile, Add add) {
  const auto list = object.find(name);
  if (list == object.end() || !list->is_array()) return false;
  for (const json& one : *list) {
    if (!add(one, profile)) return false;
  }
  return true;
}

}  // namespace

std::string text_of(const NamedProfile& profile) {
  json functions = json::array();
  for (const NamedProfile::Function& one : profile.functions) {
    functions.push_back({one.name, one.module, one.known});
  }
  json stacks = json::array();
  for (const NamedProfile::Stack& one : profile.stacks) {
    stacks.push_back({one.process, one.role, one.truncated, one.weight.samples, one.weight.value,
                      one.functions});
  }
  return json_text(json{{"profile",
                         {facts_of(profile.quantity).name, profile.period_ns, profile.duration_ns,
                          profile.lost, profile.counts_samples}},
                        {"functions", std::move(functions)},
                        {"stacks", std::move(stacks)}});
}

Result<NamedProfile> profile_in(std::string_view text) {
  const json object = parse_json(text);
  NamedProfile profile;
  if (object.is_object() && object.contains("profile") && read_head(object["profile"], profile) &&
      read_list(object, "functions", profile, add_function) &&
      read_list(object, "stacks", profile, add_stack)) {
    return profile;
  }
  return Error{Code::data_loss,
               "the process that reads stack profiles sent an answer that is not valid"};
}

}  // namespace kymo::stacks
