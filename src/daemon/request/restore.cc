#include "daemon/request/restore.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_object.h"
#include "base/own_folder.h"
#include "base/patience.h"
#include "base/proc/process.h"
#include "checkpoint/criu/images/images.h"
#include "checkpoint/preflight/host_names.h"
#include "checkpoint/runtimes/shared/readable_images.h"
#include "checkpoint/runtimes/shared/restore_checks.h"
#include "checkpoint/runtimes/shared/restore_lock.h"
#include "daemon/config/allowed_path.h"
#include "daemon/request/check.h"
#include "daemon/request/deadline.h"
#include "daemon/request/rehearsal.h"
#include "daemon/request/request.h"
#include "daemon/request/restore_context.h"
#include "daemon/request/restore_outcome.h"
#include "daemon/request/restored_job.h"
#include "daemon/request/target.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/directory_claim.h"
#include "daemon/state/restore_note.h"
#include "daemon/state/work_folder.h"
#include "lens/report/checkpoint_record.h"
#include "lens/report/human.h"
#include "lens/report/verified_checkpoint.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The same result, whose error also says what was tried.
Result<void> in_restore(const RestoreContext& c, const Result<void>& done) {
  if (done) return {};
  return Error{done.error().code, "restore " + c.directory + ": " + done.error().message,
               done.error().errno_value};
}

Result<void> validate(RestoreContext& c) {
  Result<std::string> path = allowed_path(c.parts.config, "restore", c.asked.directory());
  if (!path) return path.error();
  c.directory = std::move(path).value();
  struct stat info {};
  if (stat(c.directory.c_str(), &info) != 0) return system_error("restore " + c.directory, errno);
  c.progress.set_directory(c.directory);
  if (S_ISDIR(info.st_mode)) return {};
  return Error{Code::invalid_argument, "restore " + c.directory + ": it is not a directory"};
}

// If the outcome of the checkpoint's dump is not known yet, looks again. This comes before any access
// to the directory, whose disk may not answer.
Result<void> confirm(RestoreContext& c) {
  constexpr std::chrono::seconds kLook{5};
  const std::string directory = fs::path(c.asked.directory()).lexically_normal();
  std::optional<std::string> real;
  const auto is_here = [&](const std::string& dumped_into) {
    if (dumped_into == directory) return true;
    if (!real) real = real_directory(directory);
    return dumped_into == *real;
  };
  for (const store::Checkpoint& checkpoint : c.parts.store.checkpoints()) {
    if (checkpoint.state != store::CheckpointState::unconfirmed || !is_here(checkpoint.directory) ||
        c.parts.unconfirmed.look_now(checkpoint.id, kLook)) {
      continue;
    }
    return Error{
        Code::unavailable,
        "restore " + directory +
            ": it is not known yet whether its images are whole; kymod looks every second: "
            "try again once kymo checkpoints lists it as complete: " +
            checkpoint.error};
  }
  return {};
}

Result<void> claim_directory(RestoreContext& c) {
  c.claim = DirectoryClaim(c.parts.claims, {c.directory});
  if (c.claim) return {};
  return Error{Code::failed_precondition,
               "restore " + c.directory + ": another request uses it: wait for that to end"};
}

// Uses the directory as a checkpoint of kymod, because it has a record.
Result<void> use_checkpoint(RestoreContext& c, const CheckpointDir& dir) {
  Result<json> record = c.parts.foreign.record(dir);
  if (!record) return record.error();
  c.record = std::move(record).value();
  if (!report::is_complete(c.record, dir.path())) {
    const std::string why = text_of(c.record, "state") == "started"
                                ? "its dump has not ended"
                                : "its dump failed: " + text_of(c.record, "error");
    return Error{Code::failed_precondition, "restore " + c.directory + ": " + why};
  }
  for (const std::string& part : {dir.images(), dir.work(), dir.recordings()}) {
    if (auto allowed = allowed_path(c.parts.config, "restore", part); !allowed) {
      return allowed.error();
    }
  }
  if (Result<void> folders = check_no_linked_folders(dir); !folders) return in_restore(c, folders);
  c.images = dir.images();
  c.to = dir;
  return {};
}

