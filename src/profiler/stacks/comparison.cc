#include "profiler/stacks/comparison.h"

#include <algorithm>
#include <span>
#include <utility>

#include "profiler/stacks/same_functions.h"

namespace kymo::stacks {
namespace {

using Ids = std::vector<std::uint32_t>;

// Whether the values are compared. Otherwise the samples are.
bool by_value(const NamedProfile& before, const NamedProfile& after) {
  return before.quantity != Quantity::cpu || !before.counts_samples || !after.counts_samples;
}

std::uint64_t value_of(const Weight& weight, bool time) {
  return time ? weight.value : weight.samples;
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

ShareVerdict verdict_of(SampleCounts part, SampleCounts all, const std::optional<ShareP>& p) {
  const double before = share_of(part.before, all.before);
  const double after = share_of(part.after, all.after);
  if (before == after) return ShareVerdict::within_noise;
  if (!p) return ShareVerdict::not_tested;
  if (p->adjusted_p >= kShareLevel) return ShareVerdict::within_noise;
  if (part.before == 0) return ShareVerdict::is_new;
  if (part.after == 0) return ShareVerdict::vanished;
  return after > before ? ShareVerdict::grew : ShareVerdict::shrank;
}

// Nothing is tested of time.
std::vector<std::optional<ShareP>> tested(std::span<const SampleCounts> parts, SampleCounts all,
                                          bool time) {
  return time ? std::vector<std::optional<ShareP>>(parts.size()) : test_shares(parts, all);
}

std::size_t count_tests(const std::vector<std::optional<ShareP>>& p) {
  return static_cast<std::size_t>(
      std::count_if(p.begin(), p.end(), [](const auto& one) { return one.has_value(); }));
}

// Adds the weights of a profile's stacks to one side of their functions.
void add_weights(const NamedProfile& profile, const Ids& ids, Weight ShareChange::*side,
                 std::vector<FunctionChange>& functions) {
  std::vector<std::size_t> seen_in(functions.size());  // the last stack that has it, counted from 1
  std::size_t at = 0;
  for (const NamedProfile::Stack& stack : profile.stacks) {
    ++at;
    if (!stack.functions.empty()) {
      functions[ids[stack.functions.front()]].self.*side += stack.weight;
    }
    for (const std::uint32_t function : stack.functions) {
      const std::uint32_t id = ids[function];
      if (std::exchange(seen_in[id], at) != at) functions[id].total.*side += stack.weight;
    }
  }
}

void judge(Comparison& comparison) {
  const bool time = comparison.by_value;
  const SampleCounts all{value_of(comparison.before.sum, time),
                         value_of(comparison.after.sum, time)};
  std::vector<ShareChange*> changes;
  std::vector<SampleCounts> parts;
  for (FunctionChange& function : comparison.functions) {
    for (ShareChange* change : {&function.self, &function.total}) {
      changes.push_back(change);
      parts.push_back({value_of(change->before, time), value_of(change->after, time)});
    }
  }
  const std::vector<std::optional<ShareP>> p = tested(parts, all, time);
  comparison.tests = count_tests(p);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    changes[i]->share_before = share_of(parts[i].before, all.before);
    changes[i]->share_after = share_of(parts[i].after, all.after);
    changes[i]->p = p[i];
    changes[i]->verdict = verdict_of(parts[i], all, p[i]);
  }
}

// If each profile has one process, it is the same one, also under another name.
std::optional<std::string> only_process(const NamedProfile& profile) {
  if (profile.stacks.empty()) return std::nullopt;
  const std::string& first = profile.stacks.front().process;
  const bool others = std::any_of(profile.stacks.begin(), profile.stacks.end(),
                                  [&](const auto& stack) { return stack.process != first; });
  return others ? std::nullopt : std::optional(first);
}

// The values of all nodes with those below them.
std::vector<SampleCounts> totals_of(const FrameTree& tree) {
  std::vector<SampleCounts> totals(tree.nodes.size());
  std::vector<SampleCounts> below;  // for each depth, the sum of the siblings behind the node
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    const FrameTree::Node& node = tree.nodes[i];
    if (below.size() < node.depth + 2) below.resize(node.depth + 2);
    const SampleCounts children = std::exchange(below[node.depth + 1], {});
    totals[i] = {node.self_before + children.before, node.self + children.after};
    below[node.depth].before += totals[i].before;
    below[node.depth].after += totals[i].after;
  }
  return totals;
}

FrameTree merged(const NamedProfile& before, const NamedProfile& after, bool time) {
  const SameFunctions same = same_functions(before, after);
  FrameTreeBuilder builder;
  Ids builders;
  for (const SameFunctions::Function& function : same.functions) {
    builders.push_back(builder.function(function.name, function.module));
  }
  const auto process = only_process(before) ? only_process(after) : std::nullopt;
  const auto add = [&](const NamedProfile& profile, const Ids& places, bool is_after) {
    Ids ids;
    for (const std::uint32_t place : places) ids.push_back(builders[place]);
    for (const NamedProfile::Stack& stack : profile.stacks) {
      const std::uint64_t value = value_of(stack.weight, time);
      builder.add(frames_of(stack, process.value_or(stack.process), ids, builder),
                  is_after ? value : 0, is_after ? 0 : value);
    }
  };
  add(before, same.of_before, false);
  add(after, same.of_after, true);
  const Weight sum = after.sum();
  return std::move(builder).finish(after.quantity,
                                   time || sum.samples == 0 ? 1 : sum.value / sum.samples);
}

}  // namespace

