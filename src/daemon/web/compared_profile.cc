#include "daemon/web/compared_profile.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "daemon/state/checkpoint_dir.h"
#include "lens/report/stack_summary.h"
#include "profiler/kept/reading.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using OthersJson = nlohmann::ordered_json;

// Of each kind, the newest ones. An older one can still be named in the address of the page.
constexpr std::size_t kMaxOthersListed = 100;

bool is_stack_file(const std::string& name) {
  return name.ends_with(".pb.gz") || name.ends_with(".pprof") || stacks::is_folded(name);
}

std::string files_folder(const Parts& parts) {
  return parts.config.profiles + "/" + profiles::kFilesFolder;
}

// The files beside the profiles, the newest first.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, std::string>> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    std::string name = entry->path().filename();
    if (is_stack_file(name) && entry->is_regular_file(unknown)) {
      files.emplace_back(entry->last_write_time(unknown), std::move(name));
    }
  }
  std::sort(files.rbegin(), files.rend());
  if (files.size() > kMaxOthersListed) files.resize(kMaxOthersListed);
  std::vector<std::string> names;
  for (auto& [time, name] : files) names.push_back(std::move(name));
  return names;
}

// Refuses a name that leads out of its folder.
Result<void> check_name(const std::string& what, const std::string& name, bool good) {
  if (good && !name.empty() && name.find('/') == std::string::npos) return {};
  return Error{Code::invalid_argument,
               what + "=" + name + ": give a name that /api/profile_others lists"};
}

// Reads a profile that exists, and keeps what is compared.
Result<std::optional<ComparedProfile>> read_compared(const Parts& parts, const std::string& folder,
                                                     const std::string& file, std::string name,
                                                     const profiles::Query& query) {
  Result<stacks::NamedProfile> profile =
      parts.foreign.stacks(folder, file, quantity_of(query.type));
  if (!profile) return profile.error();
  if (const Result<void> kept = profiles::keep_comparable(*profile, query.service, name); !kept) {
    return kept.error();
  }
  return std::optional(ComparedProfile{std::move(name), *std::move(profile)});
}

}  // namespace

Result<std::optional<ComparedProfile>> compared_profile(const Parts& parts,
                                                        const http::Request& request,
                                                        const profiles::Query& query) {
  if (const std::string file = request.value("file"); !file.empty()) {
    if (const Result<void> good = check_name("file", file, is_stack_file(file)); !good) {
      return good.error();
    }
    return read_compared(parts, files_folder(parts), file, file, query);
  }
  const std::string id = request.value("checkpoint");
  if (id.empty()) return std::optional<ComparedProfile>();
  const Result<store::Checkpoint> checkpoint = parts.store.checkpoint(id);
  if (!checkpoint) return checkpoint.error();
  const std::string recording = request.value("recording");
  if (const Result<void> good = check_name("recording", recording, true); !good) {
    return good.error();
  }
  return read_compared(parts, CheckpointDir(checkpoint->directory).recordings(),
                       recording + ".pb.gz", "checkpoint " + id + ", " + recording, query);
}

OtherPlaces other_places(const Parts& parts) {
  OtherPlaces places;
  places.files = files_folder(parts);
  std::map<std::string, std::string> jobs;
  for (const store::Job& job : parts.store.jobs()) jobs[job.id] = job.name;
  std::vector<store::Checkpoint> all = parts.store.checkpoints();
  std::reverse(all.begin(), all.end());
  if (all.size() > kMaxOthersListed) all.resize(kMaxOthersListed);
  for (const store::Checkpoint& one : all) {
    places.checkpoints.push_back(
        {one.id, jobs[one.job_id], one.created_unix_ns, CheckpointDir(one.directory).recordings()});
  }
  return places;
}

nlohmann::ordered_json others_json(const OtherPlaces& places) {
  OthersJson checkpoints = OthersJson::array();
  for (const OtherPlaces::Checkpoint& one : places.checkpoints) {
    for (const std::string& recording : report::stack_profiles_in(one.recordings)) {
      checkpoints.push_back({{"checkpoint", one.id},
                             {"recording", recording},
                             {"job", one.job},
                             {"created_unix_ns", one.created_unix_ns}});
    }
  }
  return {{"checkpoints", std::move(checkpoints)}, {"files", files_in(places.files)}};
}

}  // namespace kymo::daemon
