#include "daemon/state/restore_note.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/patience.h"
#include "base/proc/boot.h"
#include "base/proc/process.h"
#include "checkpoint/criu/repair/ghosts.h"
#include "checkpoint/criu/repair/leftovers.h"
#include "checkpoint/failures/explain.h"
#include "checkpoint/runtimes/shared/readable_images.h"
#include "checkpoint/runtimes/shared/restore_lock.h"
#include "daemon/state/history_owner.h"
#include "daemon/state/kinds.h"
#include "daemon/state/restore_fate.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string folder_of(const std::string& state_dir) {
  return state_dir + "/restoring";
}

// The time since boot, in clock ticks, like the start time of a process.
std::uint64_t boot_ticks() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto ticks = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * ticks +
         static_cast<std::uint64_t>(now.tv_nsec) * ticks / kNanosPerSecond;
}

// Whether the note is of this boot. Also true if the id of this boot cannot be read.
bool of_this_boot(const json& note) {
  const std::string now = probe::boot_id();
  return now.empty() || note.value("boot_id", "") == now;
}

// The process that the restore made, if it runs. A process with this pid that is older than the
// restore is another one.
// Errors: not_found: it does not run; those of reading /proc.
Result<runtime::ProcessId> restored(const std::vector<pid_t>& tree, const json& note) {
  const Error none{Code::not_found, "none of its processes runs"};
  if (tree.empty() || !of_this_boot(note)) return none;
  const Result<probe::Process> root = probe::read_process(tree.front());
  if (!root && root.error().code != Code::not_found) return root.error();
  if (!root || root->zombie() || root->ending) return none;
  if (root->start_ticks < note.value("began_ticks", std::uint64_t{0})) return none;
  return runtime::ProcessId{root->pid, root->start_ticks};
}

// The job of the restored process. Nothing if it did not become one, which the log says.
std::optional<store::Job> register_restored(store::Store& store, Jobs& jobs,
                                            const runtime::ProcessId& process,
                                            const std::string& job_id) {
  Result<store::Job> job = store.job(job_id);
  Result<void> done;
  if (job) {
    give_process(*job, process);
    job->state = store::JobState::running;
    job->exit_status.reset();
    done = store.update_job(*job);
  } else {
    job = jobs.adopt(process);
    if (!job) done = job.error();
  }
  if (done) return *job;
  spdlog::error("the restored process did not become a job: {}", done.error().message);
  return std::nullopt;
}

// The wall clock may have been set since the restore began, but the time since boot counts on.
std::int64_t began_unix_ns(const json& note) {
  const auto tick_ns =
      static_cast<std::int64_t>(kNanosPerSecond) / static_cast<std::int64_t>(sysconf(_SC_CLK_TCK));
  const auto ago = static_cast<std::int64_t>(boot_ticks()) -
                   static_cast<std::int64_t>(note.value("began_ticks", boot_ticks()));
  return unix_ns() - ago * tick_ns;
}

std::optional<store::Job> job_of(store::Store& store, const json& note) {
  const Result<store::Job> job = store.job(note.value("job_id", ""));
  return job ? std::optional(*job) : std::nullopt;
}

constexpr char kRestoreLog[] = "/restore.log";
constexpr char kCutShortRestore[] =
    "kymod stopped during the restore; the checkpoint can be restored again";

// Adds the restore to the history of its job, if there is one, and counts it, unless its request has done both: a request
// leaves its note if the store has kept its result only in memory. The duration is not known.
void count_restore(store::Store& store, Metrics& metrics, const json& note, bool runs,
                   const std::optional<store::Job>& job) {
  store::Run run;
  if (!runs) {
    run.error = kCutShortRestore;
    run.failure = failures::of_error({Code::unavailable, run.error}).id;
  }
  if (job) {
    run.kind = store::RunKind::restore;
    run.created_unix_ns = note.value("created_unix_ns", std::int64_t{0});
    if (run.created_unix_ns == 0) run.created_unix_ns = began_unix_ns(note);  // an earlier version
    run.id = RestoreNote::run_id(run.created_unix_ns, job->id);
    run.owner = owner_of_job(job->name);
    run.checkpoint_id = note.value("checkpoint_id", "");
    run.image_bytes = note.value("image_bytes", std::uint64_t{0});
    run.conditions = "kymod stopped";  // so that no other restore is compared with it
    const Result<std::vector<store::Run>> all = store.runs(run.owner, store::RunKind::restore);
    const auto is_it = [&](const store::Run& one) { return one.id == run.id; };
    if (all && std::any_of(all->begin(), all->end(), is_it)) return;
    const Result<void> added = all ? store.add_run(run) : all.error();
    if (!added) spdlog::error("the history has no restore: {}", added.error().message);
  }
  metrics.restore_ended(runs ? RequestResult::ok : RequestResult::error);
  if (runs) return;
  metrics.outcomes()->failed("restore", run.failure);
}

