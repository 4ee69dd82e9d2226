#include "runtimes/runc/rehearsal.h"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/json_object.h"
#include "base/json_text.h"
#include "criu/log.h"
#include "criu/rehearsal.h"
#include "criu/scratch_folder.h"
#include "preflight/oci_spec.h"
#include "runtime/readable_images.h"

namespace kymo::runtime {
namespace {

using preflight::mounts_of;
using preflight::OciMount;

namespace fs = std::filesystem;
using nlohmann::json;

// The mount that a path in the container is in: the last one of the longest destination.
const OciMount* mount_of(const std::vector<OciMount>& mounts, const std::string& path) {
  const OciMount* found = nullptr;
  for (const OciMount& mount : mounts) {
    const bool in = (path + "/").starts_with(mount.destination);
    const bool nearer = found == nullptr || mount.destination.size() >= found->destination.size();
    if (in && nearer) found = &mount;
  }
  return found;
}

// The config.json with which the container of the bundle is restored, into `folder`.
Result<void> write_bundle(const std::string& tried, const std::string& bundle,
                          const std::string& cgroup, const std::string& folder) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  if (!text) return Error{text.error().code, tried + ": " + text.error().message};
  json config = parse_json(*text);
  const std::string root = text_of(member(config, "root"), "path");
  if (root.empty() || !member(config, "linux").is_object()) {
    return Error{Code::data_loss, tried + ": " + bundle + "/config.json is damaged"};
  }
  config.erase("hooks");
  config["root"]["path"] = (fs::path(bundle) / root).lexically_normal();
  config["linux"]["cgroupsPath"] = cgroup;
  for (json& one : config["linux"]["namespaces"]) {
    const bool network =
        one.is_object() && one.contains("path") && text_of(one, "type") == "network";
    if (network) one["path"] = "/proc/self/ns/net";
  }
  return replace_file(folder + "/config.json", json_text(config));
}

// The folders of this machine that the container sees the folders `changed` in: its root, or the source of a bind mount.
// Those of its other mounts, such as a tmpfs, are its own.
std::vector<std::string> places_of(const std::string& bundle,
                                   const std::vector<std::string>& changed) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  const std::vector<OciMount> mounts = text ? mounts_of(bundle, *text) : std::vector<OciMount>();
  std::set<std::string> places;
  for (const std::string& folder : changed) {
    const OciMount* mount = mount_of(mounts, folder);
    std::error_code error;
    if (mount == nullptr || mount->source.empty()) continue;
    if (fs::is_directory(mount->source, error)) places.insert(mount->source);
  }
  return {places.begin(), places.end()};
}

// runc leaves them if it is killed.
void remove_cgroups(const std::string& name) {
  std::error_code error;
  ::rmdir(("/sys/fs/cgroup" + name).c_str());
  for (fs::directory_iterator at("/sys/fs/cgroup", error), end; !error && at != end;
       at.increment(error)) {
    ::rmdir((at->path().string() + name).c_str());
  }
}

}  // namespace

Result<void> rehearse_by_runc(const std::string& tried, const RehearsalSpec& spec, Command runc) {
  const Result<criu::ScratchFolder> folder = criu::ScratchFolder::create("kymo-rehearsal");
  if (!folder) return folder.error();
  const std::string cgroup = "/" + fs::path(folder->path()).filename().string();
  Result<void> written = write_bundle(tried, spec.bundle, cgroup, spec.work_dir);
  if (!written) return written;
  const Result<ReadableImages> readable = ReadableImages::of(tried, spec.images_dir);
  if (!readable) return readable.error();
  const criu::Stage stage{folder->path(), places_of(spec.bundle, spec.changed),
                          spec.work_dir + "/rehearsed"};
  runc.words.insert(runc.words.begin() + 1,
                    {"--root", stage.folder + "/state", "restore", "--detach", "--bundle",
                     spec.work_dir, "--image-path", spec.images_dir, "--work-path", spec.work_dir});
  runc.words.emplace_back("kymo-rehearsal");
  runc.words = stage.words(runc.words);
  runc.environment.push_back("CRIU_CONFIG_FILE=" + stage.config());
  runc.cancel = spec.cancel;
  const Result<CommandOutcome> done = run_command(runc);
  remove_cgroups(cgroup);
  std::error_code error;
  if (fs::exists(stage.said, error)) return {};
  if (!done) return Error{done.error().code, tried + ": " + done.error().message};
  const std::string cause = criu::cause_in(spec.work_dir + "/restore.log");
  return Error{Code::failed_precondition,
               tried + ": " + (cause.empty() ? last_line(done->errors) : cause)};
}

}  // namespace kymo::runtime