Result<void> find_images(RestoreContext& c) {
  const CheckpointDir dir(c.directory);
  std::error_code error;
  if (fs::exists(dir.record(), error)) return use_checkpoint(c, dir);
  if (criu::stored_path(c.directory + "/inventory.img").empty()) {
    const bool cut_short = fs::exists(dir.partial_images(), error);
    const bool lost = !criu::stored_path(dir.images() + "/inventory.img").empty();
    return Error{
        Code::not_found,
        "restore " + c.directory +
            (lost ? ": its checkpoint.json is missing: kymo restore " + dir.images() +
                        " restores the images alone"
             : cut_short
                 ? ": its dump did not end normally, so there are no complete images to restore"
                 : ": it holds neither a checkpoint nor CRIU images")};
  }
  c.images = c.directory;
  return {};
}

// Refuses images that another user could exchange after they were verified: they are run as a program,
// with root's rights. Such a user could also lead the log of the restore to another place.
Result<void> refuse_foreign(RestoreContext& c) {
  const Result<FileDescriptor> directory = open_own_path(c.directory);
  const Result<void> own = directory ? check_own_images(c.images) : directory.error();
  if (own || own.error().code != Code::permission_denied || own.error().errno_value != 0) {
    return in_restore(c, own);
  }
  return Error{
      Code::permission_denied,
      "restore " + c.directory + ": " + own.error().message +
          ": copy it as root to a directory that only root can change (cp -r), and restore "
          "the copy"};
}

// Checks all other paths that are read or mounted: links in the images, parent images, the bundle
// (which the record may name), the root, the paths of external mounts, "mnt[NAME]:PATH", and
// inherited files.
Result<void> check_paths(const RestoreContext& c) {
  if (c.parts.config.allowed_directories.empty()) return {};
  if (auto images = allowed_images(c.parts.config, "restore " + c.directory, c.images); !images) {
    return images;
  }
  std::vector<std::string> paths;
  if (!c.bundle.empty()) paths.push_back(c.bundle);
  if (!c.asked.options().root().empty()) paths.push_back(c.asked.options().root());
  for (const std::string& external : c.asked.options().external()) {
    const std::size_t end = external.find("]:");
    const std::string path = end == std::string::npos ? "" : external.substr(end + 2);
    if (path.starts_with('/')) paths.push_back(path);
  }
  for (const v1::InheritedFile& file : c.asked.options().inherit_fd()) {
    paths.push_back(file.path());
  }
  for (const std::string& path : paths) {
    if (auto allowed = allowed_path(c.parts.config, "restore " + c.directory + " with", path);
        !allowed) {
      return allowed.error();
    }
  }
  return {};
}

// The runtime that made the checkpoint restores it. A container gets its old id and bundle, unless
// the request names others.
Result<void> find_runtime(RestoreContext& c) {
  const json made = c.record.value("container", json::object());
  const std::string by = text_of(made, "runtime");
  const bool bare = c.record.empty();
  const v1::Runtime named = c.asked.runtime();
  const Result<runtime::Kind> wanted = kind_of(named);
  const Result<runtime::Kind> kind = bare || !wanted ? wanted : kind_named(by);
  if (!kind) {
    return Error{kind.error().code, "restore " + c.directory + ": " + kind.error().message};
  }
  c.runtime_kind = *kind;
  if (named != v1::RUNTIME_UNSPECIFIED && named != to_api(c.runtime_kind)) {
    return Error{Code::invalid_argument, "restore " + c.directory + ": it was dumped as a " +
                                             std::string(runtime::name_of(c.runtime_kind)) +
                                             ", not as a " +
                                             std::string(runtime::name_of(*wanted))};
  }
  c.container = c.asked.container().empty() ? text_of(made, "id") : c.asked.container();
  // A container of another id gets another name as well.
  if (c.asked.container().empty()) c.container_name = text_of(made, "name");
  c.progress.set_container(c.container, c.container_name);
  c.bundle = c.asked.bundle().empty() ? text_of(made, "bundle") : c.asked.bundle();
  const bool bundles = runtime::row_of(c.runtime_kind).has_bundles;
  const bool is_container = runtime::row_of(c.runtime_kind).containers;
  const bool bare_container = bare && is_container;
  if ((!bundles && !c.asked.bundle().empty()) ||
      (!bundles && !bare_container && !c.asked.container().empty())) {
    return Error{Code::invalid_argument,
                 "restore " + c.directory + ": only a runc container can get another bundle or id"};
  }
  if (is_container && c.container.empty()) {
    return Error{
        Code::invalid_argument,
        "restore " + c.directory +
            ": there is no checkpoint.json, so the container is not known: give its id with --id"};
  }
  return check_paths(c);
}

