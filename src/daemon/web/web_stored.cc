#include "daemon/web/web_stored.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/proc/process_tree.h"
#include "base/recording_name.h"
#include "checkpoint/inside/sources.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/stored/catalogue.h"
#include "lens/report/api_json.h"
#include "lens/report/history.h"
#include "lens/report/history_run.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

Result<std::string> wanted(const http::Request& request, const std::string& name) {
  std::string value = request.value(name);
  if (!value.empty()) return value;
  return Error{Code::invalid_argument, name + " is missing"};
}

// Finds the checkpoint by its id only, so that the page cannot ask for paths.
Result<store::Checkpoint> checkpoint_of(const Parts& parts, const http::Request& request,
                                        const std::string& name) {
  const Result<std::string> id = wanted(request, name);
  if (!id) return id.error();
  return parts.store.checkpoint(*id);
}

// NAME of each NAME.tsv in a folder, sorted.
std::vector<std::string> recordings_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    const bool part = name.find(".gaps.") != std::string::npos;
    if (!part && entry.path().extension() == ".tsv") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> recordings_of(const store::Checkpoint& checkpoint) {
  return recordings_in(CheckpointDir(checkpoint.directory).recordings());
}

std::string path_of(const store::Checkpoint& checkpoint, const std::string& recording) {
  return CheckpointDir(checkpoint.directory).recordings() + "/" + recording + ".tsv";
}

nlohmann::json recording_json(const ForeignFiles& foreign, const store::Checkpoint& checkpoint,
                              const std::string& name) {
  Result<nlohmann::json> said = foreign.recording(path_of(checkpoint, name));
  nlohmann::json out = said ? *std::move(said) : nlohmann::json{{"error", said.error().message}};
  out["name"] = name;
  return out;
}

Result<report::HistoryMetric> metric_of(const std::string& name) {
  if (name.empty()) return report::HistoryMetric::duration;
  for (const report::HistoryMetric metric : report::kHistoryMetrics) {
    if (report::name_of(metric) == name) return metric;
  }
  return Error{Code::invalid_argument,
               "metric=" + name + ": there are duration, frozen, bytes and throughput"};
}

// The page shows why the newest checkpoints took so long. Each costs a reader, about a millisecond.
constexpr int kMaxExplained = 50;

// Adds the phases and the short verdict of a checkpoint's record, which anybody may have written.
void add_explanation(const ForeignFiles& foreign, nlohmann::json& checkpoint) {
  const CheckpointDir dir(checkpoint["directory"].get<std::string>());
  const Result<nlohmann::json> record = foreign.record(dir);
  if (!record) return;
  if (const auto phases = record->find("phases"); phases != record->end() && phases->is_array()) {
    checkpoint["phases"] = *phases;
  }
  const auto verdict = record->find("verdict");
  if (verdict == record->end() || !verdict->is_object()) return;
  if (const auto said = verdict->find("short"); said != verdict->end() && said->is_string()) {
    checkpoint["verdict"] = *said;
  }
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The path of a checkpoint's recording or of a snapshot. The request gives a name, which must exist
// in the folder, and never a path.
Result<std::string> recording_file(const Parts& parts, const http::Request& request) {
  if (const std::string snapshot = request.value("snapshot"); !snapshot.empty()) {
    const std::string folder = parts.config.state_dir + "/snapshots";
    if (contains(recordings_in(folder), snapshot)) return folder + "/" + snapshot + ".tsv";
    return Error{Code::not_found, "there is no snapshot '" + snapshot + "'"};
  }
  const Result<store::Checkpoint> checkpoint = checkpoint_of(parts, request, "checkpoint");
  if (!checkpoint) return checkpoint.error();
  // "dump" or "dump.tsv"
  const std::string named = request.value("name");
  const std::string name = is_recording_name(named) ? recording_stem(named) : named;
  if (contains(recordings_of(*checkpoint), name)) return path_of(*checkpoint, name);
  return Error{Code::not_found, "checkpoint " + checkpoint->id + " has no recording '" + name +
                                    "': /api/checkpoint lists them"};
}

}  // namespace

Result<nlohmann::json> stored_jobs(const Parts& parts) {
  nlohmann::json out = nlohmann::json::array();
  for (const v1::Job& job : parts.jobs.list()) out.push_back(report::to_json(job));
  return out;
}

