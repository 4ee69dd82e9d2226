#include "lens/report/flame_diff.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "lens/report/flame_page.h"
#include "lens/report/page_data.h"

namespace kymo::report {
namespace {

using FlameJson = nlohmann::ordered_json;
using stacks::Comparison;
using stacks::FunctionChange;
using stacks::ShareChange;
using stacks::Weight;

std::uint64_t flame_value(const Weight& weight, bool by_value) {
  return by_value ? weight.value : weight.samples;
}

// The last `names` names of a path.
std::string flame_path_end(const std::string& path, std::size_t names) {
  std::size_t at = path.size();
  for (; names != 0 && at != 0 && at != std::string::npos; --names) {
    at = path.rfind('/', at - 1);
  }
  return names != 0 || at == std::string::npos ? path : path.substr(at + 1);
}

FlameJson flame_side(const std::string& path, const Comparison::Side& side, bool by_value) {
  const std::uint64_t samples = side.sum.samples;
  return {{"path", path},
          {"samples", samples},
          {"value", side.sum.value},
          {"duration_ns", side.duration_ns},
          {"lost", side.lost},
          {"scale", by_value || samples == 0 ? 1 : side.sum.value / samples}};
}

// The functions' values and verdicts, in their order in the tree.
FlameJson changes_json(const Comparison& comparison, ShareChange FunctionChange::*share) {
  FlameJson before = FlameJson::array();
  FlameJson after = FlameJson::array();
  FlameJson verdicts = FlameJson::array();
  for (const FunctionChange& function : comparison.functions) {
    const ShareChange& change = function.*share;
    before.push_back(flame_value(change.before, comparison.by_value));
    after.push_back(flame_value(change.after, comparison.by_value));
    verdicts.push_back(change.verdict);
  }
  return {{"before", std::move(before)},
          {"after", std::move(after)},
          {"verdicts", std::move(verdicts)}};
}

}  // namespace

std::string flame_diff_title(const std::string& before, const std::string& after) {
  for (std::size_t names = 1;; ++names) {
    const std::string a = flame_path_end(before, names);
    const std::string b = flame_path_end(after, names);
    if (a != b || (a == before && b == after)) return a + " → " + b;
  }
}

nlohmann::ordered_json flame_diff_json(const ProfileDiff& diff,
                                       const stacks::ComparedTree& compared) {
  const Comparison& comparison = diff.comparison;
  const Comparison::Side& after = comparison.after;
  FlameJson json = {{"title", flame_diff_title(diff.before, diff.after)},
                    {"duration_ns", after.duration_ns},
                    {"samples", after.sum.samples},
                    {facts_of(comparison.quantity).unit, after.sum.value}};
  for (const char* missing : {"lost", "lost_mappings", "frames", "unknown_frames", "truncated"}) {
    json[missing] = 0;  // lost samples are told of each side
  }
  json["comparison"] = {{"a", flame_side(diff.before, comparison.before, comparison.by_value)},
                        {"b", flame_side(diff.after, after, comparison.by_value)},
                        {"tested", !comparison.by_value},
                        {"shares_of", shares_of(comparison)},
                        {"function_tests", comparison.tests},
                        {"frame_tests", compared.tests},
                        {"self", changes_json(comparison, &FunctionChange::self)},
                        {"total", changes_json(comparison, &FunctionChange::total)}};
  add_tree(compared.tree, json);
  FlameJson before = FlameJson::array();
  for (const auto& node : compared.tree.nodes) before.push_back(node.self_before);
  json["tree"]["before"] = std::move(before);
  json["tree"]["verdicts"] = compared.verdicts;
  return json;
}

std::string flame_diff_data(const ProfileDiff& diff, const stacks::ComparedTree& compared) {
  PageData data;
  data.add_data("profile", flame_diff_json(diff, compared));
  return std::move(data).text();
}

}  // namespace kymo::report
