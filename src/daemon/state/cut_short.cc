#include "daemon/state/cut_short.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <cctype>
#include <chrono>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/own_folder.h"
#include "base/patience.h"
#include "criu/stats.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/jobs.h"
#include "daemon/state/kinds.h"
#include "daemon/state/stats_json.h"
#include "probe/directory_bytes.h"
#include "probe/process.h"
#include "runtime/aftermath.h"
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
  dump.spec.process = {checkpoint.pid, dump.job ? dump.job->start_ticks : 0};
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
  Result<json> record = foreign.record(dump.dir);
  if (!record) {
    const Code why = record.error().code;
    if (why == Code::unavailable || why == Code::resource_exhausted) return record.error();
    if (why != Code::not_found) spdlog::error("{}", record.error().message);
  } else if (value_of(*record, "created_unix_ns", std::int64_t{0}) ==
             dump.checkpoint.created_unix_ns) {
    dump.record = *std::move(record);
  }
  // The job may have another process by now, which was restored from an older checkpoint with the same pid.
  const std::uint64_t start_ticks = value_of(dump.record, "start_ticks", std::uint64_t{0});
  if (start_ticks != 0 || !dump.job) dump.spec.process.start_ticks = start_ticks;
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

Fate fate_of(const runtime::ProcessId& process) {
  const probe::Life life = probe::life_of(process.pid, process.start_ticks);
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

// The begin of a message: why the outcome was not known at once. `stopped`: what that was if kymod
// has stopped.
std::string why_open(const CutShortDump& dump, const char* stopped) {
  return dump.checkpoint.state == store::CheckpointState::unconfirmed
             ? dump.checkpoint.error + "; later: "
             : std::string(stopped) + "; ";
}

constexpr char kNotSaved[] = "kymod stopped before the result of the dump was saved";
constexpr char kCutShort[] = "kymod stopped during the dump";

// Marks a checkpoint as complete.
Result<void> conclude(store::Store& store, CutShortDump dump, Fate fate) {
  store::Checkpoint& checkpoint = dump.checkpoint;
  const Result<std::uint64_t> bytes = probe::directory_bytes(dump.dir.images());
  if (!bytes) return bytes.error();
  checkpoint.image_bytes = *bytes;
  checkpoint.error = why_open(dump, kNotSaved) + "the images are complete";
  checkpoint.state = store::CheckpointState::complete;
  json record = record_of(dump);
  const auto stats = criu::read_dump_stats(dump.dir.work() + "/stats-dump");
  if (stats) {
    record["stats"] = to_json(*stats);
    checkpoint.stats_json = json_text(record["stats"]);
  }
  // The images are whole and published: it can be restored without.
  if (Result<void> ok = write_record(dump.dir, std::move(record)); !ok) {
    spdlog::warn("{}", ok.error().message);
  }
  spdlog::warn("dump of {}: {} (in {})", dump.text, checkpoint.error, dump.dir.images());
  std::optional<store::Job> job = fate == Fate::gone ? job_of_dumped(store, dump) : std::nullopt;
  if (job) job->state = store::JobState::dumped;
  return store.update_checkpoint(checkpoint, job ? &*job : nullptr);
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
  std::optional<store::Job> lost = job_of_this_dump(store, dump);
  if (lost) lost->state = store::JobState::exited;
  checkpoint.error = why_open(dump, kCutShort) + what;
  checkpoint.state = store::CheckpointState::failed;
  spdlog::warn("dump of {}: {}", dump.text, checkpoint.error);
  json record = record_of(dump);
  record["error"] = checkpoint.error;
  if (Result<void> ok = write_record(dump.dir, std::move(record)); !ok) {
    spdlog::warn("{}", ok.error().message);  // the folder may be gone by now
  }
  return store.update_checkpoint(checkpoint, lost ? &*lost : nullptr);
}

// Marks a checkpoint as unconfirmed, if it is not yet. If the process is gone and its whole images are in memory,
// its job is dumped.
Result<void> mark_unconfirmed(store::Store& store, CutShortDump& dump, const std::string& why) {
  store::Checkpoint& checkpoint = dump.checkpoint;
  if (checkpoint.state == store::CheckpointState::unconfirmed) return {};
  const bool whole = runtime::whole_in_memory(dump.spec.memory_images) &&
                     !probe::process_lives(dump.spec.process.pid, dump.spec.process.start_ticks);
  std::optional<store::Job> dumped = whole ? job_of_dumped(store, dump) : std::nullopt;
  if (dumped) dumped->state = store::JobState::dumped;
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

// What is known of a dump whose disk does not answer.
std::string why_silent(const CutShortDump& dump) {
  const Fate fate = fate_of(dump.spec.process);
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

// The first fault of the images. Empty if they are good.
// Errors: those of ForeignFiles.
Result<std::string> fault_in(const ForeignFiles& foreign, const CutShortDump& dump) {
  const Result<ImagesSeen> seen = foreign.look_at_images(dump.spec.images_dir, nullptr);
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
bool is_of_earlier_boot(const store::Checkpoint& checkpoint) {
  timespec since_boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const std::int64_t booted_unix_ns = unix_ns() - static_cast<std::int64_t>(to_nanos(since_boot));
  return checkpoint.created_unix_ns != 0 && checkpoint.created_unix_ns < booted_unix_ns;
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
  if (dump.checkpoint.state == store::CheckpointState::unconfirmed ||
      is_of_earlier_boot(dump.checkpoint)) {
    const Result<std::string> fault = fault_in(foreign, dump);
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

// A dump that lets its process run on may have written all its images before the disk stalled. Whether
// they are good, and so a checkpoint.
// Errors: those of ForeignFiles.
Result<bool> is_checkpoint_of_running(const ForeignFiles& foreign, const CutShortDump& dump) {
  if (dump.checkpoint.state != store::CheckpointState::unconfirmed ||
      !value_of(dump.record, "leave_running", false) ||
      runtime::wait_for_images_in(dump.spec.images_dir) != runtime::Images::whole) {
    return false;
  }
  const Result<std::string> fault = fault_in(foreign, dump);
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

// Finds the first process of a job by its output file: it leads a session, and this file is its
// standard output. Returns nothing if there is no such process.
Result<std::optional<probe::Process>> writer_of(const std::string& path) {
  std::error_code error;
  fs::directory_iterator entry("/proc", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (std::isdigit(static_cast<unsigned char>(name.front())) == 0) continue;
    std::error_code gone;
    if (!fs::equivalent(entry->path() / "fd/1", path, gone)) continue;
    Result<probe::Process> process = probe::read_process(std::stoi(name));
    if (!process && process.error().code != Code::not_found) return process.error();
    if (process && process->session == process->pid) return std::optional(*process);
  }
  if (error) return system_error("read /proc", error.value());
  return std::optional<probe::Process>();
}

// Whether `is_good` returns true for every entry of a folder. False if `folder` is no folder or
// cannot be read.
template <class IsGood>
bool all_in(const fs::path& folder, IsGood is_good) {
  std::error_code error;
  if (fs::symlink_status(folder, error).type() != fs::file_type::directory) return false;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_good(*entry)) return false;
  }
  return !error;
}

// Whether the directory holds only what kymod makes before a dump begins: empty folders and a
// recording. A user may keep other folders next to the checkpoints, and those must stay.
bool is_unbegun(const CheckpointDir& dir) {
  const auto none = [](const fs::directory_entry&) { return false; };
  const auto of_recording = [](const fs::directory_entry& file) {
    std::error_code error;
    return file.path().filename().string().starts_with("dump.") &&
           file.symlink_status(error).type() == fs::file_type::regular;
  };
  return all_in(dir.path(), [&](const fs::directory_entry& entry) {
    if (entry.path() == dir.recordings()) return all_in(entry.path(), of_recording);
    return (entry.path() == dir.partial_images() || entry.path() == dir.work()) &&
           all_in(entry.path(), none);
  });
}

// Removes such a directory. A folder that is no longer empty stays. Returns whether `dir` is gone.
bool remove_unbegun(const CheckpointDir& dir) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(dir.recordings(), error), end; !error && entry != end;
       entry.increment(error)) {
    files.push_back(entry->path());
  }
  for (const fs::path& file : files) unlink(file.c_str());
  for (const std::string& folder : {dir.recordings(), dir.work(), dir.partial_images()}) {
    rmdir(folder.c_str());
  }
  return rmdir(dir.path().c_str()) == 0;
}

// Ends what still runs of a dump and lets its process go on, without a look at its directory.
void settle_without_directory(const CutShortDump& dump, const SettleDump& settle) {
  runtime::DumpSpec spec;
  spec.process = dump.spec.process;
  spec.scratch_dir = dump.spec.scratch_dir;
  if (const Result<void> settled = settle(runtime::Kind::process, spec); !settled) {
    spdlog::error("dump of {}: {}", dump.text, settled.error().message);
  }
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
  if (const Result<void> settled = settle(dump.kind, runtime::as_dumped(dump.spec)); !settled) {
    spdlog::error("dump of {}: {}", dump.text, settled.error().message);
  }
  runtime::keep_scratch(dump.spec, kDiskPatience);
  const Fate fate = fate_of(dump.spec.process);
  std::error_code error;
  Result<void> done;
  const bool wanted = fate == Fate::gone || value_of(dump.record, "leave_running", false);
  if (fate != Fate::unsure && wanted && runtime::is_part_in_scratch(dump.spec)) {
    done = mark_unconfirmed(store, dump,
                            "the disk has not taken the files of its /dev/shm yet, which are in " +
                                dump.spec.scratch_dir);
    return done ? Result<bool>(false) : done.error();
  }
  if (fs::exists(dump.dir.images(), error)) {
    runtime::drop_memory_images(dump.spec.memory_images);
    done = conclude(store, std::move(dump), fate);
  } else if (fate == Fate::gone) {
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

Result<void> remove_unlisted_folders(store::Store& store, const std::string& state_dir) {
  std::set<std::string> listed;
  for (const store::Checkpoint& checkpoint : store.checkpoints()) {
    listed.insert(checkpoint.directory);
  }
  std::error_code error;
  for (fs::directory_iterator entry(state_dir + "/checkpoints", error), end; !error && entry != end;
       entry.increment(error)) {
    const CheckpointDir dir(entry->path());
    if (listed.contains(dir.path()) || !is_unbegun(dir)) continue;
    if (remove_unbegun(dir)) {
      spdlog::warn("checkpoint {}: removed, because kymod stopped before its dump began",
                   dir.path());
    }
  }
  return {};
}

bool is_open(const store::Checkpoint& checkpoint) {
  return checkpoint.state == store::CheckpointState::started ||
         checkpoint.state == store::CheckpointState::unconfirmed;
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

Result<void> settle_unstarted_jobs(store::Store& store) {
  for (store::Job& job : store.jobs()) {
    if (job.state != store::JobState::running || job.pid != 0) continue;
    const Result<std::optional<probe::Process>> writer = writer_of(job.stdout_path);
    if (!writer) {
      spdlog::error(
          "job {}: it is not known whether it was started: {}; kymod checks again at its next "
          "start",
          job.name, writer.error().message);
    } else if (const std::optional<probe::Process>& process = *writer) {
      job.pid = process->pid;
      job.start_ticks = process->start_ticks;
      spdlog::warn("job {}: kymod stopped while it was starting the job, which runs as pid {}",
                   job.name, job.pid);
      if (Result<void> ok = store.update_job(job); !ok) return ok;
    } else {
      spdlog::warn("job {}: kymod stopped before it had started the job", job.name);
      if (Result<void> ok = store.remove_job(job.id); !ok) return ok;
    }
  }
  return {};
}

}  // namespace kymo::daemon
