#include <algorithm>
#include <map>

#include "profiler/stacks/output.h"

namespace kymo::stacks {
namespace {

constexpr std::uint64_t kNanosPerMicrosecond = 1000;

// Replaces the characters that separate frames and lines in this format.
std::string clean(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return c == ';' || static_cast<unsigned char>(c) < ' '; }, '?');
  return name;
}

std::string line_of(const NamedProfile& profile, const NamedProfile::Stack& stack) {
  std::string text = clean(stack.process);
  if (stack.truncated) text += std::string(";") + kTruncated;
  const auto add = [&](std::uint32_t id) {
    const NamedProfile::Function& function = profile.functions[id];
    text.append(";").append(clean(function.name));
    if (function.module == "[kernel]") text += "_[k]";
  };
  std::for_each(stack.functions.rbegin(), stack.functions.rend(), add);
  return text;
}

std::uint64_t folded_value(Quantity quantity, const Weight& weight) {
  if (quantity == Quantity::cpu) return weight.samples;
  const bool time = facts_of(quantity).unit == std::string_view("ns");
  return time ? weight.value / kNanosPerMicrosecond : weight.value;
}

}  // namespace

std::string folded(const NamedProfile& profile) {
  std::map<std::string, std::uint64_t> stacks;  // threads of a process can have the same one
  for (const NamedProfile::Stack& stack : profile.stacks) {
    stacks[line_of(profile, stack)] += folded_value(profile.quantity, stack.weight);
  }
  std::string text;
  for (const auto& [stack, value] : stacks) {
    text.append(stack).append(" ").append(std::to_string(value)).append("\n");
  }
  return text;
}

}  // namespace kymo::stacks
