#include "messages.h"

#include <sys/wait.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/reap.h"
#include "lens/report/api_json.h"
#include "lens/report/explanation.h"
#include "lens/report/human.h"
#include "lens/report/short_reason.h"
#include "print.h"

namespace kymo::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

diagnosis::Phase phase_of(const v1::Phase& phase) {
  return {phase.name(),           phase.begin_ns(), phase.end_ns(),
          phase.uncertainty_ns(), phase.evidence(), phase.frozen()};
}

// The statistics with the same names as in the JSON, the times first.
Rows rows_of_figures(const google::protobuf::Message& stats) {
  std::vector<report::ApiFigure> figures = report::figures_of(stats);
  const auto is_time = [](const report::ApiFigure& figure) { return figure.name.ends_with("_us"); };
  std::stable_partition(figures.begin(), figures.end(), is_time);
  Rows rows;
  for (const report::ApiFigure& figure : figures) {
    rows.push_back(
        {"  " + figure.name, report::with_commas(figure.value), is_time(figure) ? "µs" : ""});
  }
  return rows;
}

template <class Response>
std::string subject_of(const Response& response) {
  std::string pid = "pid " + std::to_string(response.pid());
  if (response.container().empty()) return pid;
  const std::string& name =
      response.container_name().empty() ? response.container() : response.container_name();
  return name_of(response.runtime()) + " container " + report::printable(name) + ", " + pid;
}

template <class Response>
nlohmann::json phases_json(const Response& response) {
  std::vector<diagnosis::Phase> phases;
  for (const v1::Phase& phase : response.phases()) phases.push_back(phase_of(phase));
  return diagnosis::to_json(phases);
}

// The fields that both responses have.
template <class Response>
nlohmann::json common_json(const Response& response) {
  return {
      {"pid", response.pid()},
      {"job", response.job()},
      {"runtime", name_of(response.runtime())},
      {"container", response.container()},
      {"container_name", response.container_name()},
      {"directory", response.directory()},
      {"recording", response.recording()},
      {"stats", response.has_stats() ? report::to_json(response.stats()) : nlohmann::json()},
      {"verdict", std::vector<std::string>(response.verdict().begin(), response.verdict().end())},
      {"phases", phases_json(response)},
      {"duration_ns", response.duration_ns()},
      {"criu_time_ns", response.criu_time_ns()},
      {"command_time_ns", response.command_time_ns()},
      {"runtime_time_ns", response.runtime_time_ns()},
      {"podman_time_ns", response.podman_time_ns()},
      {"warnings",
       std::vector<std::string>(response.warnings().begin(), response.warnings().end())}};
}

// 0 is a time that is not known.
nlohmann::json time_json(std::uint64_t ns) {
  return ns != 0 ? nlohmann::json(ns) : nlohmann::json();
}

std::vector<std::string> checkpoint_row(const v1::Checkpoint& checkpoint) {
  const auto or_dash = [](bool known, const std::string& text) { return known ? text : "-"; };
  const std::uint64_t still_ns = checkpoint.stood_still_ns();
  return {checkpoint.id(),
          or_dash(!checkpoint.job().empty(), checkpoint.job()),
          local_time(checkpoint.created_unix_ns()),
          report::lower(v1::Checkpoint::State_Name(checkpoint.state())),
          or_dash(checkpoint.image_bytes() != 0, report::bytes(checkpoint.image_bytes())),
          or_dash(checkpoint.duration_ns() != 0, report::duration(checkpoint.duration_ns())),
          or_dash(still_ns != 0, report::duration(still_ns)),
          checkpoint.directory(),
          report::short_reason(checkpoint.error())};
}

}  // namespace

std::string name_of(v1::Runtime runtime) {
  return report::lower(
      v1::Runtime_Name(runtime == v1::RUNTIME_UNSPECIFIED ? v1::PROCESS : runtime));
}

std::string subject(const v1::DumpResponse& response) {
  return subject_of(response);
}

std::string subject(const v1::RestoreResponse& response) {
  return subject_of(response);
}

std::string ending_of(const v1::Job& job) {
  if (job.has_exit_code()) return how_it_ended(W_EXITCODE(job.exit_code(), 0));
  return job.has_exit_signal() ? how_it_ended(job.exit_signal()) : "";
}

std::vector<std::vector<std::string>> rows_of(
    const google::protobuf::RepeatedPtrField<v1::Checkpoint>& checkpoints,
    const std::string& indent) {
  Rows rows{{"ID", "JOB", "WHEN", "STATE", "SIZE", "DURATION", "STOOD STILL", "DIRECTORY", "NOTE"}};
  for (const v1::Checkpoint& checkpoint : checkpoints) rows.push_back(checkpoint_row(checkpoint));
  for (std::vector<std::string>& row : rows) row.front().insert(0, indent);
  return rows;
}

nlohmann::json to_json(const v1::DumpResponse& response) {
  nlohmann::json json = common_json(response);
  json["stood_still_ns"] = time_json(response.stood_still_ns());
  json["images_directory"] = response.images_directory();
  json["image_bytes"] = response.image_bytes();
  json["streamed_bytes"] = response.streamed_bytes();
  json["forecast"] = response.forecast();
  json["pre_dumps"] = nlohmann::json::array();
  for (const v1::PreDump& round : response.pre_dumps()) {
    json["pre_dumps"].push_back(report::to_json(round));
  }
  return json;
}

nlohmann::json to_json(const v1::RestoreResponse& response) {
  nlohmann::json json = common_json(response);
  json["away_ns"] = time_json(response.away_ns());
  return json;
}

nlohmann::json failed_json(const Error& error, const v1::Failure& failure) {
  nlohmann::json json{{"error", error.message}};
  if (failure.id().empty()) return json;  // kymod did not answer
  json["failure"] = {{"id", failure.id()},       {"what", failure.what()},
                     {"why", failure.why()},     {"remedy", failure.remedy()},
                     {"retry", failure.retry()}, {"root", failure.root()}};
  return json;
}

void print_verdict(const std::vector<std::string>& lines, const std::vector<v1::Phase>& phases) {
  report::Explanation explanation;
  explanation.lines = lines;
  for (const v1::Phase& phase : phases) explanation.phases.push_back(phase_of(phase));
  std::cout << report::text_of(explanation);
}

std::string duration_text(std::uint64_t duration_ns, const v1::Phase* last, bool verbose) {
  constexpr std::uint64_t kWorthTellingNs = 1'000'000;
  if (last == nullptr || last->name() != diagnosis::kSavePhase) {
    return report::duration(duration_ns);
  }
  std::string text = report::duration(last->begin_ns());
  const std::uint64_t saving_ns = last->end_ns() - last->begin_ns();
  if (verbose && saving_ns >= kWorthTellingNs) {
    text += " (then " + report::duration(saving_ns) + " to save the record)";
  }
  return text;
}

Rows rows_of(const v1::DumpStats& stats) {
  return rows_of_figures(stats);
}

Rows rows_of(const v1::RestoreStats& stats) {
  return rows_of_figures(stats);
}

}  // namespace kymo::cli
