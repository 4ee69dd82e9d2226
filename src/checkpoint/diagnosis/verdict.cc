#include "checkpoint/diagnosis/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/human.h"
#include "base/rate.h"
#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/diagnosis/rules.h"

namespace kymo::diagnosis {

std::string base_of(const Facts& facts) {
  if (facts.restore) return "of the restore";
  const bool whole = !facts.phases.empty() && frozen_ns(facts.phases) == 0;
  return whole ? "of the dump" : "of the standstill";
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double Known::share(std::optional<std::uint64_t> ns) const {
  return ns ? std::min(1.0, ratio(static_cast<double>(*ns), length_ns())) : 0;
}

double Known::share_of_phase(std::string_view name) const {
  std::uint64_t sum = 0;
  for (const Phase& phase : facts.phases) {
    const std::uint64_t begin = std::max(phase.begin_ns, window.begin_ns);
    const std::uint64_t end = std::min(phase.end_ns, window.end_ns);
    if (phase.name.starts_with(name) && end > begin) sum += end - begin;
  }
  return ratio(static_cast<double>(sum), length_ns());
}

double Known::idle_share() const {
  const Signals& signals = facts.signals;
  if (facts.restore || !signals.cpu_ns || !signals.cpu_wait_ns || !signals.disk_wait_ns ||
      !signals.target_ns) {
    return 0;
  }
  double idle = 1 - share(signals.cpu_ns) - share(signals.cpu_wait_ns) -
                share(signals.disk_wait_ns) - share(signals.target_ns);
  for (const std::string_view phase :
       {criu::kHooksPhase, criu::kAnswerPhase, criu::kFreezePhase, criu::kEndPhase,
        criu::kNetworkPhase, kRehearsalPhase, criu::kSyncPhase}) {
    idle -= share_of_phase(phase);
  }
  return std::max(0.0, idle);
}

double Known::held_up_share() const {
  double no_cpu = share_of_starved(*this);
  // Processes that are restored side by side wait for each other, and add that up.
  if (!facts.restore) no_cpu = std::max(no_cpu, share(facts.signals.cpu_wait_ns));
  return std::min(1.0, no_cpu + share(facts.signals.stopped_ns));
}

double Known::late_share() const {
  return std::min(idle_share(), share(facts.signals.kymod_gaps_ns));
}

std::optional<Range> left_after(const Known& known, double least, double most) {
  const double whole = known.length_ns();
  if (whole <= 0 || most <= 0) return {};
  const auto left = [whole](double saved) {
    return static_cast<std::uint64_t>(whole * (1 - std::clamp(saved, 0.0, 1.0)));
  };
  return Range{left(most), left(least)};
}

namespace {

// The name of the phase that took most of the window, with its share; an empty name: none.
std::pair<std::string, double> largest_phase(const Known& known) {
  std::pair<std::string, double> largest;
  for (const Phase& phase : known.facts.phases) {
    const double share = known.share_of_phase(phase.name);
    if (share > largest.second) largest = {phase.name, share};
  }
  return largest;
}

// The waits of a dump for the target and for kymod. What kymod did is 0 if it took no stream.
void add_of_dump(const Known& known, std::vector<std::pair<std::string, double>>& shares) {
  const Facts& facts = known.facts;
  const Signals& signals = facts.signals;
  if (known.length_ns() == 0) return;
  if (signals.socket_wait_ns) {
    shares.emplace_back("target_wait",
                        ratio(static_cast<double>(*signals.socket_wait_ns), known.length_ns()));
    if (signals.target_cpu_wait_ns) {
      shares.emplace_back("target_cpu_wait", share_of_starved_target(known));
    }
  }
  if (!facts.recorded) return;
  if (signals.pipe_wait_ns) shares.emplace_back("kymod_cpu_wait", share_of_starved_kymod(known));
  const std::optional<Streaming>& stream = facts.streaming;
  shares.emplace_back("kymod_disk_wait", stream ? known.share(stream->wait_ns) : 0);
  shares.emplace_back("compression",
                      stream && stream->compressed ? known.share(stream->work_ns) : 0);
}

std::vector<std::pair<std::string, double>> shares_of(const Known& known) {
  const Signals& signals = known.facts.signals;
  std::vector<std::pair<std::string, double>> shares;
  const auto add = [&](const char* name, std::optional<std::uint64_t> ns, double parts) {
    if (!ns || known.length_ns() == 0) return;
    shares.emplace_back(name, ratio(static_cast<double>(*ns), known.length_ns() * parts));
  };
  add("cpu", signals.cpu_ns, 1);
  add("cpu_wait", signals.cpu_wait_ns, 1);
  if (signals.cpu_wait_ns) {
    shares.emplace_back("no_cpu", share_of_starved(known) - share_of_quota(known));
  }
  if (signals.criu_quota_ns || signals.target_quota_ns) {
    shares.emplace_back("quota", share_of_quota(known));
  }
  add("disk_wait", signals.disk_wait_ns, 1);
  if (!known.facts.restore) add_of_dump(known, shares);
  add("steal", signals.steal_ns, std::max(1U, known.facts.cpus));
  return shares;
}

// Of a request that did not succeed.
std::string line_of_ending(const Facts& facts, std::uint64_t frozen_ns) {
  const std::string after = facts.ending + " after " + human::duration(facts.duration_ns);
  if (facts.restore) return "The restore " + after + ".";
  const std::string who = facts.container ? "the container" : "the process";
  return "The dump " + after +
         (frozen_ns == 0
              ? ", before " + who + " was stopped."
              : "; " + who + " stood still for " + human::duration(frozen_ns) + " of that.");
}

std::string first_line(const Known& known, std::uint64_t frozen_ns) {
  if (!known.facts.ending.empty()) return line_of_ending(known.facts, frozen_ns);
  const bool unknown = known.facts.duration_ns == 0;
  const std::string whole = human::duration(known.facts.duration_ns);
  if (known.facts.restore) {
    return unknown ? "How long the restore took is not known." : "The restore took " + whole + ".";
  }
  const std::string who = known.facts.container ? "The container" : "The process";
  if (unknown) {
    return frozen_ns == 0 ? "How long the dump took is not known."
                          : who + " stood still for " + human::duration(frozen_ns) +
                                "; how long the whole dump took is not known.";
  }
  if (frozen_ns == 0)
    return "The dump took " + whole + "; how long " +
           (known.facts.container ? "the container" : "the process") + " stood still is not known.";
  return who + " stood still for " + human::duration(frozen_ns) + " of the " + whole +
         " that the dump took.";
}

// How many pages CRIU wrote in a phase of this name, or found for writing. 0: none, or it is not known.
std::uint64_t pages_in(std::string_view phase, const Facts& facts) {
  if (!facts.dump || !phase.starts_with("memory")) return 0;
  return phase == criu::kSharedMemoryPhase ? facts.dump->shpages_written.value_or(0)
                                           : facts.dump->pages_written;
}

std::string phase_line(const Known& known) {
  const auto [name, share] = largest_phase(known);
  if (name.empty()) return "The phases are not known: CRIU's log shows none.";
  const Facts& facts = known.facts;
  std::string line =
      "The longest phase, \"" + name + "\", took " + whole_percent(share) + " " + base_of(facts);
  const std::uint64_t pages = pages_in(name, facts);
  if (pages != 0) {
    const double bytes = static_cast<double>(pages) * kPageBytes;
    const auto phase_ns = static_cast<std::uint64_t>(share * known.length_ns());
    line += " (" + std::to_string(std::lround(bytes / kMiB)) + " MiB";
    if (name != criu::kFindPagesPhase) {
      line +=
          " at " + std::to_string(std::lround(rate_per_second(bytes, phase_ns) / 1e6)) + " MB/s";
    }
    line += ")";
  }
  return line + ".";
}

std::string before_criu(const Known& known, const std::string& took) {
  const Facts& facts = known.facts;
  if (facts.stacks_wait_ns > time_in(facts.phases, kPreparePhase) / 2) {
    return "Before CRIU was started, kymod needed " + took + ": it waited " +
           human::duration(facts.stacks_wait_ns) +
           " of that for the processes that take stacks (--profiling-stacks, --inside=offcpu).";
  }
  const std::string line = "Before CRIU was started, kymod needed " + took;
  if (known.facts.restore) {
    return line +
           ", to check the request and to verify the images (the phase \"prepare\"): "
           "kymo restore -v shows each step.";
  }
  const char* const target = known.facts.container ? "container" : "process";
  return line + ", to check and record it, while the " + target +
         " ran on (the phase \"prepare\"): kymo dump -v shows each step.";
}

std::string after_criu(const Known& known, const std::string& took) {
  const char* const verb = known.facts.restore ? "restore" : "dump";
  return "After CRIU had done its work, kymod needed " + took +
         ", to check and publish the outcome (the phase \"finish\"): kymo " + verb +
         " -v shows each step.";
}

// What took much of the request without being CRIU's work. Empty: nothing did. No rule looks at it:
// it is no part of the standstill of a dump.
std::string line_of_others(const Known& known) {
  constexpr double kMinShare = 0.25;
  const Facts& facts = known.facts;
  std::string_view longest;
  for (const std::string_view phase :
       {kPreparePhase, kStartPhase, kRuntimePhase, criu::kFinishPhase}) {
    // How a runtime starts CRIU is its own matter. Of a restore, a rule tells it.
    if (phase == kStartPhase && (facts.container || facts.restore)) continue;
    if (time_in(facts.phases, phase) > time_in(facts.phases, longest)) longest = phase;
  }
  const std::uint64_t ns = time_in(facts.phases, longest);
  const double share = ratio(static_cast<double>(ns), static_cast<double>(facts.duration_ns));
  if (share < kMinShare) return {};
  const std::string took = human::duration(ns) + ", " + whole_percent(share) +
                           (facts.restore ? " of the restore" : " of the dump");
  if (longest == kPreparePhase) return before_criu(known, took);
  if (longest == kStartPhase) {
    return "CRIU's program needed " + took + ", to start (the phase \"start CRIU\").";
  }
  if (longest == criu::kFinishPhase) return after_criu(known, took);
  return "The container runtime went on for " + took +
         ", after CRIU's last line in its log (the phase \"container runtime\").";
}

constexpr char kNothing[] = "nothing stands out";

std::string without_cause(const Facts& facts) {
  if (!facts.unbegun.empty()) {
    return "CRIU was not started. The last step before was \"" + facts.unbegun + "\".";
  }
  const bool blind = facts.recorded && !facts.signals.cpu_ns && !facts.signals.disk_wait_ns;
  return blind ? "No cause is known: what CRIU waited for was not measured."
               : "No cause stands out, so there is no advice to make it shorter.";
}

// "400 ms at best, 600 ms at worst".
std::string range_text(Range range) {
  std::string best = human::duration(range.first);
  const std::string worst = human::duration(range.second);
  return best == worst ? best : best + " at best, " + worst + " at worst";
}

// `estimate`: of the time if this advice is followed, and those of the lines before. Nothing: it stands in another line.
std::string advice_line(const Known& known, const Cause& finding, std::optional<Range> estimate,
                        bool of_all) {
  if (finding.advice.empty()) return "Nothing is known that would shorten this.";
  const std::string also = finding.also.empty() ? "" : " " + finding.also;
  if (!estimate) return finding.advice + also;
  std::string line = finding.advice;
  if (line.ends_with('.')) line.pop_back();
  return line + " (estimate of the " + (known.facts.restore ? "restore" : "standstill") +
         (of_all ? " if all of this is done: " : " then: ") + range_text(*estimate) + ")." + also;
}

// Whether a share is printed as at least this one.
bool is_printed_as(double share, double least) {
  return std::lround(share * 100) >= std::lround(least * 100);
}

// What is left if all these advices are followed. The time that they save may be the same, and what CRIU works is left.
std::optional<Range> left_after_all(const Known& known, std::span<const Cause> findings) {
  const std::uint64_t whole = known.window.length_ns();
  std::uint64_t at_best = whole;
  std::optional<Range> left;
  for (const Cause& finding : findings) {
    if (!finding.estimate_ns) continue;
    const auto [best, worst] = *finding.estimate_ns;
    at_best -= std::min(at_best, whole - std::min(best, whole));
    const std::uint64_t worked = std::min(best, known.facts.signals.cpu_ns.value_or(0));
    left = Range{std::max(at_best, worked), left ? std::min(left->second, worst) : worst};
  }
  return left;
}

}  // namespace

Window window_of(const std::vector<Phase>& phases, bool restore) {
  Window window;
  for (const Phase& phase : phases) {
    if (!phase.frozen) continue;
    if (window.end_ns == 0) window.begin_ns = phase.begin_ns;
    window.end_ns = phase.end_ns;
  }
  if ((restore || window.end_ns == 0) && !phases.empty()) return {0, phases.back().end_ns};
  return window;
}

std::uint64_t stood_still_ns(const std::optional<criu::DumpStats>& stats,
                             const std::vector<Phase>& phases) {
  if (stats && stats->frozen_time_us != 0) {
    return (std::uint64_t{stats->freezing_time_us} + stats->frozen_time_us) * kNsPerUs +
           held_ns(phases);
  }
  return frozen_ns(phases);
}

Verdict explain(const Facts& facts) {
  const Known known{facts, window_of(facts.phases, facts.restore)};
  Verdict verdict;
  verdict.duration_ns = facts.duration_ns;
  if (!facts.restore) {
    verdict.frozen_ns = stood_still_ns(facts.dump, facts.phases);
  }
  for (const std::span<const Rule> rules : {wait_rules(), work_rules()}) {
    for (const Rule rule : rules) {
      if (std::optional<Cause> finding = rule(known)) {
        if (!facts.ending.empty()) finding->estimate_ns.reset();  // it was not all of the work
        verdict.findings.push_back(*std::move(finding));
      }
    }
  }
  std::stable_sort(verdict.findings.begin(), verdict.findings.end(),
                   [](const Cause& a, const Cause& b) { return a.share > b.share; });
  verdict.shares = shares_of(known);
  verdict.lines = {first_line(known, verdict.frozen_ns), phase_line(known)};
  if (std::string line = line_of_others(known); !line.empty()) {
    verdict.lines.push_back(std::move(line));
  }
  if (verdict.findings.empty()) {
    verdict.shortly = kNothing;
    verdict.lines.push_back(without_cause(facts));
    verdict.causes_from = verdict.lines.size();
    return verdict;
  }
  constexpr double kWorthTheHeadline = 0.2;
  if (!is_printed_as(verdict.findings.front().share, kWorthTheHeadline)) {
    verdict.shortly = kNothing;
    verdict.lines.push_back("No cause took a fifth of it. The largest: " +
                            verdict.findings.front().evidence);
    verdict.causes_from = verdict.lines.size();
    return verdict;
  }
  verdict.causes_from = verdict.lines.size();
  verdict.shortly = verdict.findings.front().shortly;
  // From which share on the first, second and third cause are worth their lines.
  constexpr std::array kMinShares{0.0, 0.05, 0.2};
  constexpr std::size_t kMaxLines = 6;
  const std::size_t room = kMaxLines - verdict.lines.size();
  const std::size_t most = std::min({kMinShares.size(), verdict.findings.size(), room - 1});
  std::size_t told = 0;
  while (told < most && is_printed_as(verdict.findings[told].share, kMinShares.at(told))) ++told;
  const std::span<const Cause> found = std::span(verdict.findings).first(told);
  verdict.estimate_ns = left_after_all(known, found);
  const auto promises = [](const Cause& finding) { return finding.estimate_ns.has_value(); };
  auto open = std::count_if(found.begin(), found.end(), promises);
  const bool several = open > 1;
  for (std::size_t i = 0; i < told; ++i) {
    verdict.lines.push_back(found[i].evidence);
    const bool last = promises(found[i]) && --open == 0;
    const std::string advice =
        advice_line(known, found[i], last ? verdict.estimate_ns : std::nullopt, several);
    if (2 * told > room && i != 0) {
      verdict.lines.back() += " " + advice;
    } else {
      verdict.lines.push_back(advice);
    }
  }
  return verdict;
}

nlohmann::json to_json(const Verdict& verdict) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Cause& finding : verdict.findings) {
    findings.push_back({{"rule", finding.rule},
                        {"short", finding.shortly},
                        {"share", finding.share},
                        {"evidence", finding.evidence},
                        {"threshold", finding.threshold},
                        {"advice", finding.advice}});
    if (finding.estimate_ns) findings.back()["estimate_ns"] = *finding.estimate_ns;
    if (!finding.also.empty()) findings.back()["also"] = finding.also;
  }
  nlohmann::json shares = nlohmann::json::object();
  for (const auto& [name, share] : verdict.shares) shares[name] = share;
  nlohmann::json json{{"lines", verdict.lines},         {"short", verdict.shortly},
                      {"frozen_ns", verdict.frozen_ns}, {"duration_ns", verdict.duration_ns},
                      {"shares", std::move(shares)},    {"findings", std::move(findings)}};
  if (verdict.estimate_ns) json["estimate_ns"] = *verdict.estimate_ns;
  return json;
}

}  // namespace kymo::diagnosis
