#include "daemon/state/cut_short.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/own_folder.h"
#include "base/patience.h"
#include "criu/image_list.h"
#include "criu/stats.h"
#include "criu/whole_tar.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/history_owner.h"
#include "daemon/state/jobs.h"
#include "daemon/state/kinds.h"
#include "daemon/state/stats_json.h"
#include "failures/explain.h"
#include "probe/boot.h"
#include "probe/directory_bytes.h"
#include "probe/process.h"
#include "report/checkpoint_record.h"
#include "runtime/aftermath.h"
#include "runtime/dump_lock.h"
#include "runtime/memory_images.h"
#include "runtime/process_checks.h"
#include "runtime/scratch.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kReleasedWithin{2};

// What became of a process that was being dumped.
enum class Fate : std::uint8_t { runs, gone, unsure };

// A dump that was cut short, with the checkpoint.json that was written before it began.
struct CutShortDump {
  store::Checkpoint checkpoint;
  std::optional<store::Job> job;
  CheckpointDir dir;
  json record;  // an object; empty if it cannot be read
  runtime::Kind kind = runtime::Kind::process;
  runtime::DumpSpec spec;
  std::string text;  // "process 12"
  // Then its process is gone, whatever has its pid and its start time now.
  bool of_earlier_boot = false;
};

// Returns the value of `key`, or `otherwise` if the value is missing or of another type. The record
// may be damaged.
template <class Value>
Value value_of(const json& object, const char* key, Value otherwise) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  try {
    return found->get<Value>();
  } catch (const json::exception&) {
    return otherwise;
  }
}

// What the store says about the dump.
CutShortDump listed(store::Store& store, const store::Checkpoint& checkpoint) {
  CutShortDump dump{
      checkpoint, std::nullopt, CheckpointDir(checkpoint.directory),        json::object(),
      {},         {},           "process " + std::to_string(checkpoint.pid)};
  if (Result<store::Job> found = store.job(checkpoint.job_id); found) dump.job = *found;
  dump.spec.process = {checkpoint.pid, checkpoint.start_ticks};
  if (checkpoint.start_ticks == 0 && dump.job) {
    dump.spec.process.start_ticks = dump.job->start_ticks;
  }
  dump.of_earlier_boot = probe::is_of_earlier_boot(checkpoint.boot_id);
  dump.spec.images_dir = dump.dir.partial_images();
  dump.spec.work_dir = dump.dir.work();
  dump.spec.scratch_dir = runtime::scratch_path(checkpoint.id);
  dump.spec.memory_images = runtime::find_memory_images(checkpoint.id);
  return dump;
}

// Adds what the checkpoint.json of the dump says.
// Errors: it cannot be read now, because the process that reads foreign files is gone, or its disk is too slow, or no
//         descriptor is free. A record that is damaged is left out.
Result<void> add_record(const ForeignFiles& foreign, CutShortDump& dump) {
  // The directory may contain another dump by now.
  Result<json> record = foreign.whole_record(dump.dir);
  if (!record) {
    const Code why = record.error().code;
    if (why == Code::unavailable || why == Code::resource_exhausted) return record.error();
    if (why != Code::not_found) spdlog::error("{}", record.error().message);
  } else if (value_of(*record, "created_unix_ns", std::int64_t{0}) ==
             dump.checkpoint.created_unix_ns) {
    dump.record = *std::move(record);
  }
  // An earlier version of the store does not tell it, and the job may have another process by now, which was restored
  // from an older checkpoint with the same pid.
  const std::uint64_t start_ticks = value_of(dump.record, "start_ticks", std::uint64_t{0});
  if (dump.checkpoint.start_ticks == 0 && (start_ticks != 0 || !dump.job)) {
    dump.spec.process.start_ticks = start_ticks;
  }
  const json container = value_of(dump.record, "container", json::object());
  if (!container.is_object() || container.empty()) return {};
  const Result<runtime::Kind> kind = kind_named(value_of(container, "runtime", std::string()));
  if (!kind) spdlog::error("the checkpoint {}: {}", dump.dir.path(), kind.error().message);
  dump.kind = kind ? *kind : runtime::Kind::process;
  dump.spec.container = value_of(container, "id", std::string());
  dump.spec.frozen = value_of(container, "frozen", false);
  if (dump.kind != runtime::Kind::process) {
    dump.text = std::string(runtime::name_of(dump.kind)) + " container " +
                value_of(container, "name", dump.spec.container);
  }
  return {};
}

