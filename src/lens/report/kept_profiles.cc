#include "lens/report/kept_profiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lens/report/flame_page.h"
#include "profiler/stacks/frame_tree.h"
#include "profiler/stacks/output.h"

namespace kymo::report {

std::string bars_of(const profiles::Steps& steps) {
  const std::array<const char*, 9> bars{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::uint64_t highest = 1;
  for (const profiles::Step& step : steps.steps) highest = std::max(highest, step.weight.value);
  std::string text;
  for (const profiles::Step& step : steps.steps) {
    const double height = static_cast<double>(step.weight.value) / static_cast<double>(highest);
    text += bars[static_cast<std::size_t>(std::ceil(height * (bars.size() - 1)))];
  }
  return text;
}

nlohmann::ordered_json json_of(const profiles::Extent& extent) {
  return {{"oldest_unix_ns", extent.oldest * profiles::kNanosPerMinute},
          {"newest_unix_ns", extent.newest * profiles::kNanosPerMinute},
          {"minutes", extent.minutes},
          {"stacks", extent.stacks},
          {"rows", extent.rows},
          {"samples", extent.samples},
          {"bytes", extent.bytes}};
}

nlohmann::ordered_json json_of(const profiles::ServiceTotal& total) {
  return {{"service", profiles::text_of(total.service)},
          {"type", profiles::name_of(total.type)},
          {"samples", total.weight.samples},
          {facts_of(quantity_of(total.type)).unit, total.weight.value}};
}

nlohmann::ordered_json flame_json(const stacks::NamedProfile& profile, const std::string& title) {
  const stacks::Hottest hottest = stacks::hottest(profile);
  nlohmann::ordered_json json = {{"title", title},
                                 {"duration_ns", profile.duration_ns},
                                 {"samples", hottest.sum.samples},
                                 {facts_of(profile.quantity).unit, hottest.sum.value},
                                 {"lost", profile.lost},
                                 {"lost_mappings", 0},
                                 {"frames", hottest.frames},
                                 {"unknown_frames", hottest.unknown_frames},
                                 {"truncated", hottest.truncated}};
  add_tree(stacks::frame_tree(profile), json);
  return json;
}

}  // namespace kymo::report
