#include "checkpoint/runtimes/shared/rehearsal.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "base/json_object.h"
#include "base/json_text.h"
#include "checkpoint/criu/drive/log.h"
#include "checkpoint/criu/drive/rehearsal.h"
#include "checkpoint/criu/drive/scratch_folder.h"
#include "checkpoint/preflight/oci_spec.h"
#include "checkpoint/runtimes/shared/command.h"
#include "checkpoint/runtimes/shared/readable_images.h"
#include "checkpoint/runtimes/shared/runc_words.h"

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

constexpr char kRoot[] = "/root";

// The config.json with which the container of the bundle is restored, into `folder`. `own_root`: its root is there, too.
Result<void> write_bundle(const std::string& tried, const std::string& bundle, bool own_root,
                          const std::string& cgroup, const std::string& folder) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  if (!text) return Error{Code::failed_precondition, tried + ": " + text.error().message};
  json config = parse_json(*text);
  const std::string root = kymo::text_of(member(config, "root"), "path");
  if (root.empty() || !member(config, "linux").is_object()) {
    return Error{Code::data_loss, tried + ": " + bundle + "/config.json is damaged"};
  }
  config.erase("hooks");
  config["linux"].erase("sysctl");  // runc has none of the network of the stage
  config["root"]["path"] =
      own_root ? fs::path(folder + kRoot) : (fs::path(bundle) / root).lexically_normal();
  if (config.contains("mounts")) {
    for (json& mount : config["mounts"]) {
      const std::string source = preflight::bind_source(bundle, mount);
      if (!source.empty()) mount["source"] = source;
    }
  }
  config["linux"]["cgroupsPath"] = cgroup;
  for (json& one : config["linux"]["namespaces"]) {
    if (!one.is_object() || !one.contains("path")) continue;
    if (kymo::text_of(one, "type") == "network") {
      one["path"] = "/proc/self/ns/net";
    } else {
      one.erase("path");  // it is made from the images
    }
  }
  return replace_file(folder + "/config.json", json_text(config));
}

// Where the container has the folders `changed` on this machine: in its root, or in the source of a bind mount. Those of
// its other mounts, such as a tmpfs, are its own.
std::vector<criu::Stage::Covered> places_of(const std::string& bundle,
                                            const std::vector<std::string>& changed,
                                            const std::string& root_layers) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  const std::vector<OciMount> mounts = text ? mounts_of(bundle, *text) : std::vector<OciMount>();
  std::map<std::string, std::string> places;  // and what is seen there
  if (!root_layers.empty()) places[bundle + kRoot] = root_layers;
  for (const std::string& folder : changed) {
    const OciMount* mount = mount_of(mounts, folder);
    std::error_code error;
    if (mount == nullptr || mount->source.empty()) continue;
    if (fs::is_directory(mount->source, error)) places.emplace(mount->source, criu::Stage::kItself);
  }
  std::vector<criu::Stage::Covered> covered;
  for (const auto& [place, layers] : places) covered.push_back({place, layers});
  return covered;
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

std::vector<std::string> words_on(const criu::Stage& stage, const RehearsalSpec& spec,
                                  const std::string& program) {
  std::vector<std::string> words{program, "--root", stage.folder + "/state"};
  for (std::string& flag : runc_log_flags(spec.work_dir + kRuncLog))
    words.push_back(std::move(flag));
  words.insert(words.end(), {"restore", "--detach", "--bundle", spec.work_dir, "--image-path",
                             spec.images_dir, "--work-path", spec.work_dir});
  for (std::string& flag : runc_flags(spec.options)) words.push_back(std::move(flag));
  words.emplace_back("kymo-rehearsal");
  return words;
}

}  // namespace

Error not_rehearsable(const std::string& tried, const std::string& runtime) {
  return {Code::failed_precondition,
          tried + ": it has ended, and " + runtime +
              " has its root only while it runs: rehearse it before its end (kymo dump --prove)"};
}

Result<void> rehearse_by_runc(const RehearsalSpec& spec, const std::string& criu_folder,
                              std::chrono::milliseconds timeout, const std::string& root_layers,
                              const std::string& program) {
  const std::string tried = "could not restore container " + name_of_container(spec);
  const Result<criu::ScratchFolder> folder = criu::ScratchFolder::create("kymo-rehearsal");
  if (!folder) return folder.error();
  const std::string cgroup = "/" + fs::path(folder->path()).filename().string();
  std::error_code error;
  if (!root_layers.empty()) fs::create_directory(spec.work_dir + kRoot, error);
  Result<void> written =
      write_bundle(tried, spec.bundle, !root_layers.empty(), cgroup, spec.work_dir);
  if (!written) return written;
  const Result<ReadableImages> readable = ReadableImages::of(tried, spec.images_dir);
  if (!readable) return readable.error();
  const criu::Stage stage{folder->path(), places_of(spec.work_dir, spec.changed, root_layers),
                          spec.work_dir + "/rehearsed"};
  Command runc;
  runc.words = stage.words(words_on(stage, spec, program));
  runc.environment = environment_with_path(spec.criu ? spec.criu->folder : criu_folder);
  runc.environment.push_back("CRIU_CONFIG_FILE=" + stage.config());
  runc.timeout = spec.time_limit.count() != 0 ? spec.time_limit : timeout;
  runc.cancel = spec.cancel;
  const Result<CommandOutcome> done = run_command(runc);
  remove_cgroups(cgroup);
  if (fs::exists(stage.said, error)) return {};
  if (!done) return Error{done.error().code, tried + ": " + done.error().message};
  std::string why = criu::cause_in(spec.work_dir + "/restore.log");
  if (why.empty()) why = last_logged_error(spec.work_dir + kRuncLog);
  if (why.empty()) why = last_line(done->errors);
  return Error{Code::failed_precondition, tried + ": " + why};
}

}  // namespace kymo::runtime
