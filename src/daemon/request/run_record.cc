#include "daemon/request/run_record.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_object.h"
#include "base/json_text.h"
#include "base/rate.h"
#include "checkpoint/diagnosis/change.h"
#include "checkpoint/diagnosis/verdict.h"
#include "daemon/state/stats_json.h"

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kWorthKeepingNs = 100'000;
// The most major page faults of CRIU in a warm dump or restore. In bench/cold_dumps.py warm dumps
// have 0 and cold ones at least 27. This is half-way, so that one or two pages that were evicted do
// not make a dump cold.
constexpr std::uint64_t kMaxWarmFaults = 13;

// Reads the stored JSON. Its names are those of the API's fields.
template <class Stats>
std::optional<Stats> stats_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  Stats stats;
  if (!google::protobuf::util::JsonStringToMessage(text, &stats, options).ok()) return std::nullopt;
  return stats;
}

}  // namespace

std::string history_phases(const std::vector<diagnosis::Phase>& phases,
                           const diagnosis::Verdict& verdict, bool restore) {
  std::map<std::string, std::uint64_t> sums;
  nlohmann::json kept = nlohmann::json::object();
  for (const diagnosis::Phase& phase : phases) sums[phase.name] += phase.duration_ns();
  const auto window_ns = static_cast<double>(diagnosis::window_of(phases, restore).length_ns());
  for (const auto& [name, share] : verdict.shares) {
    const std::string words = diagnosis::state_words(name);
    // Also those that are 0: they were looked at.
    if (!words.empty()) kept[words] = static_cast<std::uint64_t>(share * window_ns);
  }
  for (const auto& [name, duration_ns] : sums) {
    if (duration_ns >= kWorthKeepingNs) kept[name] = duration_ns;
  }
  return json_text(kept);
}

std::optional<diagnosis::WriteRates> write_rates_of(
    const std::vector<store::Checkpoint>& checkpoints) {
  constexpr std::size_t kMaxRates = 50;
  constexpr std::size_t kMinRates = 5;
  constexpr std::uint64_t kMinPages = 8192;
  constexpr double kPageBytes = 4096;
  constexpr std::uint64_t kNanosInAMicro = 1000;
  std::vector<double> rates;
  for (auto one = checkpoints.rbegin(); one != checkpoints.rend() && rates.size() < kMaxRates;
       ++one) {
    const nlohmann::json stats = parse_json(one->stats_json);
    if (!stats.is_object()) continue;
    const auto pages = stats.find("pages_written");
    const auto time_us = stats.find("memwrite_time_us");
    if (pages == stats.end() || time_us == stats.end() || !pages->is_number_unsigned() ||
        !time_us->is_number_unsigned() || *pages < kMinPages || *time_us == 0) {
      continue;
    }
    rates.push_back(rate_per_second(pages->get<double>() * kPageBytes,
                                    time_us->get<std::uint64_t>() * kNanosInAMicro));
  }
  if (rates.size() < kMinRates) return std::nullopt;
  std::sort(rates.begin(), rates.end());
  return diagnosis::WriteRates{rates.size(), rates[rates.size() / 2], rates[rates.size() * 9 / 10]};
}

v1::Phase to_api(const diagnosis::Phase& phase) {
  v1::Phase out;
  out.set_name(phase.name);
  out.set_begin_ns(phase.begin_ns);
  out.set_end_ns(phase.end_ns);
  out.set_uncertainty_ns(phase.uncertainty_ns);
  out.set_evidence(phase.evidence);
  out.set_frozen(phase.frozen);
  return out;
}

std::string warmth_of(bool first, std::optional<std::uint64_t> criu_major_faults) {
  if (first) return "cold: the first since kymod started";
  if (criu_major_faults && *criu_major_faults > kMaxWarmFaults) {
    return "cold: CRIU waited for the disk " + std::to_string(*criu_major_faults) + " times";
  }
  return "warm";
}

std::optional<v1::DumpStats> dump_stats_of(const std::string& text) {
  return stats_of<v1::DumpStats>(text);
}

std::optional<v1::RestoreStats> restore_stats_of(const std::string& text) {
  return stats_of<v1::RestoreStats>(text);
}

std::string history_owner(const store::Job& job) {
  return owner_of_job(job.name);
}

std::string history_owner(const Target& target) {
  if (target.job) return history_owner(*target.job);
  if (!target.id.empty()) return owner_of_container(target.kind, target.name);
  return owner_of_program(target.command, target.name);
}

std::uint64_t away_until(const nlohmann::json& record, std::int64_t now_unix_ns) {
  const nlohmann::json& began = member(record, "created_unix_ns");
  if (!began.is_number_integer() || member(record, "leave_running") != nlohmann::json(false)) {
    return 0;
  }
  const auto began_ns = began.get<std::int64_t>();
  if (began_ns <= 0 || began_ns >= now_unix_ns) return 0;
  const auto since_ns = static_cast<std::uint64_t>(now_unix_ns - began_ns);
  const diagnosis::Window still =
      diagnosis::window_of(diagnosis::phases_from(member(record, "phases")), false);
  return since_ns > still.begin_ns ? since_ns - still.begin_ns : 0;
}

std::string unstored_warning(store::Store& store) {
  if (store.unstored() == 0) return {};
  return store.trouble() +
         ": until its disk takes changes again, the result is kept only in memory, and it is lost "
         "if "
         "kymod stops";
}

v1::HistoryRun to_api(const store::Run& run) {
  v1::HistoryRun out;
  out.set_checkpoint(run.checkpoint_id);
  out.set_created_unix_ns(run.created_unix_ns);
  out.set_error(run.error);
  out.set_refused(run.refused);
  out.set_failure(run.failure);
  out.set_verdict(run.verdict);
  out.set_duration_ns(run.duration_ns);
  out.set_image_bytes(run.image_bytes);
  if (run.kind == store::RunKind::dump) {
    if (const auto stats = dump_stats_of(run.stats_json)) *out.mutable_dump_stats() = *stats;
  } else if (const auto stats = restore_stats_of(run.stats_json)) {
    *out.mutable_restore_stats() = *stats;
  }
  out.set_stood_still_ns(run.stood_still_ns);
  if (run.stood_still_ns == 0 && out.has_dump_stats()) {  // stored by an older kymod
    out.set_stood_still_ns(stood_still_ns(out.dump_stats()));
  }
  out.set_away_ns(run.away_ns);
  out.set_conditions(run.conditions);
  out.set_warmth(run.warmth);
  const nlohmann::json phases = parse_json(run.phases_json);
  if (!phases.is_object()) return out;
  for (const auto& [name, duration_ns] : phases.items()) {
    if (!duration_ns.is_number_unsigned()) continue;
    v1::HistoryPhase* phase = out.add_phases();
    phase->set_name(name);
    phase->set_duration_ns(duration_ns.get<std::uint64_t>());
  }
  return out;
}

}  // namespace kymo::daemon
