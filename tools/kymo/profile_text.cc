#include "profile_text.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "report/human.h"
#include "report/table.h"

namespace kymo::cli {
namespace {

// A value in the unit of the profile.
std::string weight_text(const stacks::Weight& weight) {
  return report::duration(weight.ns);
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string profile_summary(const Taken& profile, const stacks::Hottest& hottest) {
  using report::with_commas;
  const stacks::SourceCounts counts = profile.counts.value_or(stacks::SourceCounts{});
  std::string text = profile.waits ? report::duration(hottest.sum.ns) + " of waiting in " +
                                         with_commas(hottest.sum.samples) + " waits"
                                   : report::duration(hottest.sum.ns) + " of CPU time in " +
                                         with_commas(hottest.sum.samples) + " samples";
  text += " of " + report::duration(profile.duration_ns) + "\n";
  if (counts.short_waits != 0) {
    text += with_commas(counts.short_waits) + " shorter waits, " +
            report::duration(counts.short_wait_ns) + " in all, have no stacks\n";
  }
  if (profile.counts) {
    text += "lost: " + with_commas(counts.lost) + (profile.waits ? " waits" : " samples") + "; ";
  }
  text += "unknown: " + with_commas(hottest.unknown_frames) + " of " + with_commas(hottest.frames) +
          " frames; truncated: " + with_commas(hottest.truncated) + " stacks\n";
  if (counts.lost_mappings != 0) {
    text += "lost: " + with_commas(counts.lost_mappings) +
            " records of what processes mapped; names may be missing\n";
  }
  return text;
}

std::string profile_table(const stacks::Hottest& hottest, std::size_t rows) {
  constexpr std::size_t kNameLength = 60;
  using Align = report::Table::Align;
  report::Table table({{"SELF"},
                       {"SHARE"},
                       {"TOTAL"},
                       {"SHARE"},
                       {"FUNCTION", Align::left},
                       {"MODULE", Align::left}});
  for (const stacks::HotFunction& function : hottest.functions) {
    if (rows-- == 0) break;
    table.add(
        {weight_text(function.self), report::percent(share_of(function.self.ns, hottest.sum.ns)),
         weight_text(function.total), report::percent(share_of(function.total.ns, hottest.sum.ns)),
         report::shortened(function.name, kNameLength),
         std::filesystem::path(function.module).filename()});
  }
  return table.empty() ? "" : "\n" + table.str(0);
}

nlohmann::ordered_json profile_json(const Taken& profile, const stacks::Hottest& hottest,
                                    std::size_t rows) {
  const stacks::SourceCounts counts = profile.counts.value_or(stacks::SourceCounts{});
  nlohmann::ordered_json functions = nlohmann::ordered_json::array();
  for (const stacks::HotFunction& function : hottest.functions) {
    if (rows-- == 0) break;
    functions.push_back({{"function", function.name},
                         {"module", function.module},
                         {"self_samples", function.self.samples},
                         {"self_ns", function.self.ns},
                         {"self_share", share_of(function.self.ns, hottest.sum.ns)},
                         {"total_samples", function.total.samples},
                         {"total_ns", function.total.ns},
                         {"total_share", share_of(function.total.ns, hottest.sum.ns)}});
  }
  return {{"format_version", 1},
          {"kind", profile.waits ? "wait" : "cpu"},
          {"duration_ns", profile.duration_ns},
          {"period_ns", profile.period_ns},
          {"samples", hottest.sum.samples},
          {"ns", hottest.sum.ns},
          {"lost", counts.lost},
          {"lost_mappings", counts.lost_mappings},
          {"short_waits", counts.short_waits},
          {"short_wait_ns", counts.short_wait_ns},
          {"own_cpu_ns", profile.cpu_ns},
          {"bpf_ns", counts.bpf_ns},
          {"frames", hottest.frames},
          {"unknown_frames", hottest.unknown_frames},
          {"truncated", hottest.truncated},
          {"functions", std::move(functions)}};
}

}  // namespace kymo::cli