struct SeenRestore {
  RestoreEvidence seen;
  runtime::ProcessId
      process{};      // the restored one, if it runs and the restore was not that of a container
  std::string why{};  // something is not known
};

// Ends what is left of the restore of a container, and finds out what became of it.
SeenRestore look_at_container(Jobs& jobs, const json& note, const SettleRestore& settle_it,
                              OpenRestore& open) {
  using Programs = RestoreEvidence::Programs;
  using Process = RestoreEvidence::Process;
  const Result<runtime::Kind> kind = kind_named(note.value("runtime", ""));
  if (!kind || !of_this_boot(note)) return {{Programs::ended, Process::none}};
  runtime::RestoreSpec spec;
  spec.images_dir = note.value("images", "");
  spec.work_dir = note.value("work", "");
  spec.container = note.value("container", "");
  spec.bundle = note.value("bundle", "");
  const Result<bool> settled = settle_it(*kind, spec, began_unix_ns(note));
  if (!settled) return {.seen = {}, .why = settled.error().message};
  if (!*settled) {
    open.quiet_looks = 0;
    return {.seen = {Programs::go_on}, .why = "the restore is still going on"};
  }
  const auto process = jobs.containers().process_of(ContainerOf{*kind, spec.container});
  if (!process) return {.seen = {}, .why = process.error().message};
  // An older process is that of a container which the restore did not make.
  const bool runs =
      *process && (*process)->start_ticks >= note.value("began_ticks", std::uint64_t{0});
  const bool may_go_on = !runtime::row_of(*kind).has_bundles;
  if (!runs) ++open.quiet_looks;
  return {{may_go_on ? Programs::quiet : Programs::ended, runs ? Process::runs : Process::none,
           open.quiet_looks}};
}

// The same of a process.
SeenRestore look_at_process(const json& note, const EndRestore& end_restore) {
  using Programs = RestoreEvidence::Programs;
  using Process = RestoreEvidence::Process;
  const auto tree = note.value("tree", std::vector<pid_t>());
  const std::string work = note.value("work", "");
  if (const Result<void> ended = end_restore(work + kRestoreLog, tree); !ended) {
    return {.seen = {}, .why = ended.error().message};
  }
  criu::remove_leftover_mounts(work);
  const Result<runtime::ProcessId> process = restored(tree, note);
  if (process) return {{Programs::ended, Process::runs}, *process};
  if (process.error().code == Code::not_found) return {{Programs::ended, Process::none}};
  return {.seen = {Programs::ended, Process::unknown},
          .why = "it is not known whether its process runs: " + process.error().message};
}

std::set<std::string> places_of_images(const json& note) {
  std::set<std::string> paths;
  for (const char* const name : {"directory", "images"}) {
    if (std::string path = note.value(name, ""); !path.empty()) paths.insert(std::move(path));
  }
  return paths;
}

// Takes back the rights to the images that the restore has given to others. Errors: they stay.
Result<void> take_rights_back(const json& note) {
  if (!note.value("gives_rights", false)) return {};
  Result<FileDescriptor> alone =
      runtime::lock_images(real_directories(places_of_images(note)), runtime::ImageUse::change);
  Result<void> taken = alone ? Result<void>() : alone.error();
  if (taken) {
    taken = within(kDiskPatience, [images = note.value("images", "")] {
              return runtime::ReadableImages::take_back(images);
            }).value_or(Error{Code::unavailable, "their disk does not answer"});
  }
  if (taken) return taken;
  return Error{taken.error().code,
               "other users may still read its images: " + taken.error().message};
}

// Stores the fate of a restore that is known.
void store_outcome(store::Store& store, Jobs& jobs, Metrics& metrics, const json& note,
                   RestoreFate fate, const runtime::ProcessId& process) {
  const bool runs = fate == RestoreFate::restored;
  const bool container = note.contains("container");
  const std::string what = container ? "container" : "process " + std::to_string(process.pid);
  spdlog::warn("restore {}: kymod stopped during it; {}", note.value("directory", ""),
               runs ? "the restored " + what + " runs" : "the checkpoint can be restored again");
  std::optional<store::Job> job;
  if (runs && !container) {
    job = register_restored(store, jobs, process, note.value("job_id", ""));
  } else {
    job = job_of(store, note);
  }
  if (!runs && !container && of_this_boot(note)) {
    criu::remove_leftover_ghosts(note.value("work", "") + kRestoreLog, began_unix_ns(note));
  }
  count_restore(store, metrics, note, runs, job);
}

