#include "lens/report/flame_page.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "lens/report/page_data.h"
#include "lens/report/web_assets.h"

namespace kymo::report {
namespace {

using Json = nlohmann::ordered_json;

void add_functions(const stacks::FrameTree& tree, Json& json) {
  Json modules = Json::array();
  Json functions = Json::array();
  std::map<std::string, std::size_t> ids;
  for (const stacks::FrameTree::Function& function : tree.functions) {
    const auto [found, added] = ids.try_emplace(function.module, ids.size());
    if (added) modules.push_back(function.module);
    functions.push_back({function.name, found->second});
  }
  json["modules"] = std::move(modules);
  json["functions"] = std::move(functions);
}

}  // namespace

void add_tree(const stacks::FrameTree& tree, nlohmann::ordered_json& json) {
  add_functions(tree, json);
  const stacks::QuantityFacts& facts = facts_of(tree.quantity);
  json["kind"] = facts.name;
  json["unit"] = facts.unit;
  json["what"] = facts.what;
  json["counted"] = facts.counted;
  json["sorted_by_total"] = facts.sorted_by_total;
  json["scale"] = tree.scale;
  Json depths = Json::array();
  Json of = Json::array();
  Json self = Json::array();
  for (const stacks::FrameTree::Node& node : tree.nodes) {
    depths.push_back(node.depth);
    of.push_back(node.function);
    self.push_back(node.self);
  }
  json["tree"] = {
      {"depths", std::move(depths)}, {"functions", std::move(of)}, {"self", std::move(self)}};
}

std::string flame_data(nlohmann::ordered_json about, const stacks::FrameTree& tree) {
  add_tree(tree, about);
  PageData data;
  data.add_data("profile", about);
  return std::move(data).text();
}

Result<std::string> flame_page(std::string_view data) {
  Result<Page> page = Page::begin(web_assets::kFlameBody, {}, web_assets::kFlameStyle);
  if (!page) return page.error();
  if (Result<void> added = add_page_data(data, web_assets::kFlameScript, *page); !added) {
    return added.error();
  }
  return std::move(*page).finish();
}

}  // namespace kymo::report
