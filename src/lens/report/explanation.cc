#include "lens/report/explanation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/beneath.h"
#include "base/json_text.h"
#include "base/recording_name.h"
#include "checkpoint/diagnosis/verdict.h"
#include "lens/analysis/metadata.h"
#include "lens/report/human.h"
#include "lens/report/table.h"

namespace kymo::report {
namespace {

// Only shares that can be true.
std::vector<std::pair<std::string, double>> shares_from(const nlohmann::json& verdict) {
  constexpr double kMaxShare = 1000;  // of the time; as many CPUs may have waited at once
  std::vector<std::pair<std::string, double>> shares;
  const auto list = verdict.find("shares");
  if (list == verdict.end() || !list->is_object()) return shares;
  for (const auto& [name, share] : list->items()) {
    if (!share.is_number()) continue;
    const auto value = share.get<double>();
    if (value >= 0 && value <= kMaxShare) shares.emplace_back(name, value);
  }
  return shares;
}

Explanation made_from(const CheckpointStats& stats) {
  diagnosis::Facts facts;
  if (stats.dump_phases) {
    facts.phases = diagnosis::phases_of_log(*stats.dump_phases, false);
    facts.longest_pause = stats.dump_phases->longest_pause;
    if (!facts.phases.empty()) facts.duration_ns = facts.phases.back().end_ns;
  }
  facts.dump = stats.dump;
  facts.shape = stats.shape;
  facts.recorded = false;
  facts.log = stats.dump_log;
  diagnosis::Verdict verdict = diagnosis::explain(facts);
  Explanation explanation{
      verdict.frozen_ns, std::move(verdict.lines), std::move(facts.phases), {}, stats.notes};
  if (!stats.unfinished.empty()) {
    explanation.lines.insert(explanation.lines.begin(), stats.unfinished);
  }
  explanation.unknown.emplace_back(
      "kymod did not record this dump: what CRIU waited for is not known");
  return explanation;
}

struct Sum {
  const diagnosis::Phase* first = nullptr;
  std::uint64_t ns = 0;
};

// The phases by name, in the order in which they begin.
std::vector<Sum> sums_of(const std::vector<diagnosis::Phase>& phases) {
  std::vector<Sum> sums;
  for (const diagnosis::Phase& phase : phases) {
    const auto known = std::find_if(sums.begin(), sums.end(), [&](const Sum& sum) {
      return sum.first->name == phase.name && sum.first->frozen == phase.frozen;
    });
    if (known == sums.end()) {
      sums.push_back({&phase, phase.duration_ns()});
    } else {
      known->ns += phase.duration_ns();
    }
  }
  return sums;
}

// The shares of a dump are those of the whole dump, and those of the time in which the processes stood
// still, as in the lines above the table. In a restore, no phase is frozen.
std::string phase_table(const std::vector<diagnosis::Phase>& phases) {
  std::uint64_t whole_ns = 0;
  std::uint64_t frozen_ns = 0;
  for (const diagnosis::Phase& phase : phases) {
    whole_ns += phase.duration_ns();
    if (phase.frozen) frozen_ns += phase.duration_ns();
  }
  if (whole_ns == 0) return {};
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return percent(static_cast<double>(part) / static_cast<double>(whole));
  };
  std::vector<Table::Heading> headings = {{"phase", Table::Align::left}, {"time"}};
  if (frozen_ns == 0) {
    headings.push_back(Table::Heading{"of the whole time"});
  } else {
    headings.push_back(Table::Heading{"of the dump"});
    headings.push_back(Table::Heading{"of the standstill"});
  }
  Table table(std::move(headings));
  for (const Sum& sum : sums_of(phases)) {
    std::vector<std::string> row = {printable(sum.first->name), duration(sum.ns),
                                    share(sum.ns, whole_ns)};
    if (frozen_ns != 0) row.push_back(sum.first->frozen ? share(sum.ns, frozen_ns) : "");
    table.add(std::move(row));
  }
  return table.str();
}

// The explanation that kymod left. Nothing: it left none. Errors: the dump failed.
Result<std::optional<Explanation>> left_by_kymod(const std::string& path) {
  const Result<std::string> text = read_beneath(path, "checkpoint.json");
  const nlohmann::json record = text ? parse_json(*text) : nlohmann::json();
  if (record.is_object()) {
    const auto error = record.find("error");
    if (error != record.end() && error->is_string()) {
      return Error{Code::failed_precondition,
                   path + ": its dump failed: " + error->get<std::string>()};
    }
    return explanation_in(record);
  }
  return std::optional<Explanation>();
}

}  // namespace

// Anybody may have changed the record, so nothing in it is trusted to have its type.
std::optional<Explanation> explanation_in(const nlohmann::json& record) {
  const auto verdict = record.find("verdict");
  if (verdict == record.end() || !verdict->is_object()) return std::nullopt;
  Explanation explanation;
  constexpr std::size_t kMaxLines = 8;
  for (const nlohmann::json& line : verdict->value("lines", nlohmann::json::array())) {
    if (line.is_string() && explanation.lines.size() < kMaxLines) {
      explanation.lines.push_back(line.get<std::string>());
    }
  }
  if (explanation.lines.empty()) return std::nullopt;
  const auto frozen = verdict->find("frozen_ns");
  if (frozen != verdict->end() && frozen->is_number_unsigned()) {
    explanation.frozen_ns = frozen->get<std::uint64_t>();
  }
  explanation.shares = shares_from(*verdict);
  explanation.phases = diagnosis::phases_from(record.value("phases", nlohmann::json::array()));
  return explanation;
}

Result<Explanation> explain_checkpoint(const std::string& path) {
  Result<std::optional<Explanation>> left = left_by_kymod(path);
  if (!left) return left.error();
  if (*left) return **std::move(left);
  const Result<CheckpointStats> stats = read_checkpoint_stats(path);
  if (!stats) return stats.error();
  return made_from(*stats);
}

Result<Explanation> explain_checkpoint(const CheckpointStats& stats) {
  Result<std::optional<Explanation>> left = left_by_kymod(stats.path);
  if (!left) return left.error();
  return *left ? **std::move(left) : made_from(stats);
}

Result<Explanation> explain_recording(const std::string& path) {
  const Result<analysis::Metadata> metadata =
      analysis::read_metadata(recording_stem(path) + ".meta.json");
  if (!metadata) return metadata.error();
  if (metadata->about->is_object()) {
    if (std::optional<Explanation> explanation = explanation_in(*metadata->about)) {
      return *std::move(explanation);
    }
  }
  return Error{
      Code::failed_precondition,
      path +
          ": kymod left no explanation in its metadata: it is not the recording of a dump or "
          "restore, or that failed; kymo report shows what was recorded"};
}

std::string text_of(const Explanation& explanation) {
  std::string text;
  for (const std::string& line : explanation.lines) text += "  " + printable(line) + '\n';
  for (const std::string& line : explanation.unknown) text += "  " + printable(line) + '\n';
  return text + phase_table(explanation.phases);
}

nlohmann::json json_of(const Explanation& explanation) {
  return {{"lines", explanation.lines},
          {"phases", diagnosis::to_json(explanation.phases)},
          {"unknown", explanation.unknown}};
}

}  // namespace kymo::report
