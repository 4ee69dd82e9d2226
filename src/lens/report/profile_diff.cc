#include "lens/report/profile_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "lens/report/about.h"
#include "lens/report/human.h"
#include "lens/report/table.h"
#include "lens/report/weight.h"

namespace kymo::report {
namespace {

using stacks::Comparison;
using stacks::FunctionChange;
using stacks::ShareChange;
using stacks::ShareVerdict;
using Changes = std::vector<const FunctionChange*>;
using Share = ShareChange FunctionChange::*;

constexpr std::size_t kShareLabel = 12;
constexpr std::size_t kShareLine = 100;
constexpr std::size_t kFunctionLength = 60;

std::string share_line(const char* label, const std::string& text) {
  return fmt::format("{:<{}}{}\n", label, kShareLabel, text);
}

std::string function_name(const FunctionChange& function) {
  return shortened(printable(function.name), kFunctionLength);
}

std::string module_name(const FunctionChange& function) {
  return printable(function.module.substr(function.module.rfind('/') + 1));
}

std::string profile_side(const char* label, const std::string& path, const Comparison& comparison,
                         const Comparison::Side& side) {
  std::string text =
      printable(path) + ": " + weight_sentence(comparison.quantity, side.sum, side.duration_ns);
  if (side.lost != 0) text += "; " + with_commas(side.lost) + " lost";
  return share_line(label, text);
}

std::string share_test_line(const Comparison& comparison) {
  if (comparison.quantity != stacks::Quantity::cpu) {
    return share_line("test", std::string("none: of ") + facts_of(comparison.quantity).counted +
                                  " only the sum is known, not how far they differ");
  }
  if (comparison.by_value) {
    return share_line("test", "none: a profile does not say how many samples it has");
  }
  return share_line(
      "test", fmt::format("Fisher's, on numbers of samples; p corrected (Holm) for {} share{}",
                          with_commas(comparison.tests), comparison.tests == 1 ? "" : "s"));
}

std::string heading_of(const ProfileDiff& diff) {
  const Comparison& comparison = diff.comparison;
  return profile_side("A", diff.before, comparison, comparison.before) +
         profile_side("B", diff.after, comparison, comparison.after) +
         share_line("compared", fmt::format("{} function{}: own and total shares of the {}",
                                            with_commas(comparison.functions.size()),
                                            comparison.functions.size() == 1 ? "" : "s",
                                            shares_of(comparison))) +
         share_test_line(comparison);
}

// The functions of which `wanted` is true, those whose share changed most first.
template <typename Wanted>
Changes sorted_changes(const Comparison& comparison, Share share, Wanted wanted) {
  Changes all;
  for (const FunctionChange& function : comparison.functions) {
    if (wanted(function)) all.push_back(&function);
  }
  std::stable_sort(all.begin(), all.end(), [&](const auto* a, const auto* b) {
    return std::abs((a->*share).difference()) > std::abs((b->*share).difference());
  });
  return all;
}

std::string points(double difference) {
  return fmt::format("{:+.2f}", 100 * difference);
}

std::string p_text(const ShareChange& change) {
  if (!change.p) return "-";
  return change.p->adjusted_p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", change.p->adjusted_p);
}

std::string change_word(const ShareChange& change) {
  if (change.verdict != ShareVerdict::not_tested) return to_string(change.verdict);
  return change.share_before == 0 ? "only B" : change.share_after == 0 ? "only A" : "";
}

std::string rest_line(std::size_t shown_rows, std::size_t all) {
  return shown_rows < all ? fmt::format("and {} more (--rows)\n", all - shown_rows) : "";
}

std::string share_table(const std::string& title, const Changes& functions, Share share,
                        std::size_t rows, const Comparison& comparison) {
  using Align = Table::Align;
  if (functions.empty()) return "";
  Table table({{"A"},
               {"B"},
               {"POINTS"},
               {"IN A"},
               {"IN B"},
               {"p"},
               {"CHANGE", Align::left},
               {"FUNCTION", Align::left},
               {"MODULE", Align::left}});
  // Folded stacks have only samples.
  const bool values = comparison.before.sum.value != 0 && comparison.after.sum.value != 0;
  const auto amount = [&](const stacks::Weight& weight) {
    return values ? value_text(comparison.quantity, weight.value) : with_commas(weight.samples);
  };
  for (std::size_t i = 0; i < std::min(rows, functions.size()); ++i) {
    const ShareChange& change = functions[i]->*share;
    table.add({percent(change.share_before), percent(change.share_after),
               points(change.difference()), amount(change.before), amount(change.after),
               p_text(change), change_word(change), function_name(*functions[i]),
               module_name(*functions[i])});
  }
  return "\n" + title + "\n" + table.str() + rest_line(rows, functions.size());
}

std::string changed_shares(const std::string& title, const Comparison& comparison, Share share,
                           std::size_t rows) {
  const Changes functions = sorted_changes(comparison, share, [share](const FunctionChange& one) {
    return (one.*share).beyond_noise();
  });
  return share_table(title, functions, share, rows, comparison);
}

std::string changed_tables(const Comparison& comparison, std::size_t rows) {
  const std::string text =
      changed_shares("OWN SHARE CHANGED BEYOND NOISE", comparison, &FunctionChange::self, rows) +
      changed_shares("TOTAL SHARE CHANGED BEYOND NOISE", comparison, &FunctionChange::total, rows);
  if (text.empty()) return "\nnothing changed beyond noise\n";
  return text +
         "CHANGE is of the share of all, which may shrink while the function's own value grows (IN "
         "A, IN B).\n"
         "The profiles differ by more than the chance of sampling; two runs of one program may, "
         "too:\nprofile it twice to see how much\n";
}

// All stacks of waits end in the scheduler, so that only the total shares tell something.
std::string untested_table(const Comparison& comparison, std::size_t rows) {
  return share_table("TOTAL SHARE, NOT TO BE TOLD FROM NOISE",
                     sorted_changes(comparison, &FunctionChange::total,
                                    [](const FunctionChange& function) {
                                      return function.total.difference() != 0;
                                    }),
                     &FunctionChange::total, rows, comparison);
}

bool is_one_sided(const FunctionChange& function, bool only_after) {
  const ShareChange& total = function.total;
  return !total.beyond_noise() && (only_after ? total.share_before : total.share_after) == 0 &&
         total.difference() != 0;
}

// Functions that only one profile has, and too rarely to call them new or vanished.
std::string one_sided_list(const Comparison& comparison, bool only_after, std::size_t rows) {
  const Changes functions = sorted_changes(
      comparison, &FunctionChange::total,
      [&](const FunctionChange& function) { return is_one_sided(function, only_after); });
  if (functions.empty()) return "";
  std::vector<std::string> names;
  for (const FunctionChange* function : functions) {
    if (names.size() == rows) break;
    names.push_back(function_name(*function));
  }
  if (names.size() < functions.size()) {
    names.push_back(fmt::format("and {} more", functions.size() - names.size()));
  }
  names.front().insert(
      0, fmt::format("{}{}: ", functions.size(), comparison.by_value ? "" : ", not beyond noise"));
  return wrapped_list(only_after ? "only in B" : "only in A", names, kShareLabel, kShareLine);
}

std::string few_samples_line(const Comparison& comparison) {
  if (comparison.by_value) return "";
  const auto few = std::count_if(comparison.functions.begin(), comparison.functions.end(),
                                 [](const FunctionChange& function) {
                                   return function.total.verdict == ShareVerdict::not_tested;
                                 });
  return few == 0 ? ""
                  : share_line("not tested",
                               fmt::format("{} function{} with too few samples in both profiles",
                                           few, few == 1 ? "" : "s"));
}

std::string names_text(const Changes& functions) {
  constexpr std::size_t kMaxNames = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMaxNames, functions.size()); ++i) {
    text += (i == 0 ? "" : ", ") + function_name(*functions[i]);
  }
  if (functions.size() > kMaxNames) {
    text += fmt::format(" and {} more", functions.size() - kMaxNames);
  }
  return text;
}