Result<nlohmann::json> live_figures(const Parts& parts) {
  constexpr std::size_t kMaxJobs = 64;
  const auto machine = inside::make_machine_source();
  std::vector<std::uint64_t> values(machine->columns().size());
  machine->read(monotonic_ns(), values);
  nlohmann::json out{{"time_ns", monotonic_ns()},
                     {"cpus", std::max(1U, std::thread::hardware_concurrency())},
                     {"machine", nlohmann::json::object()},
                     {"jobs", nlohmann::json::object()}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    out["machine"][machine->columns()[i].name] = values[i];
  }
  for (const v1::Job& job : parts.jobs.list()) {
    if (job.state() != v1::Job::RUNNING || out["jobs"].size() >= kMaxJobs) continue;
    Result<probe::ProcessTree> tree = probe::ProcessTree::open(job.pid());
    probe::TreeTotals totals;
    if (!tree || !tree->read(monotonic_ns(), &totals)) continue;
    out["jobs"][job.name()] = {{"cpu_ns", totals.cpu_ns},
                               {"resident_bytes", totals.resident_bytes},
                               {"processes", totals.processes},
                               {"stopped", totals.stopped}};
  }
  return out;
}

Result<nlohmann::json> stored_checkpoints(const Parts& parts, const http::Request& request) {
  v1::CheckpointsRequest wanted_job;
  wanted_job.set_job(request.value("job"));
  const Result<v1::CheckpointsResponse> all = list_checkpoints(parts, wanted_job);
  if (!all) return all.error();
  nlohmann::json out = nlohmann::json::array();
  int older = all->checkpoints_size() - kMaxExplained;
  for (const v1::Checkpoint& one : all->checkpoints()) {
    out.push_back(report::to_json(one));
    if (older-- <= 0) add_explanation(parts.foreign, out.back());
  }
  return out;
}

Result<nlohmann::json> stored_checkpoint(const Parts& parts, const http::Request& request) {
  const Result<store::Checkpoint> checkpoint = checkpoint_of(parts, request, "id");
  if (!checkpoint) return checkpoint.error();
  const Result<store::Job> job = parts.store.job(checkpoint->job_id);
  nlohmann::json out{{"checkpoint", report::to_json(to_api(*checkpoint, job ? job->name : ""))}};
  const Result<nlohmann::json> stats = parts.foreign.statistics(checkpoint->directory);
  out["stats"] = stats ? *stats : nlohmann::json();
  if (!stats) out["stats_error"] = stats.error().message;
  nlohmann::json recordings = nlohmann::json::array();
  for (const std::string& name : recordings_of(*checkpoint)) {
    recordings.push_back(recording_json(parts.foreign, *checkpoint, name));
  }
  out["recordings"] = std::move(recordings);
  return out;
}

Result<nlohmann::json> stored_comparison(const Parts& parts, const http::Request& request) {
  const Result<store::Checkpoint> before = checkpoint_of(parts, request, "before");
  if (!before) return before.error();
  const Result<store::Checkpoint> after = checkpoint_of(parts, request, "after");
  if (!after) return after.error();
  return parts.foreign.comparison({before->directory, before->id}, {after->directory, after->id});
}

Result<nlohmann::json> stored_history(const Parts& parts, const http::Request& request) {
  const Result<std::string> job = wanted(request, "job");
  if (!job) return job.error();
  const std::string kind = request.value("kind");
  if (!kind.empty() && kind != "dumps" && kind != "restores") {
    return Error{Code::invalid_argument, "kind=" + kind + ": there are dumps and restores"};
  }
  report::HistoryOptions options;
  const Result<report::HistoryMetric> metric = metric_of(request.value("metric"));
  if (!metric) return metric.error();
  options.metric = *metric;
  v1::HistoryRequest asked;
  asked.set_job(*job);
  asked.set_restores(kind == "restores");
  const Result<v1::HistoryResponse> response = history_of(parts, asked);
  if (!response) return response.error();
  std::vector<report::HistoryRun> runs;
  for (const v1::HistoryRun& run : response->runs()) runs.push_back(report::run_of(run));
  nlohmann::json out = report::json_of(report::analyse_history(std::move(runs), options));
  out["job"] = response->job();
  out["kind"] = kind.empty() ? "dumps" : kind;
  return out;
}

Result<std::string> stored_recording(const Parts& parts, const http::Request& request,
                                     const std::string& nonce) {
  const Result<std::string> path = recording_file(parts, request);
  if (!path) return path.error();
  return parts.foreign.page(*path, nonce);
}

}  // namespace kymo::daemon