const char* to_string(ShareVerdict verdict) {
  switch (verdict) {
    case ShareVerdict::within_noise:
      return "within noise";
    case ShareVerdict::grew:
      return "share grew";
    case ShareVerdict::shrank:
      return "share shrank";
    case ShareVerdict::is_new:
      return "new";
    case ShareVerdict::vanished:
      return "vanished";
    case ShareVerdict::not_tested:
      break;
  }
  return "not tested";
}

Result<Comparison> compare(const NamedProfile& before, const NamedProfile& after) {
  if (before.quantity != after.quantity) {
    return Error{Code::failed_precondition, std::string("cannot compare: A is a profile of ") +
                                                facts_of(before.quantity).what + " and B one of " +
                                                facts_of(after.quantity).what +
                                                "; give two of the same kind"};
  }
  Comparison result;
  result.quantity = after.quantity;
  result.by_value = by_value(before, after);
  result.before = {before.sum(), before.duration_ns, before.lost};
  result.after = {after.sum(), after.duration_ns, after.lost};
  for (const auto& [name, side] : {std::pair{"A", &result.before}, std::pair{"B", &result.after}}) {
    if (value_of(side->sum, result.by_value) != 0) continue;
    return Error{Code::failed_precondition,
                 std::string("cannot compare: ") + name + " has no stacks; profile for longer"};
  }
  const SameFunctions same = same_functions(before, after);
  for (const SameFunctions::Function& function : same.functions) {
    result.functions.push_back({function.name, function.module, {}, {}});
  }
  add_weights(before, same.of_before, &ShareChange::before, result.functions);
  add_weights(after, same.of_after, &ShareChange::after, result.functions);
  judge(result);
  return result;
}

ComparedTree compared_tree(const NamedProfile& before, const NamedProfile& after) {
  const bool time = by_value(before, after);
  ComparedTree result;
  result.tree = merged(before, after, time);
  const SampleCounts all{value_of(before.sum(), time), value_of(after.sum(), time)};
  const std::vector<SampleCounts> totals = totals_of(result.tree);
  const std::vector<std::optional<ShareP>> p = tested(totals, all, time);
  result.tests = count_tests(p);
  for (std::size_t i = 0; i < totals.size(); ++i) {
    result.verdicts.push_back(verdict_of(totals[i], all, p[i]));
  }
  return result;
}

}  // namespace kymo::stacks