std::string count_text(const Changes& functions) {
  return functions.size() == 1 ? "a function" : fmt::format("{} functions", functions.size());
}

std::string share_check_line(const Comparison& comparison, double allowed) {
  const ShareCheck check = check_shares(comparison, allowed);
  const std::string limit = fmt::format("{:g} points", allowed * 100);
  switch (check.outcome) {
    case ChangeCheck::Outcome::no_change:
      break;
    case ChangeCheck::Outcome::changed:
      return fmt::format("\nCHANGE: {} beyond noise and beyond {}: {}\n", count_text(check.changed),
                         limit, names_text(check.changed));
    case ChangeCheck::Outcome::cannot_tell:
      return fmt::format(
          "\nCANNOT TELL whether {} changed beyond noise and beyond {}: {}\n{}",
          count_text(check.undecided), limit, names_text(check.undecided),
          comparison.by_value ? "" : "  It takes more samples: profile for longer\n");
  }
  return "\nno change beyond noise and beyond " + limit + "\n";
}

double largest_difference(const FunctionChange& function) {
  return std::max(std::abs(function.self.difference()), std::abs(function.total.difference()));
}

nlohmann::ordered_json share_json(const ShareChange& change, const std::string& unit) {
  nlohmann::ordered_json json = {{"a", change.share_before},
                                 {"b", change.share_after},
                                 {"points", 100 * change.difference()},
                                 {"verdict", to_string(change.verdict)},
                                 {"a_samples", change.before.samples},
                                 {"b_samples", change.after.samples},
                                 {"a_" + unit, change.before.value},
                                 {"b_" + unit, change.after.value}};
  if (change.p) {
    json["p"] = change.p->p;
    json["adjusted_p"] = change.p->adjusted_p;
  }
  return json;
}

