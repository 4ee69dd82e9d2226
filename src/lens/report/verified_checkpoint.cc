#include "lens/report/verified_checkpoint.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/json_object.h"
#include "checkpoint/criu/images/whole_tar.h"
#include "checkpoint/preflight/host_names.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "lens/report/checkpoint_record.h"

namespace kymo::report {
namespace {

// What is wrong with kymod's checkpoint.json beside the images. Empty if nothing is wrong, or if
// there is none because another tool made the checkpoint. Without it a restore takes only images
// that are in the directory itself.
std::string fault_of_record(const std::string& directory, const criu::ImageSet& images) {
  const Result<nlohmann::json> record = read_checkpoint_record(directory);
  if (!record && record.error().code == Code::not_found) {
    std::error_code error;
    if (std::filesystem::equivalent(images.folder(), directory, error)) return "";
    return "checkpoint.json is missing, so kymo restore refuses this folder; its images alone are "
           "in " +
           images.folder();
  }
  if (!record) return record.error().message;
  if (is_complete(*record, directory)) return "";
  return "checkpoint.json: the dump is not complete, its state is '" +
         kymo::text_of(*record, "state") + "'";
}

// The list of the images in this folder, if there is one. `faults`: what is wrong with it.
// Errors: it cannot be read now.
Result<std::optional<criu::ImageList>> list_of(const std::string& folder,
                                               std::vector<std::string>& faults) {
  std::error_code error;
  const std::filesystem::path images = std::filesystem::canonical(folder, error);
  if (error) return system_error("read " + folder, error.value());
  // The record beside a folder with another name is that of something else.
  if (images.filename() == "images" || images.filename() == "images.partial") {
    const Result<nlohmann::json> record = read_checkpoint_record(images.parent_path());
    if (record) {
      std::string fault;
      std::optional<criu::ImageList> list = image_list_of(*record, fault);
      if (!fault.empty()) faults.push_back(std::move(fault));
      if (list) return list;
    } else if (record.error().code == Code::data_loss ||
               record.error().code == Code::unimplemented) {
      faults.push_back(record.error().message);
    } else if (record.error().code != Code::not_found) {
      return record.error();
    }
  }
  Result<criu::ImageList> list = criu::read_checksums_file(images, faults);
  if (list) return std::optional(*std::move(list));
  if (list.error().code != Code::not_found) return list.error();
  return std::optional<criu::ImageList>();
}

}  // namespace

Result<VerifiedCheckpoint> verify_checkpoint(const std::string& path, Depth depth) {
  Result<criu::ImageSet> images = criu::ImageSet::open(path);
  if (!images) return images.error();
  VerifiedCheckpoint seen{*std::move(images)};
  const bool archive = seen.images.from_archive();
  std::optional<criu::ImageList> list;
  if (!archive) {
    Result<std::optional<criu::ImageList>> found = list_of(seen.images.folder(), seen.faults);
    if (!found) return found.error();
    list = *std::move(found);
  }
  if (depth == Depth::contents) seen.contents = criu::read_contents(seen.images);
  Result<criu::Verified> verified = criu::verify_images(
      seen.images, {depth == Depth::contents ? &seen.contents : nullptr, list ? &*list : nullptr,
                    depth == Depth::small ? criu::Sums::small : criu::Sums::all});
  if (!verified) return verified.error();
  seen.verified = *std::move(verified);
  seen.faults.insert(seen.faults.begin(), seen.verified.faults.begin(), seen.verified.faults.end());
  if (archive) return seen;
  if (std::string fault = fault_of_record(path, seen.images);
      !fault.empty() && (seen.faults.empty() || seen.faults.back() != fault)) {
    seen.faults.push_back(std::move(fault));
  }
  if (std::string fault = criu::fault_of_shared_memory(path); !fault.empty()) {
    seen.faults.push_back(std::move(fault));
  }
  return seen;
}

runtime::PlannedRestore planned_restore(const VerifiedCheckpoint& seen) {
  runtime::PlannedRestore planned;
  planned.processes = seen.verified.tree.size();
  if (!seen.verified.tree.empty()) {
    const pid_t root = seen.verified.tree.front().pid;
    planned.ids.push_back(root);
    std::set<pid_t> others = runtime::ids_of(seen.verified.tree);
    others.erase(root);
    planned.ids.insert(planned.ids.end(), others.begin(), others.end());
  }
  planned.needs = criu::read_needs(seen.images);
  const std::vector<std::string>& unknown = seen.verified.unknown;
  planned.needs.notes.insert(planned.needs.notes.end(), unknown.begin(), unknown.end());
  planned.faults = seen.faults;
  planned.image_bytes = seen.images.image_bytes();
  planned.container = seen.images.from_archive();  // podman exports such archives
  return planned;
}

void add_record(runtime::PlannedRestore& planned, const nlohmann::json& record) {
  planned.machine = runtime::machine_of(kymo::member(record, "machine"));
  planned.criu_version = kymo::text_of(kymo::member(record, "criu"), "version");
  const nlohmann::json& container = kymo::member(record, "container");
  planned.container = container.is_object();
  planned.names = preflight::host_names_from(kymo::member(container, "names"));
  planned.bundle = kymo::text_of(container, "bundle");
  if (planned.bundle.empty()) {
    preflight::leave_out_renewed(planned.names, kymo::text_of(container, "renews"),
                                 kymo::text_of(container, "id"));
  }
  std::erase_if(planned.needs.files, [&](const criu::NeededFile& file) {
    return !output_file_at(record, file.path).empty();
  });
}

}  // namespace kymo::report