probe::Life life_now(const CutShortDump& dump) {
  const runtime::ProcessId& process = dump.spec.process;
  return dump.of_earlier_boot ? probe::Life::ended
                              : probe::life_of(process.pid, process.start_ticks);
}

Fate fate_of(const CutShortDump& dump) {
  const runtime::ProcessId& process = dump.spec.process;
  const probe::Life life = life_now(dump);
  if (life != probe::Life::runs) return life == probe::Life::ended ? Fate::gone : Fate::unsure;
  // Without the start time, this may be another process with the same pid. CRIU may still kill a
  // process that it holds. The kernel releases a traced process an instant after its tracer has
  // ended, so wait for that.
  bool held = true;
  for (const auto until = Clock::now() + kReleasedWithin; held && Clock::now() < until;) {
    held = !probe::halted_threads(process.pid).empty();
    if (held) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return process.start_ticks != 0 && !held ? Fate::runs : Fate::unsure;
}

// Adds to the record how the dump ended.
json record_of(const CutShortDump& dump) {
  json record = dump.record;
  record["state"] = store::name_of(dump.checkpoint.state);
  record["pid"] = dump.checkpoint.pid;
  record["created_unix_ns"] = dump.checkpoint.created_unix_ns;
  record["image_bytes"] = dump.checkpoint.image_bytes;
  record["recovered"] = true;
  if (dump.job) {
    record["command"] = dump.job->command;
    record["job"] = {{"id", dump.job->id}, {"name", dump.job->name}};
  }
  return record;
}

// The job as it is now, if the process that was dumped is still its newest one.
std::optional<store::Job> job_of_dumped(store::Store& store, const CutShortDump& dump) {
  return dump.job ? job_with(store, dump.job->id, dump.spec.process) : std::nullopt;
}

// The beginning of a message: why the outcome was not known at once. `stopped`: what that was if kymod
// has stopped.
std::string why_open(const CutShortDump& dump, const char* stopped) {
  return dump.checkpoint.state == store::CheckpointState::unconfirmed
             ? dump.checkpoint.error + "; later: "
             : std::string(stopped) + "; ";
}

constexpr char kNotSaved[] = "kymod stopped before the result of the dump was saved";
constexpr char kCutShort[] = "kymod stopped during the dump";  // failures::of_error() knows it

// The owner of the history to which the dump belongs. Empty if nothing says it any more.
std::string owner_of_dump(const CutShortDump& dump) {
  std::string job = value_of(value_of(dump.record, "job", json::object()), "name", std::string());
  if (dump.job) job = dump.job->name;
  if (!job.empty()) return owner_of_job(job);
  if (dump.kind != runtime::Kind::process) {
    const json container = value_of(dump.record, "container", json::object());
    return owner_of_container(dump.kind, value_of(container, "name", dump.spec.container));
  }
  const auto command = value_of(dump.record, "command", std::vector<std::string>());
  return command.empty() ? "" : owner_of_program(command, "");
}

// The run of a dump whose request could not add one. `lost`: is_lost() of the checkpoint as it was. The duration, the
// warmth and the disk are not known.
std::optional<store::Run> run_of(const CutShortDump& dump, bool lost) {
  const store::Checkpoint& checkpoint = dump.checkpoint;
  store::Run run;
  run.owner = owner_of_dump(dump);
  if (!lost || run.owner.empty()) return std::nullopt;
  run.id = checkpoint.id;
  run.kind = store::RunKind::dump;
  run.checkpoint_id = checkpoint.id;
  run.created_unix_ns = checkpoint.created_unix_ns;
  if (checkpoint.state == store::CheckpointState::failed) {
    run.error = checkpoint.error;
    run.failure = failures::of_error({Code::unavailable, run.error}).id;
  }
  run.image_bytes = checkpoint.image_bytes;
  run.conditions = "kymod stopped";  // so that no other dump is compared with it
  run.stats_json = checkpoint.stats_json;
  return run;
}

// Marks a checkpoint as complete.
Result<void> conclude(store::Store& store, CutShortDump dump, Fate fate) {
  store::Checkpoint& checkpoint = dump.checkpoint;
  const bool lost = is_lost(checkpoint);
  checkpoint.cut_short = lost;
  const Result<std::uint64_t> bytes = probe::directory_bytes(dump.dir.images());
  if (!bytes) return bytes.error();
  checkpoint.image_bytes = *bytes;
  checkpoint.error = why_open(dump, kNotSaved) + "the images are complete";
  if (const std::string fault = criu::fault_of_shared_memory(dump.dir.path()); !fault.empty()) {
    checkpoint.error += ", but " + fault;
  }
  checkpoint.state = store::CheckpointState::complete;
  json record = record_of(dump);
  const auto stats = criu::read_dump_stats(dump.dir.work() + "/stats-dump");
  if (stats) {
    record["stats"] = to_json(*stats);
    checkpoint.stats_json = json_text(record["stats"]);
  }
  if (!record.contains(report::kImages)) {  // kymod stopped before it had listed them
    const auto images = criu::list_images(dump.dir.images(), criu::Sums::small);
    if (images) record[report::kImages] = report::json_of(*images);
  }
  // The images are whole and published: it can be restored without.
  if (Result<void> ok = write_record(dump.dir, std::move(record)); !ok) {
    spdlog::warn("{}", ok.error().message);
  }
  spdlog::warn("dump of {}: {} (in {})", dump.text, checkpoint.error, dump.dir.images());
  std::optional<store::Job> job = fate == Fate::gone ? job_of_dumped(store, dump) : std::nullopt;
  if (job) job->state = store::JobState::dumped;
  const std::optional<store::Run> run = run_of(dump, lost);
  return store.update_checkpoint(checkpoint, job ? &*job : nullptr, run ? &*run : nullptr);
}

// The job, if it was marked as dumped for this dump alone: it has no newer checkpoint.
std::optional<store::Job> job_of_this_dump(store::Store& store, const CutShortDump& dump) {
  std::optional<store::Job> job = job_of_dumped(store, dump);
  if (!job || job->state != store::JobState::dumped) return std::nullopt;
  const std::vector<store::Checkpoint> all = store.checkpoints(job->id);
  const bool newest = !all.empty() && all.back().id == dump.checkpoint.id;
  return newest ? job : std::nullopt;
}

// Marks a checkpoint as failed. `what`: what became of the process and the images.
Result<void> mark_failed(store::Store& store, CutShortDump dump, const std::string& what) {
  store::Checkpoint& checkpoint = dump.checkpoint;
  const bool lost = is_lost(checkpoint);
  checkpoint.cut_short = lost;
  std::optional<store::Job> ended = job_of_this_dump(store, dump);
  if (ended) ended->state = store::JobState::exited;
  checkpoint.error = why_open(dump, kCutShort) + what;
  checkpoint.state = store::CheckpointState::failed;
  spdlog::warn("dump of {}: {}", dump.text, checkpoint.error);
  json record = record_of(dump);
  record["error"] = checkpoint.error;
  if (lost) {
    record["failure"] =
        failures::to_json(failures::of_error({Code::unavailable, checkpoint.error}));
  }
  if (Result<void> ok = write_record(dump.dir, std::move(record)); !ok) {
    spdlog::warn("{}", ok.error().message);  // the folder may be gone by now
  }
  const std::optional<store::Run> run = run_of(dump, lost);
  return store.update_checkpoint(checkpoint, ended ? &*ended : nullptr, run ? &*run : nullptr);
}

// Marks a checkpoint as unconfirmed, if it is not yet. If the process is gone and its whole images are in memory,
// its job is dumped.
Result<void> mark_unconfirmed(store::Store& store, CutShortDump& dump, const std::string& why) {
  store::Checkpoint& checkpoint = dump.checkpoint;
  if (checkpoint.state == store::CheckpointState::unconfirmed) return {};
  const bool whole =
      runtime::whole_in_memory(dump.spec.memory_images) && life_now(dump) == probe::Life::ended;
  std::optional<store::Job> dumped = whole ? job_of_dumped(store, dump) : std::nullopt;
  if (dumped) dumped->state = store::JobState::dumped;
  checkpoint.cut_short = is_lost(checkpoint);
  checkpoint.state = store::CheckpointState::unconfirmed;
  checkpoint.error = std::string(kCutShort) + "; " + why + ": its images are kept in " +
                     runtime::as_dumped(dump.spec).images_dir;
  spdlog::warn("dump of {}: {}", dump.text, checkpoint.error);
  return store.update_checkpoint(checkpoint, dumped ? &*dumped : nullptr);
}

std::string why_unsure(const CutShortDump& dump) {
  const std::string process = "process " + std::to_string(dump.checkpoint.pid);
  if (const pid_t holder = runtime::held_by(dump.checkpoint.pid); holder != 0) {
    return process + " is " + runtime::held_text(holder);
  }
  return "it is not known whether " + process + " runs on";
}

std::string why_locked(const CutShortDump& dump) {
  const std::string pid = std::to_string(dump.checkpoint.pid);
  return "process " + pid + " is being dumped again, or a program has locked /proc/" + pid +
         "/mem; kymod checks the process again when that ends";
}

// What is known of a dump whose disk does not answer.
std::string why_silent(const CutShortDump& dump) {
  const Fate fate = fate_of(dump);
  const std::string process = "process " + std::to_string(dump.checkpoint.pid);
  if (fate == Fate::gone && runtime::whole_in_memory(dump.spec.memory_images)) {
    return process + " is gone, and the disk has not taken its images yet";
  }
  if (fate == Fate::unsure) return why_unsure(dump) + ", and the disk does not answer";
  return process + (fate == Fate::gone ? " is gone" : " runs on") +
         ", and the disk does not answer";
}

// Returns work(), which waits for the disk of the dump. If the disk does not answer at once, marks the checkpoint as
// unconfirmed meanwhile, so that the lists say what is known.
template <class Work>
auto wait_for_disk(store::Store& store, CutShortDump& dump, Work work) {
  std::future<decltype(work())> done = std::async(std::launch::async, std::move(work));
  if (done.wait_for(kDiskPatience) != std::future_status::ready) {
    if (Result<void> marked = mark_unconfirmed(store, dump, why_silent(dump)); !marked) {
      spdlog::error("{}", marked.error().message);
    }
  }
  return done.get();
}

// The first fault of these images. Empty if they are good.
// Errors: those of ForeignFiles.
Result<std::string> fault_in(const ForeignFiles& foreign, const std::string& images_dir) {
  const Result<ImagesSeen> seen = foreign.look_at_images(images_dir, nullptr);
  if (!seen && seen.error().code == Code::data_loss) return seen.error().message;
  if (!seen) return seen.error();
  return seen->faults.empty() ? std::string() : seen->faults.front();
}

// Copies images from memory to their disk if they are whole, and else removes them from memory. Returns
// false if the disk has not taken them yet.
Result<bool> take_from_memory(const CutShortDump& dump) {
  const std::string& memory = dump.spec.memory_images;
  if (!runtime::whole_in_memory(memory)) {
    runtime::drop_memory_images(memory);
    return true;
  }
  constexpr bool kDurable = true;
  return runtime::bring_images(memory, dump.spec.images_dir, kDurable, kDiskPatience);
}

Result<void> publish_kept(store::Store& store, CutShortDump& dump) {
  return wait_for_disk(store, dump, [dir = dump.dir] { return publish_images(dir); });
}

void discard_kept(store::Store& store, CutShortDump& dump) {
  wait_for_disk(store, dump, [dir = dump.dir] {
    discard_images(dir);
    return true;
  });
}

// Whether the machine was started again since the dump began: a disk may have lost what it had taken.
bool is_of_earlier_boot(const CutShortDump& dump) {
  if (!dump.checkpoint.boot_id.empty()) return dump.of_earlier_boot;
  // An earlier version did not store the boot.
  timespec since_boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const std::int64_t booted_unix_ns = unix_ns() - static_cast<std::int64_t>(to_nanos(since_boot));
  const std::int64_t created_unix_ns = dump.checkpoint.created_unix_ns;
  return created_unix_ns != 0 && created_unix_ns < booted_unix_ns;
}

// The process is gone: the images are all that may be left of it.
Result<bool> close_gone(store::Store& store, const ForeignFiles& foreign, CutShortDump dump) {
  const runtime::Images images = wait_for_disk(store, dump, [images_dir = dump.spec.images_dir] {
    return runtime::wait_for_images_in(images_dir);
  });
  if (images == runtime::Images::unknown) {
    const std::string why = "process " + std::to_string(dump.checkpoint.pid) +
                            " is gone, and its images cannot be looked at";
    Result<void> marked = mark_unconfirmed(store, dump, why);
    return marked ? Result<bool>(false) : marked.error();
  }
  if (images == runtime::Images::not_whole) {
    discard_kept(store, dump);
    const std::string what = "the incomplete images were removed, and " + dump.text + " is gone";
    Result<void> marked = mark_failed(store, std::move(dump), what);
    return marked ? Result<bool>(true) : marked.error();
  }
  // The runtime of a container may have been killed while it copied the images, as Docker does.
  if (dump.checkpoint.state == store::CheckpointState::unconfirmed || is_of_earlier_boot(dump) ||
      dump.kind != runtime::Kind::process) {
    const Result<std::string> fault = fault_in(foreign, dump.spec.images_dir);
    if (!fault) return fault.error();
    if (!fault->empty()) {
      const std::string what = dump.text + " is gone, and its images are damaged: " + *fault +
                               "; they are kept in " + dump.spec.images_dir;
      Result<void> marked = mark_failed(store, std::move(dump), what);
      return marked ? Result<bool>(true) : marked.error();
    }
  }
  if (Result<void> ok = publish_kept(store, dump); !ok) return ok.error();
  Result<void> concluded = conclude(store, std::move(dump), Fate::gone);
  return concluded ? Result<bool>(true) : concluded.error();
}

// The images have their final name.
Result<bool> close_published(store::Store& store, const ForeignFiles& foreign, CutShortDump dump,
                             Fate fate) {
  if (is_of_earlier_boot(dump)) {
    const std::string images_dir = dump.dir.images();
    const Result<std::string> fault = fault_in(foreign, images_dir);
    if (!fault) return fault.error();
    if (!fault->empty()) {
      const std::string what =
          "its images are damaged: " + *fault + "; they are kept in " + images_dir;
      Result<void> marked = mark_failed(store, std::move(dump), what);
      return marked ? Result<bool>(true) : marked.error();
    }
  }
  Result<void> concluded = conclude(store, std::move(dump), fate);
  return concluded ? Result<bool>(true) : concluded.error();
}

// A dump that lets its process run on may have written all its images before the disk stalled. Whether
// they are good, and so a checkpoint.
// Errors: those of ForeignFiles.
Result<bool> is_checkpoint_of_running(const ForeignFiles& foreign, const CutShortDump& dump) {
  if (dump.checkpoint.state != store::CheckpointState::unconfirmed ||
      !value_of(dump.record, "leave_running", false) ||
      runtime::wait_for_images_in(dump.spec.images_dir) != runtime::Images::whole) {
    return false;
  }
  const Result<std::string> fault = fault_in(foreign, dump.spec.images_dir);
  return fault ? Result<bool>(fault->empty()) : fault.error();
}

// The process runs.
Result<void> close_running(store::Store& store, const ForeignFiles& foreign, CutShortDump dump) {
  runtime::drop_memory_images(dump.spec.memory_images);
  const Result<bool> whole = is_checkpoint_of_running(foreign, dump);
  if (!whole) return whole.error();
  if (*whole) {
    if (Result<void> ok = publish_kept(store, dump); !ok) return ok;
    return conclude(store, std::move(dump), Fate::runs);
  }
  discard_kept(store, dump);
  const std::string what = "the incomplete images were removed, and " + dump.text + " runs on";
  return mark_failed(store, std::move(dump), what);
}

// Lets nobody dump the process while it is settled. Nothing is locked if it is gone, or if it may not be opened.
// Errors: failed_precondition: it is being dumped; resource_exhausted: no descriptor is free.
Result<runtime::DumpLock> lock_dumped(const CutShortDump& dump) {
  constexpr std::chrono::seconds kOtherLookEndsWithin{1};  // at another dump of this process
  if (life_now(dump) == probe::Life::ended) return runtime::DumpLock();
  Result<runtime::DumpLock> lock = runtime::lock_for_dump(dump.spec.process, kOtherLookEndsWithin);
  if (!lock && lock.error().code != Code::failed_precondition &&
      lock.error().code != Code::resource_exhausted) {
    return runtime::DumpLock();
  }
  return lock;
}

void log_failure(const CutShortDump& dump, const Result<void>& settled) {
  if (!settled) spdlog::error("dump of {}: {}", dump.text, settled.error().message);
}

// Ends what still runs of a dump and lets its process go on. That would disturb another dump of the process.
// Returns what became of the process.
// Errors: those of lock_dumped(): nothing was done.
Result<Fate> settle_process(const CutShortDump& dump, const SettleDump& settle) {
  const Result<runtime::DumpLock> lock = lock_dumped(dump);
  if (!lock) return lock.error();
  runtime::DumpSpec spec = runtime::as_dumped(dump.spec);
  if (dump.of_earlier_boot) spec.process = {};
  log_failure(dump, settle(dump.kind, spec));
  return fate_of(dump);
}

// The same without a look at the directory of the dump. If another dump of the process goes on, the next look does it.
void settle_without_directory(const CutShortDump& dump, const SettleDump& settle) {
  runtime::DumpSpec spec;
  if (!dump.of_earlier_boot) spec.process = dump.spec.process;
  spec.scratch_dir = dump.spec.scratch_dir;
  const Result<runtime::DumpLock> lock = lock_dumped(dump);
  if (lock) log_failure(dump, settle(runtime::Kind::process, spec));
}

// Checks that no other user can lead what is written to the directory, or removed from it, to another
// place. First lets the process go on if the answer is no, or if the disk does not answer at once.
Result<void> check_directory(store::Store& store, CutShortDump& dump, const SettleDump& settle) {
  const std::string path = dump.dir.path();
  std::optional<Result<void>> own = within(kDiskPatience, [path] { return check_own_path(path); });
  if (own && *own) return {};
  settle_without_directory(dump, settle);
  return own ? *own : wait_for_disk(store, dump, [path] { return check_own_path(path); });
}

}  // namespace

