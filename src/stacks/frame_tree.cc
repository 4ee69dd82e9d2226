#include "stacks/frame_tree.h"

#include <algorithm>

#include "stacks/output.h"

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

FrameTree frame_tree(const Profile& profile, Symbols& symbols) {
  FrameTreeBuilder builder;
  std::vector<std::uint32_t> stack;
  for (const auto& [trace, weight] : profile.traces) {
    stack.assign(1, builder.function(trace.process, {}));
    if (trace.truncated) stack.push_back(builder.function(kTruncated, {}));
    for (auto frame = trace.frames.rbegin(); frame != trace.frames.rend(); ++frame) {
      const Location& location = symbols.at(*frame);
      for (auto line = location.lines.rbegin(); line != location.lines.rend(); ++line) {
        stack.push_back(builder.function(line->function, location.module));
      }
    }
    builder.add(stack, profile.waits ? weight.ns : weight.samples);
  }
  return std::move(builder).finish(profile.waits ? 1 : profile.period_ns);
}

}  // namespace kymo::stacks