// Returns whether to look again at the restore of this note.
bool settle_note(store::Store& store, Jobs& jobs, Metrics& metrics, OpenRestore& open,
                 const SettleRestore& settle_container, const EndRestore& end_restore) {
  const Result<std::string> text = read_file(open.note);
  if (!text) {
    spdlog::error(
        "the file about an unfinished restore cannot be read; kymod tries again at its next "
        "start: {}",
        text.error().message);
    return false;
  }
  const json note = parse_json(*text);
  try {
    if (note.is_object()) {
      SeenRestore found = note.contains("container")
                              ? look_at_container(jobs, note, settle_container, open)
                              : look_at_process(note, end_restore);
      RestoreFate fate = decide(found.seen);
      if (fate != RestoreFate::open) open.lock = FileDescriptor();
      if (const Result<void> rights =
              fate == RestoreFate::open ? Result<void>() : take_rights_back(note);
          !rights) {
        fate = RestoreFate::open;
        found.why = rights.error().message;
      }
      if (fate == RestoreFate::open) {
        const bool said = std::exchange(open.said, found.why) == found.why;
        if (said || found.why.empty()) return true;  // kymod looks once a second
        spdlog::error("restore {}: kymod stopped during it, and checks it again every second: {}",
                      note.value("directory", ""), found.why);
        return true;
      }
      store_outcome(store, jobs, metrics, note, fate, found.process);
    }
  } catch (const json::exception& damaged) {
    spdlog::error("the file about an unfinished restore, {}, is damaged: {}", open.note,
                  damaged.what());
  }
  std::error_code error;
  fs::remove(open.note, error);
  return false;
}

// Keeps deletions away from its images, and lets its job say that it may go on.
void hold(Claims<std::string>& claims, Jobs& jobs, OpenRestore& open) {
  const Result<std::string> text = read_file(open.note);
  const json note = text ? parse_json(*text) : json();
  if (!note.is_object()) return;
  const std::set<std::string> paths = places_of_images(note);
  open.images = DirectoryClaim(claims, paths, DirectoryClaim::SilentDisk::leave,
                               DirectoryClaim::Use::deletion);
  Result<FileDescriptor> lock =
      runtime::lock_images(real_directories(paths), runtime::ImageUse::read);
  if (lock) open.lock = *std::move(lock);
  const std::string job = note.value("job_id", "");
  if (!job.empty()) open.job = jobs.hold(job, Jobs::Doing::cut_short_restore);
}

}  // namespace

Result<RestoreNote> RestoreNote::write(const std::string& state_dir, const About& about) {
  const std::string folder = folder_of(state_dir);
  json note{{"format_version", 1},
            {"directory", about.directory},
            {"tree", about.tree},
            {"work", about.work_dir},
            {"job_id", about.job_id},
            {"created_unix_ns", about.created_unix_ns},
            {"checkpoint_id", about.checkpoint_id},
            {"image_bytes", about.image_bytes},
            {"boot_id", probe::boot_id()},
            {"began_ticks", boot_ticks()}};
  if (!about.container.empty()) {
    note["runtime"] = runtime::name_of(about.kind);
    note["images"] = about.images;
    note["container"] = about.container;
    note["bundle"] = about.bundle;
    note["gives_rights"] = about.gives_rights;
  }
  // A note that is written too late is removed again by its destructor.
  std::optional<Result<RestoreNote>> written =
      within(store::Store::kDiskAnswers,
             [folder, text = json_text(note, 2) + "\n"]() -> Result<RestoreNote> {
               if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
                 return system_error("make the folder " + folder, errno);
               }
               RestoreNote out;
               out.path_ = folder + "/" + std::to_string(unix_ns()) + ".json";
               if (Result<void> ok = replace_file(out.path_, text); !ok) return ok.error();
               return out;
             });
  if (written) return *std::move(written);
  return Error{Code::unavailable, "write a note into " + folder +
                                      ": its disk does not answer: try again when it does"};
}

void RestoreNote::remove() {
  if (path_.empty()) return;
  static_cast<void>(within(
      kDiskPatience, [path = std::exchange(path_, {})] { return unlink(path.c_str()) == 0; }));
}

std::vector<OpenRestore> settle_cut_short_restores(store::Store& store, Jobs& jobs,
                                                   Metrics& metrics, Claims<std::string>& claims,
                                                   const std::string& state_dir,
                                                   const SettleRestore& settle_container,
                                                   const EndRestore& end_restore) {
  std::error_code error;
  std::vector<OpenRestore> notes;
  for (fs::directory_iterator entry(folder_of(state_dir), error), end; !error && entry != end;
       entry.increment(error)) {
    notes.push_back({entry->path()});
  }
  std::erase_if(notes, [&](OpenRestore& one) {
    return !settle_note(store, jobs, metrics, one, settle_container, end_restore);
  });
  for (OpenRestore& one : notes) hold(claims, jobs, one);
  return notes;
}

void settle_open_restores(store::Store& store, Jobs& jobs, Metrics& metrics,
                          std::vector<OpenRestore>& open, const SettleRestore& settle_container,
                          const EndRestore& end_restore) {
  std::erase_if(open, [&](OpenRestore& one) {
    return !settle_note(store, jobs, metrics, one, settle_container, end_restore);
  });
}

}  // namespace kymo::daemon
