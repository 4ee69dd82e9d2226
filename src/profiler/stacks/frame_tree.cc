#include "profiler/stacks/frame_tree.h"

#include <algorithm>
#include <iterator>

#include "profiler/stacks/output.h"
#include "profiler/stacks/request_samples.h"

namespace kymo::stacks {

std::uint32_t FrameTreeBuilder::function(const std::string& name, const std::string& module) {
  const auto [found, added] =
      ids_.try_emplace({name, module}, static_cast<std::uint32_t>(functions_.size()));
  if (added) functions_.push_back({name, module});
  return found->second;
}

void FrameTreeBuilder::add(const std::vector<std::uint32_t>& stack, std::uint64_t self,
                           std::uint64_t self_before) {
  std::uint32_t at = 0;
  for (const std::uint32_t function : stack) {
    const auto [found, added] =
        nodes_[at].children.try_emplace(function, static_cast<std::uint32_t>(nodes_.size()));
    at = found->second;
    if (added) nodes_.emplace_back();
  }
  nodes_[at].self += self;
  nodes_[at].self_before += self_before;
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

FrameTree FrameTreeBuilder::finish(Quantity quantity, std::uint64_t scale) && {
  FrameTree tree;
  tree.quantity = quantity;
  tree.scale = scale;
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
    const Node& node = nodes_[next.node];
    tree.nodes.push_back({next.depth, next.function, node.self, node.self_before});
    for (const auto& [function, child] : backwards(node)) {
      open.push_back({next.depth + 1, function, child});
    }
  }
  tree.functions = std::move(functions_);
  return tree;
}

std::vector<std::uint32_t> frames_of(const NamedProfile::Stack& stack, const std::string& process,
                                     const std::vector<std::uint32_t>& ids,
                                     FrameTreeBuilder& builder) {
  std::vector<std::uint32_t> frames;
  if (stack.role == kCriuRole) frames.push_back(builder.function("CRIU", {}));
  if (stack.role == kTargetRole) frames.push_back(builder.function("target", {}));
  if (!process.empty()) frames.push_back(builder.function(process, {}));
  if (stack.truncated) frames.push_back(builder.function(kTruncated, {}));
  std::transform(stack.functions.rbegin(), stack.functions.rend(), std::back_inserter(frames),
                 [&](std::uint32_t function) { return ids[function]; });
  if (frames.empty()) frames.push_back(builder.function("[unknown]", {}));
  return frames;
}

FrameTree frame_tree(const NamedProfile& profile) {
  FrameTreeBuilder builder;
  std::vector<std::uint32_t> ids;
  ids.reserve(profile.functions.size());
  for (const NamedProfile::Function& function : profile.functions) {
    ids.push_back(builder.function(function.name, function.module));
  }
  const bool by_value = profile.period_ns == 0;
  for (const NamedProfile::Stack& one : profile.stacks) {
    builder.add(frames_of(one, one.process, ids, builder),
                by_value ? one.weight.value : one.weight.samples);
  }
  return std::move(builder).finish(profile.quantity, by_value ? 1 : profile.period_ns);
}

}  // namespace kymo::stacks
