#include <algorithm>
#include <map>

#include "stacks/output.h"

namespace kymo::stacks {
namespace {

constexpr std::uint64_t kNanosPerMicrosecond = 1000;

// What separates frames and lines cannot be in a name.
std::string clean(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return c == ';' || static_cast<unsigned char>(c) < ' '; }, '?');
  return name;
}

std::string stack_of(const Trace& trace, Symbols& symbols) {
  std::string text = clean(trace.process);
  if (trace.truncated) text += std::string(";") + kTruncated;
  for (auto frame = trace.frames.rbegin(); frame != trace.frames.rend(); ++frame) {
    const Location& location = symbols.at(*frame);
    const bool kernel = frame->module != nullptr && frame->module->kind == Module::Kind::kernel;
    for (auto line = location.lines.rbegin(); line != location.lines.rend(); ++line) {
      text += ";" + clean(line->function) + (kernel ? "_[k]" : "");
    }
  }
  return text;
}

}  // namespace

std::string folded(const Profile& profile, Symbols& symbols) {
  std::map<std::string, std::uint64_t> stacks;  // threads of a process can have the same one
  for (const auto& [trace, weight] : profile.traces) {
    stacks[stack_of(trace, symbols)] +=
        profile.waits ? weight.ns / kNanosPerMicrosecond : weight.samples;
  }
  std::string text;
  for (const auto& [stack, value] : stacks) text += stack + " " + std::to_string(value) + "\n";
  return text;
}

}  // namespace kymo::stacks
