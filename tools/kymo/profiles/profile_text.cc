#include "profiles/profile_text.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "lens/report/human.h"
#include "lens/report/table.h"
#include "lens/report/weight.h"

namespace kymo::cli {
namespace {

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

stacks::Order order_of(const std::string& sort, stacks::Quantity quantity) {
  const bool by_total = sort == "total" || (sort.empty() && facts_of(quantity).sorted_by_total);
  return by_total ? stacks::Order::total : stacks::Order::self;
}

std::string profile_summary(const Taken& profile, const stacks::Hottest& hottest) {
  using report::with_commas;
  const stacks::SourceCounts counts = profile.counts.value_or(stacks::SourceCounts{});
  std::string text =
      report::weight_sentence(profile.quantity, hottest.sum, profile.duration_ns) + "\n";
  if (counts.short_waits != 0) {
    text += with_commas(counts.short_waits) + " shorter waits, " +
            report::duration(counts.short_wait_ns) + " in all, have no stacks\n";
  }
  if (profile.counts) {
    text += "lost: " + with_commas(counts.lost) + " " + facts_of(profile.quantity).counted + "; ";
  }
  text += "unknown: " + with_commas(hottest.unknown_frames) + " of " + with_commas(hottest.frames) +
          " frames; truncated: " + with_commas(hottest.truncated) + " stacks\n";
  if (counts.lost_mappings != 0) {
    text += "lost: " + with_commas(counts.lost_mappings) +
            " records of what processes mapped; names may be missing\n";
  }
  return text;
}

std::string profile_table(stacks::Quantity quantity, const stacks::Hottest& hottest,
                          std::size_t rows) {
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
    table.add({report::value_text(quantity, function.self.value),
               report::percent(share_of(function.self.value, hottest.sum.value)),
               report::value_text(quantity, function.total.value),
               report::percent(share_of(function.total.value, hottest.sum.value)),
               report::shortened(function.name, kNameLength),
               std::filesystem::path(function.module).filename()});
  }
  return table.empty() ? "" : "\n" + table.str(0);
}

nlohmann::ordered_json profile_json(const Taken& profile, const stacks::Hottest& hottest,
                                    std::size_t rows) {
  const stacks::SourceCounts counts = profile.counts.value_or(stacks::SourceCounts{});
  const std::string unit = facts_of(profile.quantity).unit;
  nlohmann::ordered_json functions = nlohmann::ordered_json::array();
  for (const stacks::HotFunction& function : hottest.functions) {
    if (rows-- == 0) break;
    functions.push_back({{"function", function.name},
                         {"module", function.module},
                         {"self_samples", function.self.samples},
                         {"self_" + unit, function.self.value},
                         {"self_share", share_of(function.self.value, hottest.sum.value)},
                         {"total_samples", function.total.samples},
                         {"total_" + unit, function.total.value},
                         {"total_share", share_of(function.total.value, hottest.sum.value)}});
  }
  return {{"format_version", 1},
          {"kind", facts_of(profile.quantity).name},
          {"unit", unit},
          {"duration_ns", profile.duration_ns},
          {"period_ns", profile.period_ns},
          {"samples", hottest.sum.samples},
          {unit, hottest.sum.value},
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
