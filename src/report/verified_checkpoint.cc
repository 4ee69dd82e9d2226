#include "report/verified_checkpoint.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/json_object.h"
#include "criu/whole_tar.h"
#include "report/checkpoint_record.h"

namespace kymo::report {
namespace {

// What is wrong with kymod's checkpoint.json beside the images. Empty if nothing is wrong, or if
// there is none because another tool made the checkpoint. Without it a restore takes only images
// that are in the directory itself.
std::string fault_of_record(const std::string& directory, const criu::ImageSet& images) {
  const Result<nlohmann::json> record = read_checkpoint_record(directory);
  if (!record && record.error().code == Code::not_found) {
    const std::filesystem::path in =
        std::filesystem::path(images.where("inventory.img")).parent_path();
    std::error_code error;
    if (in.empty() || std::filesystem::equivalent(in, directory, error)) return "";
    return "checkpoint.json is missing, so kymo restore refuses this folder; its images alone are "
           "in " +
           in.string();
  }
  if (!record) return record.error().message;
  if (is_complete(*record, directory)) return "";
  return "checkpoint.json: the dump is not complete, its state is '" +
         kymo::text_of(*record, "state") + "'";
}

Result<criu::Compared> compare_contents(const criu::ImageSet& images, Depth depth) {
  if (depth == Depth::structure) return Error{Code::not_found, "contents are not compared"};
  if (images.from_archive()) return Error{Code::not_found, "an archive has no checksums"};
  return criu::compare_checksums(
      std::filesystem::path(images.where("inventory.img")).parent_path());
}

}  // namespace

Result<VerifiedCheckpoint> verify_checkpoint(const std::string& path, Depth depth) {
  Result<criu::ImageSet> images = criu::ImageSet::open(path);
  if (!images) return images.error();
  VerifiedCheckpoint seen{*std::move(images)};
  if (depth == Depth::contents) seen.contents = criu::read_contents(seen.images);
  seen.verified =
      criu::verify_images(seen.images, depth == Depth::contents ? &seen.contents : nullptr);
  seen.compared = compare_contents(seen.images, depth);
  seen.faults = seen.verified.faults;
  if (seen.compared) {
    const std::vector<std::string>& changed = seen.compared->faults;
    seen.faults.insert(seen.faults.end(), changed.begin(), changed.end());
  } else if (seen.compared.error().code != Code::not_found) {
    seen.faults.push_back(seen.compared.error().message);
  }
  if (seen.images.from_archive()) return seen;
  if (std::string fault = fault_of_record(path, seen.images); !fault.empty()) {
    seen.faults.push_back(std::move(fault));
  }
  if (std::string fault = criu::fault_of_shared_memory(path); !fault.empty()) {
    seen.faults.push_back(std::move(fault));
  }
  return seen;
}

Result<runtime::PlannedRestore> planned_restore(const std::string& path) {
  Result<VerifiedCheckpoint> seen = verify_checkpoint(path, Depth::structure);
  if (!seen) return seen.error();
  runtime::PlannedRestore planned;
  planned.processes = seen->verified.tree.size();
  for (const criu::ImageProcess& process : seen->verified.tree) {
    planned.ids.push_back(process.pid);
    for (const pid_t thread : process.threads) {
      if (thread != process.pid) planned.ids.push_back(thread);
    }
  }
  planned.needs = criu::read_needs(seen->images);
  planned.faults = std::move(seen->faults);
  planned.image_bytes = seen->images.image_bytes();
  planned.container = seen->images.from_archive();  // podman exports such archives
  if (planned.container) return planned;
  const Result<nlohmann::json> record = read_checkpoint_record(path);
  if (!record) return planned;
  planned.machine = runtime::machine_of(kymo::member(*record, "machine"));
  planned.criu_version = kymo::text_of(kymo::member(*record, "criu"), "version");
  const nlohmann::json& container = kymo::member(*record, "container");
  planned.container = container.is_object();
  if (kymo::text_of(container, "runtime") == "runc")
    planned.bundle = kymo::text_of(container, "bundle");
  std::erase_if(planned.needs.files, [&](const criu::NeededFile& file) {
    return !output_file_at(*record, file.path).empty();
  });
  return planned;
}

}  // namespace kymo::report
