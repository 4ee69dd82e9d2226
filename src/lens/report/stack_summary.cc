#include "lens/report/stack_summary.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/beneath.h"
#include "lens/report/human.h"
#include "profiler/stacks/request_samples.h"

namespace kymo::report {
namespace {

namespace fs = std::filesystem;
using stacks::NamedProfile;

constexpr std::string_view kEnding = ".pb.gz";
constexpr std::size_t kMaxStackFile = std::size_t{512} << 20U;
constexpr std::size_t kFunctions = 3;
constexpr std::size_t kNameLength = 50;

double share_of(const stacks::Weight& part, const stacks::Weight& whole) {
  return whole.value == 0 ? 0 : static_cast<double>(part.value) / static_cast<double>(whole.value);
}

// The functions in which the stacks of one role end.
StackSummary::Part part_of(const NamedProfile& phase, const char* role, std::size_t functions) {
  NamedProfile part = phase;
  std::erase_if(part.stacks, [&](const NamedProfile::Stack& stack) { return stack.role != role; });
  stacks::Hottest hottest = stacks::hottest(part);
  std::erase_if(hottest.functions,
                [](const stacks::HotFunction& function) { return function.self.samples == 0; });
  if (hottest.functions.size() > functions) hottest.functions.resize(functions);
  return {hottest.sum, std::move(hottest.functions)};
}

nlohmann::json json_of(const StackSummary::Part& part) {
  nlohmann::json functions = nlohmann::json::array();
  for (const stacks::HotFunction& function : part.hottest) {
    functions.push_back({{"function", function.name},
                         {"module", function.module},
                         {"samples", function.self.samples},
                         {"share", share_of(function.self, part.weight)}});
  }
  return {{"samples", part.weight.samples},
          {"ns", part.weight.value},
          {"functions", std::move(functions)}};
}

// "  CRIU 38: 62 % in copy_page_to_iter, 11 % in memcpy".
std::string line_of(const char* who, const StackSummary::Part& part) {
  if (part.weight.samples == 0) return {};
  std::string text = std::string("    ") + who + ", " + with_commas(part.weight.samples) + ": ";
  const char* separator = "";
  for (const stacks::HotFunction& function : part.hottest) {
    const double share = share_of(function.self, part.weight);
    text += separator + whole_percent(share) + " in " +
            shortened(printable(function.name), kNameLength);
    separator = ", ";
  }
  return text + "\n";
}

std::string samples_text(std::uint64_t samples) {
  return with_commas(samples) + (samples == 1 ? " sample" : " samples");
}

}  // namespace

StackSummary summary_of(const NamedProfile& profile, std::size_t functions) {
  StackSummary summary;
  summary.period_ns = profile.period_ns;
  summary.lost = profile.lost;
  std::vector<std::string> phases = stacks::phases_in(profile);
  const bool some_without =
      std::any_of(profile.stacks.begin(), profile.stacks.end(),
                  [](const NamedProfile::Stack& stack) { return stack.phase.empty(); });
  if (some_without) phases.emplace_back();
  for (const std::string& name : phases) {
    const NamedProfile phase = stacks::of_phase(profile, name);
    summary.phases.push_back({name, phase.sum(), part_of(phase, stacks::kCriuRole, functions),
                              part_of(phase, stacks::kTargetRole, functions)});
  }
  return summary;
}

std::vector<std::string> stack_profiles_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename();
    if (!name.ends_with(kEnding)) continue;
    name.resize(name.size() - kEnding.size());
    names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

Result<NamedProfile> read_stacks(const std::string& folder, const std::string& name) {
  const std::string file = name + std::string(kEnding);
  const Result<std::string> bytes = read_beneath(folder, file, kMaxStackFile);
  if (!bytes) return bytes.error();
  return stacks::read_pprof(*bytes, folder + "/" + file);
}

Result<NamedProfile> read_stack_file(const std::string& folder, const std::string& name,
                                     stacks::Quantity quantity) {
  const Result<std::string> bytes = read_beneath(folder, name, kMaxStackFile);
  if (!bytes) return bytes.error();
  return stacks::is_folded(name) ? stacks::read_folded(*bytes, name, quantity)
                                 : stacks::read_pprof(*bytes, name, quantity);
}

std::vector<StackSummary> stacks_of_checkpoint(const std::string& directory,
                                               std::vector<std::string>& notes) {
  const std::string folder = directory + "/recordings";
  std::vector<StackSummary> summaries;
  for (const std::string& name : stack_profiles_in(folder)) {
    const Result<NamedProfile> profile = read_stacks(folder, name);
    if (!profile) {
      notes.push_back(profile.error().message);
      continue;
    }
    summaries.push_back(summary_of(*profile, kFunctions));
    summaries.back().name = name;
  }
  return summaries;
}

std::string text_of(const StackSummary& summary) {
  std::string text = "stacks of the " + printable(summary.name);
  if (summary.period_ns != 0) text += ", one each " + duration(summary.period_ns) + " of CPU time";
  if (summary.lost != 0) text += "; " + samples_text(summary.lost) + " lost";
  text += "\n";
  for (const StackSummary::PhaseStacks& phase : summary.phases) {
    text += "  " + (phase.phase.empty() ? "no phase" : printable(phase.phase)) + ": " +
            samples_text(phase.weight.samples) + "\n" + line_of("CRIU", phase.criu) +
            line_of("target", phase.target);
  }
  if (summary.phases.empty()) text += "  no samples\n";
  return text;
}

nlohmann::json json_of(const StackSummary& summary) {
  nlohmann::json phases = nlohmann::json::array();
  for (const StackSummary::PhaseStacks& phase : summary.phases) {
    phases.push_back({{"phase", phase.phase},
                      {"samples", phase.weight.samples},
                      {"ns", phase.weight.value},
                      {"criu", json_of(phase.criu)},
                      {"target", json_of(phase.target)}});
  }
  return {{"recording", summary.name},
          {"period_ns", summary.period_ns},
          {"lost", summary.lost},
          {"phases", std::move(phases)}};
}

}  // namespace kymo::report
