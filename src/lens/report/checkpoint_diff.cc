#include "lens/report/checkpoint_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/rate.h"
#include "checkpoint/diagnosis/change.h"
#include "lens/report/explanation.h"
#include "lens/report/human.h"
#include "lens/report/table.h"
#include "recorder/metrics/unit_names.h"

namespace kymo::report {
namespace {

using Key = std::pair<std::string, std::string>;  // group, name

// The values of one checkpoint by their group and name.
class CheckpointValues {
 public:
  void add(const std::string& group, const std::string& name, Unit unit, double value,
           bool per_second = false) {
    Entry& entry = entries_[{group, name}];
    entry.unit = unit;
    entry.per_second = per_second;
    entry.value += value;  // several stretches of a phase or mappings of one file add up
  }

  struct Entry {
    Unit unit = Unit::count;
    bool per_second = false;
    double value = 0;
  };
  [[nodiscard]] const std::map<Key, Entry>& all() const { return entries_; }

 private:
  std::map<Key, Entry> entries_;
};

void add_figures(const std::string& group, const std::vector<criu::StatsFigure>& figures,
                 CheckpointValues& values) {
  for (const criu::StatsFigure& figure : figures) {
    values.add(group, figure.name, figure.unit, static_cast<double>(figure.value));
  }
}

// All of the request, if kymod recorded it, and else what CRIU's log shows.
std::vector<diagnosis::Phase> phases_of_dump(const CheckpointStats& stats) {
  if (Result<Explanation> known = explain_checkpoint(stats)) return std::move(known->phases);
  if (!stats.dump_phases) return {};
  return diagnosis::phases_of_log(*stats.dump_phases, false);
}

void add_phases(const std::string& group, const std::vector<diagnosis::Phase>& phases,
                CheckpointValues& values) {
  constexpr double kNanosInAMicro = 1000;
  for (const diagnosis::Phase& phase : phases) {
    const double us = static_cast<double>(phase.duration_ns()) / kNanosInAMicro;
    values.add(group, "phases in all", Unit::microseconds, us);
    values.add(group, "phase: " + phase.name, Unit::microseconds, us);
  }
}

void add_pages(const criu::CheckpointPages& pages, CheckpointValues& values) {
  for (const criu::ProcessPages& process : pages.processes) {
    // Pids differ from run to run, so processes are matched by command and mappings by file.
    const std::string whose = process.command.empty() ? "(no name)" : process.command;
    for (const criu::MappingPages& mapping : process.mappings) {
      values.add(whose, mapping.name, Unit::bytes,
                 static_cast<double>(mapping.pages.present * criu::kPageBytes));
    }
  }
  for (const criu::SharedPages& shared : pages.shared) {
    values.add("shared memory", "all", Unit::bytes,
               static_cast<double>(shared.pages.present * criu::kPageBytes));
  }
}

CheckpointValues checkpoint_values(const CheckpointStats& stats) {
  CheckpointValues values;
  values.add("images", "size", Unit::bytes, static_cast<double>(stats.image_bytes));
  values.add("images", "files", Unit::count, static_cast<double>(stats.image_files));
  if (stats.shape) {
    values.add("images", "mappings", Unit::count, static_cast<double>(stats.shape->mappings));
    values.add("images", "pieces of memory", Unit::count, static_cast<double>(stats.shape->runs));
  }
  add_phases("dump", phases_of_dump(stats), values);
  if (stats.restore_phases) {
    add_phases("restore", diagnosis::phases_of_log(*stats.restore_phases, true), values);
  }
  if (stats.dump) {
    add_figures("dump", figures(*stats.dump), values);
    if (stats.dump->memwrite_time_us != 0) {
      values.add("dump", "memory written", Unit::bytes,
                 rate_per_second(static_cast<double>(stats.dump->pages_written * criu::kPageBytes),
                                 stats.dump->memwrite_time_us * std::uint64_t{1000}),
                 true);
    }
  }
  if (stats.restore) {
    add_figures("restore", figures(*stats.restore), values);
  }
  add_pages(stats.pages, values);
  return values;
}

bool was_dumped(const CheckpointStats& stats) {
  return stats.dump.has_value() || stats.dump_phases.has_value();
}

bool was_restored(const CheckpointStats& stats) {
  return stats.restore.has_value() || stats.restore_phases.has_value();
}

// The order: times, sizes, throughput, counts; then, in the same order, values that only one of the
// two has.
int rank(const Difference& difference) {
  constexpr int kOnlyOne = 4;
  const int missing = difference.before && difference.after ? 0 : kOnlyOne;
  if (difference.per_second) return missing + 2;
  if (difference.unit == Unit::microseconds || difference.unit == Unit::nanoseconds) return missing;
  return missing + (difference.unit == Unit::bytes ? 1 : 3);
}

std::string shown(const std::optional<double>& amount, const Difference& difference) {
  if (!amount) {
    return "-";
  }
  return difference.per_second ? rate(*amount, difference.unit) : value(*amount, difference.unit);
}

diagnosis::DumpFacts facts_of(const Explanation& explanation, const CheckpointStats& stats) {
  return {explanation.frozen_ns,
          stats.dump ? stats.dump->all_pages_written() * criu::kPageBytes : 0, explanation.phases,
          explanation.shares, stats.shape};
}

// Nothing if it is not known.
std::vector<std::string> why_it_changed(const CheckpointStats& before,
                                        const CheckpointStats& after) {
  const Result<Explanation> a = explain_checkpoint(before);
  const Result<Explanation> b = explain_checkpoint(after);
  if (!a || !b) return {};
  return diagnosis::explain_change(facts_of(*a, before), facts_of(*b, after));
}

std::string signed_change(const Difference& difference) {
  if (!difference.after) return "only in A";
  if (!difference.before) return "only in B";
  const double change = difference.change();
  return (change < 0 ? "-" : "+") + shown(std::abs(change), difference);
}

}  // namespace

std::optional<double> Difference::share() const {
  if (!before || !after || *before == 0) {
    return {};
  }
  return change() / *before;
}

std::vector<std::string> one_sided_notes(const CheckpointStats& before,
                                         const CheckpointStats& after) {
  std::vector<std::string> notes;
  if (was_dumped(before) != was_dumped(after)) {
    notes.push_back(std::string("only ") + (was_dumped(before) ? "A" : "B") +
                    " has statistics of its dump: dumps are not compared");
  }
  if (was_restored(before) != was_restored(after)) {
    notes.push_back(std::string("only ") + (was_restored(before) ? "A" : "B") +
                    " was restored: restores are not compared");
  }
  return notes;
}

std::vector<Difference> compare(const CheckpointStats& before, const CheckpointStats& after) {
  std::map<Key, Difference> all;
  const auto put = [&all](const CheckpointValues& values, std::optional<double> Difference::*side) {
    for (const auto& [key, entry] : values.all()) {
      Difference& difference = all[key];
      difference.group = key.first;
      difference.name = key.second;
      difference.unit = entry.unit;
      difference.per_second = entry.per_second;
      difference.*side = entry.value;
    }
  };
  put(checkpoint_values(before), &Difference::before);
  put(checkpoint_values(after), &Difference::after);
  std::vector<Difference> differences;
  const bool dumps = was_dumped(before) == was_dumped(after);
  const bool restores = was_restored(before) == was_restored(after);
  for (auto& [key, difference] : all) {
    if ((key.first == "dump" && !dumps) || (key.first == "restore" && !restores)) continue;
    if (difference.change() != 0) {
      differences.push_back(std::move(difference));
    }
  }
  std::stable_sort(
      differences.begin(), differences.end(), [](const Difference& a, const Difference& b) {
        return rank(a) != rank(b) ? rank(a) < rank(b) : std::abs(a.change()) > std::abs(b.change());
      });
  return differences;
}

CheckpointDiff diff_of(const CheckpointStats& before, const CheckpointStats& after) {
  return {before.path, after.path, why_it_changed(before, after), one_sided_notes(before, after),
          compare(before, after)};
}

std::string text_of(const CheckpointDiff& diff, std::size_t rows) {
  const std::vector<Difference>& differences = diff.differences;
  std::string text = fmt::format("A  {}\nB  {}\n", printable(diff.before), printable(diff.after));
  for (const std::string& line : diff.lines) text += printable(line) + '\n';
  for (const std::string& note : diff.notes) text += note + '\n';
  if (differences.empty()) {
    return text + "nothing differs\n";
  }
  Table table({{"", Table::Align::left},
               {"WHAT CHANGED MOST FIRST", Table::Align::left},
               {"A", Table::Align::right},
               {"B", Table::Align::right},
               {"CHANGE", Table::Align::right},
               {"", Table::Align::right}});
  const std::size_t shown_rows = std::min(rows, differences.size());
  for (std::size_t i = 0; i < shown_rows; ++i) {
    const Difference& difference = differences[i];
    const std::optional<double> share = difference.share();
    table.add({printable(difference.group), printable(difference.name),
               shown(difference.before, difference), shown(difference.after, difference),
               signed_change(difference), share ? signed_percent(*share) : ""});
  }
  text += table.str();
  if (shown_rows < differences.size()) {
    text += fmt::format("  and {} more (--rows)\n", differences.size() - shown_rows);
  }
  return text;
}

nlohmann::json json_of(const CheckpointDiff& diff) {
  nlohmann::json list = nlohmann::json::array();
  for (const Difference& difference : diff.differences) {
    nlohmann::json json{{"group", difference.group},
                        {"name", difference.name},
                        {"unit", unit_name(difference.unit)},
                        {"per_second", difference.per_second},
                        {"change", difference.change()}};
    json["a"] = difference.before ? nlohmann::json(*difference.before) : nlohmann::json();
    json["b"] = difference.after ? nlohmann::json(*difference.after) : nlohmann::json();
    const std::optional<double> share = difference.share();
    json["share"] = share ? nlohmann::json(*share) : nlohmann::json();
    list.push_back(std::move(json));
  }
  return {{"a", diff.before},
          {"b", diff.after},
          {"lines", diff.lines},
          {"notes", diff.notes},
          {"differences", std::move(list)}};
}

}  // namespace kymo::report