Result<void> choose_criu(RestoreContext& c) {
  const json made = c.record.value("container", json::object());
  const bool read_only_root =
      made.is_object() && made.value("read_only_root", json()) == json(true);
  const json by = c.record.value("criu", json::object());
  const Result<runtime::CriuChoice> crius = crius_of(c.parts, c.runtime_kind);
  if (!crius) {
    return Error{crius.error().code, "restore " + c.directory + ": " + crius.error().message};
  }
  Result<runtime::CriuProgram> chosen = crius->for_restore(
      "restore " + c.directory, read_only_root, by.is_object() ? text_of(by, "version") : "");
  if (!chosen) return chosen.error();
  c.criu = std::move(chosen).value();
  return {};
}

runtime::RestoreSpec spec_of(const RestoreContext& c) {
  runtime::RestoreSpec spec;
  spec.images_dir = c.images;
  if (c.to) spec.work_dir = c.to->work();
  spec.container = c.container;
  spec.container_name = c.container_name;
  spec.bundle = c.bundle;
  spec.names =
      preflight::host_names_from(kymo::member(kymo::member(c.record, "container"), "names"));
  spec.tree = c.in_images.tree;
  spec.options = restore_options(to_options(c.asked.options()), c.record, c.runtime_kind);
  spec.options.inherited.insert(spec.options.inherited.end(), c.outputs_now.begin(),
                                c.outputs_now.end());
  spec.criu = c.criu;
  spec.cancel = &c.progress.cancellation();
  return spec;
}

// What this restore needs of the machine: its request replaces a part of what the dump had.
runtime::PlannedRestore planned_of(const RestoreContext& c) {
  runtime::PlannedRestore planned = c.in_images.planned;
  report::add_record(planned, c.record);
  planned.container = runtime::row_of(c.runtime_kind).containers;
  planned.bundle = c.bundle;
  const v1::CheckpointOptions& asked = c.asked.options();
  const runtime::CheckpointOptions options = spec_of(c).options;
  planned.needs.own_mounts |= !options.root.empty();
  if (options.file_validation != criu::FileValidation::unset) {
    planned.by_size = options.file_validation == criu::FileValidation::file_size;
  }
  planned.needs.own_network |=
      std::any_of(asked.external().begin(), asked.external().end(),
                  [](const std::string& external) { return external.starts_with("net["); });
  // By the inode at the dump, any of them may be meant.
  std::erase_if(planned.needs.files, [&](const criu::NeededFile& file) {
    return std::any_of(
        asked.inherit_fd().begin(), asked.inherit_fd().end(), [&](const auto& other) {
          return "/" + other.resource() == file.path || other.resource().starts_with("file[");
        });
  });
  return planned;
}

// Runs before anything is written, so that a refused restore leaves no recording in the checkpoint.
Result<void> check_restorable(RestoreContext& c) {
  if (Result<void> may = c.parts.runtimes.of(c.runtime_kind).may_restore(spec_of(c)); !may) {
    return may;
  }
  const Result<runtime::CriuChoice> crius = crius_of(c.parts, c.runtime_kind);
  const preflight::Report seen =
      runtime::look_before_restore(planned_of(c), crius ? std::optional(*crius) : std::nullopt);
  for (const preflight::Finding& finding : seen.findings) {
    if (finding.grade == preflight::Grade::refuses) {
      return refusal("restore " + c.directory, seen, finding);
    }
    c.seen_before.push_back(report::printable(line_of(finding)));
  }
  c.warnings.insert(c.warnings.end(), c.seen_before.begin(), c.seen_before.end());
  return {};
}

