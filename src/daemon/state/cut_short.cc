#include "daemon/state/cut_short.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/own_folder.h"
#include "base/patience.h"
#include "base/proc/boot.h"
#include "base/proc/directory_bytes.h"
#include "base/proc/process.h"
#include "checkpoint/criu/drive/stats.h"
#include "checkpoint/criu/images/image_list.h"
#include "checkpoint/criu/images/whole_tar.h"
#include "checkpoint/failures/explain.h"
#include "checkpoint/runtimes/shared/dump_lock.h"
#include "checkpoint/runtimes/shared/memory_images.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/dump_end.h"
#include "daemon/state/history_owner.h"
#include "daemon/state/jobs.h"
#include "daemon/state/kinds.h"
#include "daemon/state/stats_json.h"
#include "lens/report/checkpoint_record.h"

namespace kymo::daemon {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kReleasedWithin{2};

// A dump that was cut short, with the checkpoint.json that was written before it began.
struct CutShortDump {
  EndedDump dump;  // `record` is empty if it cannot be read
  store::Checkpoint checkpoint;
  std::optional<store::Job> job{};
  runtime::Kind kind{};
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

// Whether the machine was started again since the dump began: a disk may have lost what it had taken.
bool is_of_earlier_boot(const store::Checkpoint& checkpoint) {
  if (!checkpoint.boot_id.empty()) return probe::is_of_earlier_boot(checkpoint.boot_id);
  // An earlier version did not store the boot.
  timespec since_boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const std::int64_t booted_unix_ns = unix_ns() - static_cast<std::int64_t>(to_nanos(since_boot));
  return checkpoint.created_unix_ns != 0 && checkpoint.created_unix_ns < booted_unix_ns;
}

// What the store says about the dump.
CutShortDump listed(store::Store& store, const store::Checkpoint& checkpoint) {
  CutShortDump lost{{.dir = CheckpointDir(checkpoint.directory)}, checkpoint};
  if (Result<store::Job> found = store.job(checkpoint.job_id); found) lost.job = *found;
  EndedDump& dump = lost.dump;
  dump.text = "process " + std::to_string(checkpoint.pid);
  dump.failed = is_lost(checkpoint);
  dump.of_earlier_boot = is_of_earlier_boot(checkpoint);
  dump.spec.process = {checkpoint.pid, checkpoint.start_ticks};
  if (checkpoint.start_ticks == 0 && lost.job) {
    dump.spec.process.start_ticks = lost.job->start_ticks;
  }
  dump.spec.images_dir = dump.dir.partial_images();
  dump.spec.work_dir = dump.dir.work();
  dump.spec.scratch_dir = runtime::scratch_path(checkpoint.id);
  dump.spec.memory_images = runtime::find_memory_images(checkpoint.id);
  return lost;
}

// Adds what the checkpoint.json of the dump says.
// Errors: it cannot be read now, because the process that reads foreign files is gone, or its disk is too slow, or no
//         descriptor is free. A record that is damaged is left out.
Result<void> add_record(const ForeignFiles& foreign, CutShortDump& lost) {
  EndedDump& dump = lost.dump;
  // The directory may contain another dump by now.
  Result<json> record = foreign.whole_record(dump.dir);
  if (!record) {
    const Code why = record.error().code;
    if (why == Code::unavailable || why == Code::resource_exhausted) return record.error();
    if (why != Code::not_found) spdlog::error("{}", record.error().message);
  } else if (value_of(*record, "created_unix_ns", std::int64_t{0}) ==
             lost.checkpoint.created_unix_ns) {
    dump.record = *std::move(record);
  }
  // An earlier version of the store does not tell it, and the job may have another process by now, which was restored
  // from an older checkpoint with the same pid.
  const std::uint64_t start_ticks = value_of(dump.record, "start_ticks", std::uint64_t{0});
  if (lost.checkpoint.start_ticks == 0 && (start_ticks != 0 || !lost.job)) {
    dump.spec.process.start_ticks = start_ticks;
  }
  dump.spec.leave_running = value_of(dump.record, "leave_running", false);
  const json container = value_of(dump.record, "container", json::object());
  if (!container.is_object() || container.empty()) return {};
  const Result<runtime::Kind> kind = kind_named(value_of(container, "runtime", std::string()));
  if (!kind) spdlog::error("the checkpoint {}: {}", dump.dir.path(), kind.error().message);
  lost.kind = kind ? *kind : runtime::Kind{};
  dump.spec.container = value_of(container, "id", std::string());
  dump.spec.frozen = value_of(container, "frozen", false);
  if (runtime::row_of(lost.kind).containers) {
    dump.text = std::string(runtime::name_of(lost.kind)) + " container " +
                value_of(container, "name", dump.spec.container);
  }
  return {};
}

// Looks into the directory, if no other user can lead what is written there, or removed from it, to another place.
// Otherwise, or if that cannot be seen now, says so in `out_of_reach`.
void read_directory(const ForeignFiles& foreign, CutShortDump& lost, AskedDisk& disk) {
  EndedDump& dump = lost.dump;
  const auto own = disk.ask([path = dump.dir.path()] { return check_own_path(path); });
  if (!own) {
    dump.out_of_reach = Error{Code::unavailable, "the disk does not answer"};
  } else if (!*own) {
    dump.out_of_reach = own->error();
    if (own->error().errno_value != 0) return;
    dump.out_of_reach->message = "its directory can be changed by other users (" +
                                 own->error().message +
                                 "): kymod looks at it once only root can change it";
  } else if (const Result<void> read = add_record(foreign, lost); !read) {
    dump.out_of_reach = read.error();
  }
}

probe::Life life_now(const CutShortDump& lost) {
  const runtime::ProcessId& process = lost.dump.spec.process;
  return probe::is_of_earlier_boot(lost.checkpoint.boot_id)
             ? probe::Life::ended
             : probe::life_of(process.pid, process.start_ticks);
}

DumpEvidence::Process process_now(const CutShortDump& lost) {
  using Process = DumpEvidence::Process;
  const runtime::ProcessId& process = lost.dump.spec.process;
  const probe::Life life = life_now(lost);
  if (life == probe::Life::ended) return Process::ended;
  if (life != probe::Life::runs) return Process::unsure;
  // Without the start time, this may be another process with the same pid. CRIU may still kill a
  // process that it holds. The kernel releases a traced process an instant after its tracer has
  // ended, so wait for that.
  bool held = true;
  for (const auto until = Clock::now() + kReleasedWithin; held && Clock::now() < until;) {
    held = !probe::halted_threads(process.pid).empty();
    if (held) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return process.start_ticks != 0 && !held ? Process::runs : Process::unsure;
}

std::string why_unsure(const CutShortDump& lost) {
  const std::string process = "process " + std::to_string(lost.checkpoint.pid);
  const pid_t holder = runtime::held_by(lost.checkpoint.pid);
  return holder != 0 ? process + " is " + runtime::held_text(holder)
                     : "it is not known whether " + process + " runs on";
}

// Lets nobody dump the process while it is settled. Nothing is locked if it is gone, or if it may not be opened.
// Errors: failed_precondition: it is being dumped; resource_exhausted: no descriptor is free.
Result<runtime::DumpLock> lock_dumped(const CutShortDump& lost) {
  constexpr std::chrono::seconds kOtherLookEndsWithin{1};  // at another dump of this process
  if (life_now(lost) == probe::Life::ended) return runtime::DumpLock();
  Result<runtime::DumpLock> lock =
      runtime::lock_for_dump(lost.dump.spec.process, kOtherLookEndsWithin);
  if (lock) return lock;
  if (lock.error().code == Code::failed_precondition) {
    const std::string pid = std::to_string(lost.checkpoint.pid);
    return Error{lock.error().code, "it is being dumped again, or a program has locked /proc/" +
                                        pid +
                                        "/mem: kymod checks the process again when that ends"};
  }
  return lock.error().code == Code::resource_exhausted ? std::move(lock) : runtime::DumpLock();
}

// Ends what still runs of a dump, lets its process go on, and sees what became of it. Does nothing if the process is
// being dumped again, which that would disturb.
void settle_process(CutShortDump& lost, const SettleDump& ask_runtime) {
  EndedDump& dump = lost.dump;
  const Result<runtime::DumpLock> lock = lock_dumped(lost);
  if (!lock) {
    dump.out_of_reach = lock.error();
    dump.why_unsure = why_unsure(lost);
    return;
  }
  runtime::DumpSpec spec;
  if (dump.out_of_reach) {
    spec.process = dump.spec.process;
    spec.scratch_dir = dump.spec.scratch_dir;
  } else {
    spec = runtime::as_dumped(dump.spec);
  }
  if (probe::is_of_earlier_boot(lost.checkpoint.boot_id)) spec.process = {};
  const runtime::Kind kind = dump.out_of_reach ? runtime::Kind{} : lost.kind;
  if (const Result<void> settled = ask_runtime(kind, spec); !settled) {
    spdlog::error("dump of {}: {}", dump.text, settled.error().message);
  }
  dump.process = process_now(lost);
  if (dump.process == DumpEvidence::Process::unsure) dump.why_unsure = why_unsure(lost);
}

constexpr char kNotSaved[] = "kymod stopped before the result of the dump was saved";
constexpr char kCutShort[] = "kymod stopped during the dump";  // failures::of_error() knows it

// The beginning of a message: why the outcome was not known at once. `stopped`: what that was if kymod
// has stopped.
std::string why_open(const store::Checkpoint& checkpoint, const char* stopped) {
  return checkpoint.state == store::CheckpointState::unconfirmed ? checkpoint.error + "; later: "
                                                                 : std::string(stopped) + "; ";
}

// The owner of the history to which the dump belongs. Empty if nothing says it any more.
std::string owner_of_dump(const CutShortDump& lost) {
  const json& record = lost.dump.record;
  std::string job = value_of(value_of(record, "job", json::object()), "name", std::string());
  if (lost.job) job = lost.job->name;
  if (!job.empty()) return owner_of_job(job);
  if (runtime::row_of(lost.kind).containers) {
    const json container = value_of(record, "container", json::object());
    return owner_of_container(lost.kind, value_of(container, "name", lost.dump.spec.container));
  }
  const auto command = value_of(record, "command", std::vector<std::string>());
  return command.empty() ? "" : owner_of_program(command, "");
}

// The run of a dump whose request could not add one. The duration, the warmth and the disk are not known.
std::optional<store::Run> run_of(const CutShortDump& lost, bool failed) {
  const store::Checkpoint& checkpoint = lost.checkpoint;
  store::Run run;
  run.owner = owner_of_dump(lost);
  if (run.owner.empty()) return std::nullopt;
  run.id = checkpoint.id;
  run.kind = store::RunKind::dump;
  run.checkpoint_id = checkpoint.id;
  run.created_unix_ns = checkpoint.created_unix_ns;
  if (failed) {
    run.error = checkpoint.error;
    run.failure = failures::of_error({Code::unavailable, run.error}).id;
  }
  run.image_bytes = checkpoint.image_bytes;
  run.conditions = "kymod stopped";  // so that no other dump is compared with it
  run.stats_json = checkpoint.stats_json;
  return run;
}

// What the images and the statistics of a complete checkpoint tell.
// Errors: those of the files.
Result<void> add_figures(CutShortDump& lost, json& record) {
  const CheckpointDir& dir = lost.dump.dir;
  const Result<std::uint64_t> bytes = probe::directory_bytes(dir.images());
  if (!bytes) return bytes.error();
  lost.checkpoint.image_bytes = *bytes + criu::shared_memory_bytes(dir.work());
  if (const auto stats = criu::read_dump_stats(dir.work() + "/stats-dump"); stats) {
    record["stats"] = to_json(*stats);
    lost.checkpoint.stats_json = json_text(record["stats"]);
  }
  if (record.contains(report::kImages)) return {};  // kymod stopped after it had listed them
  const auto images = criu::list_images(dir.images(), criu::Sums::small);
  if (images) record[report::kImages] = report::json_of(*images);
  return {};
}

// The checkpoint.json of a dump whose outcome is known.
json record_of(const CutShortDump& lost, bool failed, bool was_lost) {
  const store::Checkpoint& checkpoint = lost.checkpoint;
  json record = lost.dump.record;
  record["state"] = failed ? "failed" : "complete";
  record["pid"] = checkpoint.pid;
  record["created_unix_ns"] = checkpoint.created_unix_ns;
  record["image_bytes"] = checkpoint.image_bytes;
  record["recovered"] = true;
  if (lost.job) {
    record["command"] = lost.job->command;
    record["job"] = {{"id", lost.job->id}, {"name", lost.job->name}};
  }
  if (!failed) return record;
  record["error"] = checkpoint.error;
  if (was_lost) {
    record["failure"] =
        failures::to_json(failures::of_error({Code::unavailable, checkpoint.error}));
  }
  return record;
}

// Stores the fate of the dump, unless the store says it already. Returns whether its outcome is known.
Result<bool> store_fate(store::Store& store, CutShortDump& lost, SettledDump& settled,
                        AskedDisk& disk) {
  store::Checkpoint& checkpoint = lost.checkpoint;
  const store::CheckpointState state = settled.fate.state;
  const bool open = state == store::CheckpointState::unconfirmed;
  if (open && checkpoint.state == state) return false;
  const bool was_lost = is_lost(checkpoint);
  const bool failed = state == store::CheckpointState::failed;
  if (state == store::CheckpointState::complete) {
    if (!settled.images.is_null()) lost.dump.record[report::kImages] = settled.images;
    if (Result<void> added = add_figures(lost, lost.dump.record); !added) return added.error();
    checkpoint.error = why_open(checkpoint, kNotSaved) + "the images are complete";
    const std::string fault = criu::fault_of_shared_memory(lost.dump.dir.path());
    if (!fault.empty()) checkpoint.error += ", but " + fault;
  } else {
    checkpoint.error = why_open(checkpoint, kCutShort) + told(lost.dump, settled);
  }
  spdlog::warn("dump of {}: {}", lost.dump.text, checkpoint.error);
  checkpoint.cut_short = was_lost;
  const Result<void> stored = carry_out(
      store, lost.dump, settled, checkpoint, [&] { return record_of(lost, failed, was_lost); },
      false, was_lost && !open ? run_of(lost, failed) : std::nullopt, disk);
  for (const std::string& warning : settled.warnings) spdlog::warn("{}", warning);
  return stored ? Result<bool>(!open) : stored.error();
}

}  // namespace

Result<bool> close_cut_short_dump(store::Store& store, const ForeignFiles& foreign,
                                  const store::Checkpoint& checkpoint,
                                  const SettleDump& ask_runtime, std::shared_ptr<const void> use) {
  CutShortDump lost = listed(store, checkpoint);
  AskedDisk disk(std::move(use));
  read_directory(foreign, lost, disk);
  settle_process(lost, ask_runtime);
  SettledDump settled = settle(lost.dump, foreign, disk);
  return store_fate(store, lost, settled, disk);
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
    const std::string work = CheckpointDir(checkpoint->directory).work();
    within(std::chrono::milliseconds(0), [scratch = runtime::scratch_path(id), work] {
      runtime::keep_scratch(scratch, work);
      return true;
    });
    runtime::drop_memory_images(runtime::find_memory_images(id));
  }
}

}  // namespace kymo::daemon
