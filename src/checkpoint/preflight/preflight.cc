#include "checkpoint/preflight/preflight.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/proc/memory_to_dump.h"
#include "checkpoint/preflight/checks.h"
#include "checkpoint/preflight/host_names.h"

namespace kymo::preflight {
namespace {

constexpr std::size_t kShownPlaces = 3;

std::string text_of(const Place& place) {
  if (place.pid == 0) return place.object;
  std::string text = "process " + std::to_string(place.pid) + " " + place.process;
  if (place.fd >= 0) text += ", descriptor " + std::to_string(place.fd);
  return place.object.empty() ? text : text + ", " + place.object;
}

const char* name_of(Grade grade) {
  return grade == Grade::refuses ? "refuses" : "warns";
}

nlohmann::json to_json(const Place& place) {
  nlohmann::json json = nlohmann::json::object();
  if (place.pid != 0) json = {{"pid", place.pid}, {"process", place.process}};
  if (place.fd >= 0) json["fd"] = place.fd;
  if (!place.object.empty()) json["object"] = place.object;
  return json;
}

nlohmann::json to_json(const Finding& finding) {
  nlohmann::json places = nlohmann::json::array();
  for (const Place& place : finding.places) places.push_back(to_json(place));
  return {{"grade", name_of(finding.grade)}, {"failure", finding.failure}, {"what", finding.what},
          {"remedy", finding.remedy},        {"count", finding.count},     {"places", places}};
}

std::string text_of(const NotSeen& missed) {
  std::string text = missed.what + " of process";
  const std::vector<std::string>& processes = missed.processes;
  for (std::size_t i = 0; i < std::min(kShownPlaces, processes.size()); ++i) {
    text += (i == 0 ? " " : ", ") + processes[i];
  }
  if (processes.size() > kShownPlaces) {
    text += " and " + std::to_string(processes.size() - kShownPlaces) + " more";
  }
  return text + ": " + missed.why;
}

}  // namespace

std::size_t Report::refusing() const {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [](const Finding& finding) { return finding.grade == Grade::refuses; }));
}

Result<Report> look_at(pid_t pid, const Options& options, const Limits& limits,
                       const std::string& proc) {
  Result<Tree> tree = read_tree(pid, limits, proc);
  if (!tree) return tree.error();
  Findings found;
  const auto run = [&](std::span<const Check> checks) {
    for (const Check& check : checks) check.look(*tree, options, found);
  };
  run(process_checks());
  run(memory_checks());
  run(file_checks());
  run(object_checks());
  run(mount_checks());
  run(name_checks());
  run(limit_checks());
  look_at_sockets(*tree, options, found);
  run(lost_state_checks());
  Report report;
  report.pid = pid;
  report.processes = tree->members.size();
  std::vector<std::string_view> statuses;
  for (const Member& member : tree->members) statuses.emplace_back(member.status);
  report.memory_bytes = probe::memory_to_dump(statuses, shared_objects_bytes_of(*tree));
  report.deleted_bytes = deleted_bytes_of(*tree);
  report.findings = found.take();
  report.ended = std::move(tree->ended);
  for (const NotSeen& missed : tree->not_seen) report.not_seen.push_back(text_of(missed));
  return report;
}

std::string places_of(const Finding& finding) {
  std::string places;
  for (std::size_t i = 0; i < std::min(kShownPlaces, finding.places.size()); ++i) {
    places += (i == 0 ? "" : "; ") + text_of(finding.places[i]);
  }
  if (finding.count > kShownPlaces) {
    places += "; and " + std::to_string(finding.count - kShownPlaces) + " more";
  }
  return places;
}

std::string line_of(const Finding& finding) {
  return finding.what + " (" + places_of(finding) + "). " + finding.remedy + " (failure " +
         finding.failure + ")";
}

nlohmann::json to_json(const Report& report) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& finding : report.findings) findings.push_back(to_json(finding));
  return {{"pid", report.pid},
          {"processes", report.processes},
          {"memory_bytes", report.memory_bytes},
          {"deleted_bytes", report.deleted_bytes},
          {"shared_memory_bytes", report.shared_memory_bytes},
          {"refusing", report.refusing()},
          {"findings", findings},
          {"ended", report.ended},
          {"not_seen", report.not_seen}};
}

}  // namespace kymo::preflight