Result<bool> close_cut_short_dump(store::Store& store, const ForeignFiles& foreign,
                                  const store::Checkpoint& checkpoint, const SettleDump& settle) {
  CutShortDump dump = listed(store, checkpoint);
  if (const Result<void> own = check_directory(store, dump, settle); !own) {
    if (own.error().errno_value != 0) return own.error();
    Result<void> marked =
        mark_unconfirmed(store, dump,
                         "its directory can be changed by other users (" + own.error().message +
                             "), and kymod looks at it once only root can change it");
    return marked ? Result<bool>(false) : marked.error();
  }
  if (Result<void> read = add_record(foreign, dump); !read) {
    settle_without_directory(dump, settle);
    return read.error();
  }
  Result<void> done;
  const Result<Fate> settled = settle_process(dump, settle);
  if (!settled && settled.error().code == Code::failed_precondition) {
    done = mark_unconfirmed(store, dump, why_locked(dump));
    return done ? Result<bool>(false) : done.error();
  }
  if (!settled) return settled.error();
  const Fate fate = *settled;
  runtime::keep_scratch(dump.spec, kDiskPatience);
  const bool wanted = fate == Fate::gone || value_of(dump.record, "leave_running", false);
  if (fate != Fate::unsure && wanted && runtime::is_part_in_scratch(dump.spec)) {
    done = mark_unconfirmed(store, dump,
                            "the disk has not taken the files of its /dev/shm yet, which are in " +
                                dump.spec.scratch_dir);
    return done ? Result<bool>(false) : done.error();
  }
  const std::string hindered = fate == Fate::gone ? obstacle_to_images(dump.dir) : "";
  if (!hindered.empty()) {
    done = mark_unconfirmed(store, dump, dump.text + " is gone, and " + hindered);
    return done ? Result<bool>(false) : done.error();
  }
  if (is_published(dump.dir)) {
    runtime::drop_memory_images(dump.spec.memory_images);
    return close_published(store, foreign, std::move(dump), fate);
  }
  if (fate == Fate::gone) {
    const Result<bool> brought = take_from_memory(dump);
    if (!brought || !*brought) {
      const std::string why = dump.text + " is gone, and the disk has not taken its images yet" +
                              (brought ? "" : " (" + brought.error().message + ")");
      done = mark_unconfirmed(store, dump, why);
      return done ? Result<bool>(false) : done.error();
    }
    return close_gone(store, foreign, std::move(dump));
  } else if (fate == Fate::unsure) {
    const std::string why = why_unsure(dump);
    done = mark_unconfirmed(store, dump, why);
    return done ? Result<bool>(false) : done.error();
  } else {
    done = close_running(store, foreign, std::move(dump));
  }
  return done ? Result<bool>(true) : done.error();
}

bool is_open(const store::Checkpoint& checkpoint) {
  return checkpoint.state == store::CheckpointState::started ||
         checkpoint.state == store::CheckpointState::unconfirmed;
}

bool is_lost(const store::Checkpoint& checkpoint) {
  if (checkpoint.state == store::CheckpointState::started) return true;
  return checkpoint.state == store::CheckpointState::unconfirmed && checkpoint.cut_short;
}

void settle_old_scratch(store::Store& store) {
  for (const std::string& id : runtime::scratch_names()) {
    const Result<store::Checkpoint> checkpoint = store.checkpoint(id);
    if (!checkpoint || is_open(*checkpoint)) continue;  // of another kymod, or still needed
    runtime::DumpSpec spec;
    spec.work_dir = CheckpointDir(checkpoint->directory).work();
    spec.scratch_dir = runtime::scratch_path(id);
    runtime::keep_scratch(spec, std::chrono::milliseconds(0));
    runtime::drop_memory_images(runtime::find_memory_images(id));
  }
}

}  // namespace kymo::daemon
