#include "recorder/timing/scope_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace kymo {
namespace {

nlohmann::json scope_json(const ScopeRecord& scope) {
  nlohmann::json json{
      {"name", scope.name}, {"start_ns", scope.start_ns}, {"duration_ns", scope.duration_ns}};
  if (!scope.category.empty()) {
    json["category"] = scope.category;
  }
  if (scope.bytes != 0) {
    json["bytes"] = scope.bytes;
  }
  if (!scope.error.empty()) {
    json["error"] = scope.error;
  }
  if (scope.thread != 0) {
    json["thread"] = scope.thread;
  }
  if (scope.left_out != 0) {
    json["scopes_left_out"] = scope.left_out;
  }
  for (const auto& [key, set] :
       {std::pair("parallel", scope.parallel), std::pair("redundant", scope.redundant),
        std::pair("bytes_redundant", scope.bytes_redundant),
        std::pair("unfinished", scope.unfinished)}) {
    if (set) {
      json[key] = true;
    }
  }
  return json;
}

}  // namespace

nlohmann::json trees_json(const std::vector<ScopeRecord>& scopes) {
  // The children of each scope; the last one is that of the roots.
  std::vector<std::vector<std::size_t>> parts(scopes.size() + 1);
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    const std::size_t parent = scopes[i].parent;
    parts[parent == ScopeRecord::kNoParent ? scopes.size() : parent].push_back(i);
  }
  std::vector<nlohmann::json> objects(scopes.size());
  const auto take = [&](const std::vector<std::size_t>& indexes) {
    nlohmann::json list = nlohmann::json::array();
    for (const std::size_t i : indexes) {
      list.push_back(std::move(objects[i]));
    }
    return list;
  };
  // A part comes after its parent, so from the end on, each scope is complete when it is moved.
  for (std::size_t i = scopes.size(); i-- > 0;) {
    objects[i] = scope_json(scopes[i]);
    if (!parts[i].empty()) {
      objects[i]["components"] = take(parts[i]);
    }
  }
  return take(parts.back());
}

}  // namespace kymo