Result<void> refuse_damaged(const RestoreContext& c, const std::vector<std::string>& faults) {
  if (faults.empty()) return {};
  const std::string others =
      faults.size() == 1 ? "" : " (" + std::to_string(faults.size()) + " faults: kymo verify)";
  return Error{Code::data_loss,
               "restore " + c.directory + ": its images are damaged: " + faults.front() + others};
}

// Verifies the images first: CRIU would find missing or truncated images only in the middle of the
// restore, and changed ones not at all.
Result<void> verify(RestoreContext& c) {
  Result<ImagesSeen> seen = c.parts.foreign.look_at_images(c.images, &c.progress.cancellation());
  if (!seen) {
    return c.deadline.explain(
        "restore " + c.directory,
        {seen.error().code, "restore " + c.directory + ": " + seen.error().message,
         seen.error().errno_value});
  }
  c.in_images = *std::move(seen);
  c.warnings.insert(c.warnings.end(), c.in_images.unknown.begin(), c.in_images.unknown.end());
  if (Result<void> whole = refuse_damaged(c, c.in_images.planned.faults); !whole) return whole;
  const Result<void> may = runtime::check_mounts(c.in_images.planned);
  if (may) return {};
  return Error{may.error().code,
               "restore " + c.directory + ": " + report::printable(may.error().message)};
}

// Makes a directory for log and recording below the state directory, if the images are no
// checkpoint of kymod.
Result<void> make_place(RestoreContext& c) {
  const fs::path base = fs::path(c.parts.config.state_dir) / "restores";
  make_folders(base);
  for (int n = 1; !c.to; ++n) {
    const std::string path =
        base / (fs::path(c.directory).filename().string() + "-" + std::to_string(n));
    if (mkdir(path.c_str(), 0700) == 0) {
      c.to = CheckpointDir(path);
    } else if (errno != EEXIST) {
      return system_error("make the folder " + path + " for the restore's log", errno);
    }
  }
  return {};
}

// Makes the folders of log and recording, which a copied checkpoint may lack. If they exist,
// another user may have made them: kymod must not write through a link of that user.
Result<void> prepare_directory(RestoreContext& c) {
  if (Result<void> made = make_place(c); !made) return made;
  for (const std::string& folder : {c.to->work(), c.to->recordings()}) {
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      Error error = system_error("restore " + c.directory + ": make " + folder, errno);
      error.message += advice_on_full_disk(folder, error.errno_value);
      return error;
    }
    if (auto own = open_own_folder(folder); !own) return in_restore(c, own.error());
  }
  return prepare_work_folder("restore " + c.directory, c.to->work());
}

