#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "profiler/stacks/output.h"

namespace kymo::stacks {
namespace {

// Sums by function. Functions of the same name are one.
class Functions {
 public:
  HotFunction& at(const std::string& name, const std::string& module) {
    HotFunction& function = functions_[name];
    if (function.name.empty()) {
      function.name = name;
      function.module = module;
    }
    return function;
  }
  // The hottest first.
  [[nodiscard]] std::vector<HotFunction> sorted(Order order) const {
    std::vector<HotFunction> all;
    for (const auto& [name, function] : functions_) all.push_back(function);
    const auto heat = [order](const HotFunction& function) {
      const auto [self, total] = std::pair(function.self.value, function.total.value);
      return order == Order::self ? std::pair(self, total) : std::pair(total, self);
    };
    std::sort(all.begin(), all.end(), [&](const HotFunction& a, const HotFunction& b) {
      return heat(a) != heat(b) ? heat(a) > heat(b) : a.name < b.name;
    });
    return all;
  }

 private:
  std::unordered_map<std::string, HotFunction> functions_;
};

void count(const NamedProfile& profile, const NamedProfile::Stack& stack, Functions& functions,
           Hottest& result) {
  std::set<HotFunction*> seen;
  bool innermost = true;
  for (const std::uint32_t id : stack.functions) {
    const NamedProfile::Function& named = profile.functions[id];
    result.frames += stack.weight.samples;
    if (!named.known) result.unknown_frames += stack.weight.samples;
    HotFunction& function = functions.at(named.name, named.module);
    if (innermost) function.self += stack.weight;
    if (seen.insert(&function).second) function.total += stack.weight;
    innermost = false;
  }
}

}  // namespace

Hottest hottest(const NamedProfile& profile, Order order) {
  Hottest result;
  Functions functions;
  for (const NamedProfile::Stack& stack : profile.stacks) {
    count(profile, stack, functions, result);
    if (stack.truncated) result.truncated += stack.weight.samples;
  }
  result.functions = functions.sorted(order);
  result.sum = profile.sum();
  return result;
}

}  // namespace kymo::stacks