nlohmann::ordered_json side_json(const std::string& path, const Comparison::Side& side,
                                 const std::string& unit) {
  return {{"path", path},
          {"samples", side.sum.samples},
          {unit, side.sum.value},
          {"duration_ns", side.duration_ns},
          {"lost", side.lost}};
}

nlohmann::ordered_json functions_json(const Comparison& comparison) {
  // Own shares say where the time is used; that of waiting is all in the scheduler.
  const Share share = facts_of(comparison.quantity).sorted_by_total ? &FunctionChange::total
                                                                    : &FunctionChange::self;
  Changes functions = sorted_changes(comparison, share, [](const FunctionChange&) { return true; });
  std::stable_sort(functions.begin(), functions.end(), [&](const auto* a, const auto* b) {
    return std::tuple((a->*share).beyond_noise(), a->total.beyond_noise()) >
           std::tuple((b->*share).beyond_noise(), b->total.beyond_noise());
  });
  const std::string unit = facts_of(comparison.quantity).unit;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const FunctionChange* function : functions) {
    json.push_back({{"function", function->name},
                    {"module", function->module},
                    {"self", share_json(function->self, unit)},
                    {"total", share_json(function->total, unit)}});
  }
  return json;
}

nlohmann::ordered_json share_check_json(const Comparison& comparison, double allowed) {
  const ShareCheck check = check_shares(comparison, allowed);
  const auto names = [](const Changes& functions) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const FunctionChange* function : functions) list.push_back(function->name);
    return list;
  };
  return {{"allowed", allowed},
          {"outcome", to_string(check.outcome)},
          {"failed", !check.changed.empty()},
          {"functions", names(check.changed)},
          {"cannot_tell", names(check.undecided)}};
}

}  // namespace

std::string shares_of(const Comparison& comparison) {
  if (!comparison.by_value) return "samples";
  const stacks::QuantityFacts& facts = facts_of(comparison.quantity);
  if (facts.unit == std::string("count")) return facts.counted;
  return facts.unit == std::string("ns") ? "time" : facts.unit;
}

ShareCheck check_shares(const Comparison& comparison, double allowed) {
  ShareCheck check;
  for (const FunctionChange& function : comparison.functions) {
    bool changed = false;
    bool undecided = false;
    for (const ShareChange* change : {&function.self, &function.total}) {
      if (std::abs(change->difference()) <= allowed) continue;
      changed = changed || change->beyond_noise();
      undecided = undecided || change->verdict == ShareVerdict::not_tested;
    }
    if (changed) {
      check.changed.push_back(&function);
    } else if (undecided) {
      check.undecided.push_back(&function);
    }
  }
  for (Changes* const list : {&check.changed, &check.undecided}) {
    std::stable_sort(list->begin(), list->end(), [](const auto* a, const auto* b) {
      return largest_difference(*a) > largest_difference(*b);
    });
  }
  check.outcome = !check.changed.empty()     ? ChangeCheck::Outcome::changed
                  : !check.undecided.empty() ? ChangeCheck::Outcome::cannot_tell
                                             : ChangeCheck::Outcome::no_change;
  return check;
}

std::string text_of(const ProfileDiff& diff, std::size_t rows, std::optional<double> allowed) {
  const Comparison& comparison = diff.comparison;
  std::string text = heading_of(diff) + (comparison.by_value ? untested_table(comparison, rows)
                                                             : changed_tables(comparison, rows));
  const std::string lists = one_sided_list(comparison, true, rows) +
                            one_sided_list(comparison, false, rows) + few_samples_line(comparison);
  if (!lists.empty()) text += "\n" + lists;
  return allowed ? text + share_check_line(comparison, *allowed) : text;
}

nlohmann::ordered_json json_of(const ProfileDiff& diff, std::optional<double> allowed) {
  const Comparison& comparison = diff.comparison;
  const stacks::QuantityFacts& facts = facts_of(comparison.quantity);
  nlohmann::ordered_json json = {
      {"format_version", 1},
      {"compared", "stack profiles"},
      {"kind", facts.name},
      {"unit", facts.unit},
      {"a", side_json(diff.before, comparison.before, facts.unit)},
      {"b", side_json(diff.after, comparison.after, facts.unit)},
      {"shares_of", shares_of(comparison)},
      {"test", comparison.by_value ? nlohmann::ordered_json() : "Fisher"},
      {"correction", comparison.by_value ? nlohmann::ordered_json() : "Holm"},
      {"allowed_p", stacks::kShareLevel},
      {"tested", comparison.tests},
      {"functions", functions_json(comparison)}};
  if (allowed) json["fail_on_change"] = share_check_json(comparison, *allowed);
  return json;
}

}  // namespace kymo::report
