#include "stacks/frame_tree.h"

#include <algorithm>

#include "stacks/output.h"
#include "stacks/request_samples.h"

namespace kymo::stacks {

std::uint32_t FrameTreeBuilder::function(const std::string& name, const std::string& module) {
  const auto [found, added] =
      ids_.try_emplace({name, module}, static_cast<std::uint32_t>(functions_.size()));
  if (added) functions_.push_back({name, module});
  return found->second;
}

void FrameTreeBuilder::add(const std::vector<std::uint32_t>& stack, std::uint64_t self) {
  std::uint32_t at = 0;
  for (const std::uint32_t function : stack) {
    const auto [found, added] =
        nodes_[at].children.try_emplace(function, static_cast<std::uint32_t>(nodes_.size()));
    at = found->second;
    if (added) nodes_.emplace_back();
  }
  nodes_[at].self += self;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> FrameTreeBuilder::backwards(
    const Node& node) const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sorted(node.children.begin(),
                                                              node.children.end());
  std::sort(sorted.begin(), sorted.end(), [this](const auto& a, const auto& b) {
    return functions_[a.first].name > functions_[b.first].name;
  });
  return sorted;
}

FrameTree FrameTreeBuilder::finish(std::uint64_t unit_ns) && {
  FrameTree tree;
  tree.unit_ns = unit_ns;
  struct Open {
    std::uint32_t depth;
    std::uint32_t function;
    std::uint32_t node;
  };
  std::vector<Open> open;  // the next node is at the end
  for (const auto& [function, node] : backwards(nodes_[0])) open.push_back({0, function, node});
  while (!open.empty()) {
    const Open next = open.back();
    open.pop_back();
    tree.nodes.push_back({next.depth, next.function, nodes_[next.node].self});
    for (const auto& [function, node] : backwards(nodes_[next.node])) {
      open.push_back({next.depth + 1, function, node});
    }
  }
  tree.functions = std::move(functions_);
  return tree;
}

FrameTree frame_tree(const NamedProfile& profile) {
  FrameTreeBuilder builder;
  std::vector<std::uint32_t> ids;
  ids.reserve(profile.functions.size());
  for (const NamedProfile::Function& function : profile.functions) {
    ids.push_back(builder.function(function.name, function.module));
  }
  const bool by_time = profile.period_ns == 0;
  for (const NamedProfile::Stack& one : profile.stacks) {
    std::vector<std::uint32_t> stack;
    if (one.role == kCriuRole) stack.push_back(builder.function("CRIU", {}));
    if (one.role == kTargetRole) stack.push_back(builder.function("target", {}));
    if (!one.process.empty()) stack.push_back(builder.function(one.process, {}));
    if (one.truncated) stack.push_back(builder.function(kTruncated, {}));
    for (auto id = one.functions.rbegin(); id != one.functions.rend(); ++id) {
      stack.push_back(ids[*id]);
    }
    if (stack.empty()) stack.push_back(builder.function("[unknown]", {}));
    builder.add(stack, by_time ? one.weight.ns : one.weight.samples);
  }
  return std::move(builder).finish(by_time ? 1 : profile.period_ns);
}

}  // namespace kymo::stacks