// The expected bytes are those of the page images, which are nearly all of a checkpoint.
Result<void> estimate_size(RestoreContext& c) {
  std::error_code error;
  const std::string inventory = c.images + "/inventory.img";
  if (criu::stored_path(inventory) != inventory) {  // compressed: only the record has the size
    const json stream = c.record.value("stream", json::object());
    const auto bytes = stream.is_object() ? stream.find("streamed_bytes") : stream.end();
    if (bytes != stream.end() && bytes->is_number_unsigned()) c.memory_bytes = *bytes;
    c.progress.expect(c.memory_bytes);
    return {};
  }
  for (fs::directory_iterator it(c.images, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    std::error_code gone;
    const std::uintmax_t size = fs::file_size(it->path(), gone);
    if (!gone && name.starts_with("pages-")) c.page_bytes += size;
  }
  c.memory_bytes = c.page_bytes;
  c.progress.expect(c.memory_bytes);
  return {};
}

std::vector<pid_t> pids_of(const std::vector<criu::ImageProcess>& tree) {
  std::vector<pid_t> pids;
  for (const criu::ImageProcess& process : tree) pids.push_back(process.pid);
  return pids;
}

Result<void> begin_recording(RestoreContext& c) {
  json about{{"request", "restore"}, {"directory", c.directory}};
  if (c.record.contains("pid")) {
    about["target"] = {{"pid", c.record["pid"]},
                       {"command", c.record.value("command", json::array())}};
  }
  // The pids in the images of a container are those inside it. containerd's ids have a namespace
  // before a slash.
  const bool plain = !runtime::row_of(c.runtime_kind).containers && !c.in_images.tree.empty();
  c.begin_recording(c.to->next_recording("restore"), std::move(about),
                    {plain ? c.in_images.tree.front().pid : 0, !c.container.empty(),
                     c.container.substr(c.container.find('/') + 1), c.directory},
                    plain ? pids_of(c.in_images.tree) : std::vector<pid_t>());
  return {};
}

// Against other kymods, which do not see the claims of this one, and against a restore of the same container from another
// copy of its checkpoint.
Result<void> lock_restore(RestoreContext& c) {
  std::vector<std::string> names{"directory " + real_directory(c.directory)};
  if (!c.container.empty()) names.push_back(lock_name_of(c.parts, c.runtime_kind, c.container));
  Result<FileDescriptor> lock = runtime::lock_for_restore(names);
  if (!lock) return in_restore(c, lock.error());
  c.lock = *std::move(lock);
  Result<FileDescriptor> images =
      runtime::lock_images({real_directory(c.directory)}, runtime::ImageUse::read);
  if (!images) return in_restore(c, images.error());
  c.images_lock = *std::move(images);
  return {};
}

// Leaves a note for the next kymod, in case this one is killed while CRIU restores.
Result<void> note_restore(RestoreContext& c) {
  RestoreNote::About about;
  about.directory = c.directory;
  about.tree = pids_of(c.in_images.tree);
  about.work_dir = c.to->work();
  about.created_unix_ns = c.began_unix_ns;
  if (c.job) {
    about.job_id = c.job->id;
    about.checkpoint_id = checkpoint_in(c.parts.store, c.directory);
  }
  about.image_bytes = image_bytes_of(c);
  about.kind = c.runtime_kind;
  about.images = c.images;
  about.container = c.container;
  about.bundle = c.bundle;
  // As long as that is not known, it may be.
  about.gives_rights = !c.container.empty() && within(kDiskPatience, [images = c.images] {
                                                 return runtime::ReadableImages::gives(images);
                                               }).value_or(true);
  Result<RestoreNote> note = RestoreNote::write(c.parts.config.state_dir, about);
  if (note) {
    c.note = std::move(note).value();
    return {};
  }
  // Without it, a kymod that is killed meanwhile leaves a process that nobody knows of.
  return in_restore(c, Error{note.error().code, note.error().message + ": nothing was restored",
                             note.error().errno_value});
}

Result<void> call_runtime(RestoreContext& c) {
  c.times.container = !c.container.empty();
  Result<runtime::Observer> called = c.runtime_called();
  if (!called) return called.error();
  runtime::Observer observer = *std::move(called);
  v1::Progress::Source source = v1::Progress::PASSIVE;
  observer.moved = [&](std::uint64_t bytes, std::uint64_t page_bytes, bool exact) {
    // An inexact figure also counts other reads of the processes: limit it to the page images.
    if (!exact) bytes = page_bytes = std::min(bytes, c.page_bytes);
    if (exact) source = v1::Progress::STREAM;
    c.progress.moved(bytes, page_bytes, source);
  };
  const std::string inventory = c.images + "/inventory.img";
  const bool was_gone = is_gone(inventory);
  Result<runtime::RestoreOutcome> outcome =
      c.parts.runtimes.of(c.runtime_kind).restore(spec_of(c), observer);
  c.progress.finishing();
  if (!outcome && !was_gone && is_gone(inventory)) {
    return Error{
        Code::not_found,
        "restore " + c.directory + ": the checkpoint was deleted meanwhile; nothing was restored"};
  }
  if (!outcome) {
    return with_possible_causes(c.deadline.explain("restore " + c.directory, outcome.error()),
                                c.seen_before);
  }
  c.outcome = std::move(outcome).value();
  if (!c.ran_since) c.away_ns = away_until(c.record, unix_ns());
  c.progress.set_target(c.outcome.process.pid, c.job ? c.job->name : "");
  if (source == v1::Progress::PASSIVE) c.progress.moved(c.page_bytes, c.page_bytes, source);
  for (const std::string& warning : c.outcome.warnings) c.warnings.push_back(warning);
  if (c.outcome.stats) c.seen.add(*c.outcome.stats);
  return {};
}

Result<void> look_for_restores(RestoreContext& c) {
  const Result<bool> ran = ran_since_dump(c);
  c.ran_since = !ran || *ran;
  return {};
}

// The files that a job's output goes to, and which a restore would make anew.
std::vector<criu::InheritedFile> missing_outputs(const RestoreContext& c) {
  std::vector<criu::InheritedFile> missing;
  for (const std::string& path : c.in_images.outputs) {
    std::error_code error;
    if (report::output_file_at(c.record, path).empty() || fs::exists(path, error)) continue;
    missing.push_back({path.substr(1), "/dev/null", true});
  }
  return missing;
}

// What a restore would be refused for now is a warning: it may be gone until then.
Result<void> rehearse_restore(RestoreContext& c) {
  if (const Result<void> now = check_restorable(c); !now) {
    c.warnings.push_back("now it would fail: " + now.error().message);
  }
  runtime::RehearsalSpec spec{spec_of(c)};
  const auto outputs = missing_outputs(c);
  spec.options.inherited.insert(spec.options.inherited.end(), outputs.begin(), outputs.end());
  const Result<void> rehearsed =
      rehearse(c.parts, c.runtime_kind, std::move(spec), c.in_images, c.memory_bytes);
  if (rehearsed) return {};
  return c.deadline.explain(
      "rehearse " + c.directory,
      {rehearsed.error().code, "rehearse " + c.directory + ": " + rehearsed.error().message});
}

// What comes before a restore and before a rehearsal.
constexpr auto kFirstSteps = std::to_array<Step<RestoreContext>>({
    {"confirm", confirm, "files"},
    {"validate", validate},
    {"claim directory", claim_directory},
    {"find images", find_images, "files"},
    {"check folders", refuse_foreign, "files"},
    {"find runtime", find_runtime},
    {"choose criu", choose_criu},
    {"lock", lock_restore},
    {"verify images", verify, "files"},
});

constexpr auto kRestoreSteps =
    joined(kFirstSteps, std::to_array<Step<RestoreContext>>({
                            {"check job", check_job, "store"},
                            {"check", check_restorable, "runtime"},
                            {"prepare directory", prepare_directory, "files"},
                            {"find job", find_job, "store"},
                            {"look for restores", look_for_restores, "store"},
                            {"find output", find_output, "files"},
                            {"estimate size", estimate_size, "files"},
                            {"begin recording", begin_recording, "recording"},
                            {"note restore", note_restore, "files"},
                            {"restore", call_runtime, "runtime"},
                            {"register job", register_job, "store"},
                        }));

// A rehearsal leaves nothing: no job, no recording, no history.
constexpr auto kRehearsalSteps = joined(kFirstSteps, std::to_array<Step<RestoreContext>>({
                                                         {"estimate size", estimate_size, "files"},
                                                         {"rehearse", rehearse_restore, "runtime"},
                                                     }));

}  // namespace

Result<v1::RestoreResponse> restore(const Parts& parts, const v1::RestoreRequest& request,
                                    std::shared_ptr<ScopeTree> timing) {
  const std::string tried = (request.rehearse() ? "rehearse " : "restore ") + request.directory();
  if (request.rehearse()) {
    return run_request<RestoreContext>(parts, request, std::move(timing), v1::Progress::RESTORE,
                                       tried, kRehearsalSteps);
  }
  return run_request<RestoreContext>(parts, request, std::move(timing), v1::Progress::RESTORE,
                                     tried, kRestoreSteps);
}

}  // namespace kymo::daemon
