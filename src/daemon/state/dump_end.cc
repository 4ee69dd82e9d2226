#include "daemon/state/dump_end.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/proc/process.h"
#include "checkpoint/criu/drive/held_images.h"
#include "checkpoint/criu/images/images.h"
#include "checkpoint/runtimes/shared/memory_images.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "daemon/state/jobs.h"
#include "kymo/scope.h"
#include "lens/report/checkpoint_record.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using SeenAs = DumpEvidence::Images;

struct ImagesFound {
  DumpEvidence::Images images = SeenAs::unseen;
  std::optional<Error> why{};
};

// CRIU writes inventory.img last, and ends no process before that. So if it is missing, the other
// images are of no use.
ImagesFound images_in(const std::string& folder) {
  ImagesFound unseen{SeenAs::unseen, Error{Code::unavailable, "its images cannot be looked at"}};
  // If the folder itself is missing, its disk may have been unmounted.
  std::error_code error;
  if (!fs::is_directory(folder, error)) return unseen;
  for (const std::string& name : criu::stored_names(folder + "/inventory.img")) {
    struct stat info {};
    if (::stat(name.c_str(), &info) == 0) return {SeenAs::whole};
    if (errno != ENOENT) return unseen;
  }
  return {SeenAs::partial};
}

ImagesFound hindered(std::string why) {
  return {SeenAs::hindered, Error{Code::already_exists, std::move(why)}};
}

// What the disk says of the images. As long as a request holds them, it has not given them their
// name: another program has made what has that name.
ImagesFound images_on_disk(const CheckpointDir& dir, criu::HeldImages* held) {
  if (held != nullptr) {
    const Result<void> same = held->check();
    if (same) return images_in(held->own_path());
    return {same.error().code == Code::aborted ? SeenAs::changed : SeenAs::unseen, same.error()};
  }
  const std::string partial = dir.partial_images();
  const ImagesFound found = images_in(partial);
  std::error_code error;
  const bool named = fs::exists(fs::symlink_status(dir.images(), error));
  if (named &&
      (!fs::exists(fs::symlink_status(partial, error)) ||
       (found.images == SeenAs::partial && images_in(dir.images()).images == SeenAs::whole))) {
    return {SeenAs::published};
  }
  if (criu::is_mounted_over(partial)) {
    return hindered("a file system is mounted over " + partial +
                    ": unmount it, and kymod looks at the images again");
  }
  return named && found.images == SeenAs::whole ? hindered(is_taken(dir)) : found;
}

bool is_worthless(const EndedDump& dump) {
  return dump.process == DumpEvidence::Process::runs && (dump.failed || !dump.spec.leave_running);
}

// Moves CRIU's log and statistics from memory to the directory. They are no part of the checkpoint.
void move_work_files(const EndedDump& dump, AskedDisk& disk, std::vector<std::string>& warnings) {
  const runtime::DumpSpec& spec = dump.spec;
  std::error_code error;
  if (spec.scratch_dir.empty() || !fs::exists(spec.scratch_dir, error)) return;
  const auto left = disk.ask([from = spec.scratch_dir, to = spec.work_dir] {
    runtime::keep_scratch(from, to);
    std::error_code gone;
    return fs::exists(from, gone);
  });
  if (!left.value_or(true)) return;
  warnings.push_back(
      "CRIU's log and its other work files are still in memory, in " + spec.scratch_dir +
      ", because the disk of " + spec.work_dir +
      " has not taken them yet: if they remain in memory, make room on the disk and restart kymod, "
      "which then moves them");
}

// Copies whole images from memory to their disk. Errors: why they are not there yet.
Result<void> take_images(const EndedDump& dump, AskedDisk& disk) {
  const Scope scope("copy the images from memory", {.category = "files"});
  const runtime::DumpSpec& spec = dump.spec;
  const auto taken = disk.ask(
      [memory = spec.memory_images, images = spec.images_dir, durable = !spec.leave_running,
       held = spec.held] { return runtime::bring_images(memory, images, durable, held); });
  return taken ? *taken : Error{disk.wait().code(), "it does not answer"};
}

ImagesFound in_memory(const Error& why) {
  return {SeenAs::in_memory,
          Error{why.code, "the disk has not taken its images yet (" + why.message + ")",
                why.errno_value}};
}

ImagesFound on_a_silent_disk(const EndedDump& dump, const AskedDisk& disk) {
  const Code code = disk.wait().code();
  if (runtime::whole_in_memory(dump.spec.memory_images)) {
    return in_memory({code, "it does not answer"});
  }
  if (dump.succeeded) {
    return {SeenAs::written,
            Error{code,
                  "the images are written, but their disk does not answer: kymod lists the "
                  "checkpoint as complete when it does"}};
  }
  // They may have their final name.
  if (!dump.spec.held) {
    return {SeenAs::out_of_reach, Error{Code::unavailable, "the disk does not answer"}};
  }
  return {SeenAs::unseen,
          Error{Code::unavailable,
                "the disk of its images does not answer, so it is not known yet whether they are "
                "whole"}};
}

ImagesFound verified(const ForeignFiles& foreign, const std::string& images_dir,
                     DumpEvidence::Images good) {
  const Result<ImagesSeen> seen = foreign.look_at_images(images_dir, nullptr);
  if (seen && seen->planned.faults.empty()) return {good};
  const std::string said = seen ? seen->planned.faults.front() : seen.error().message;
  if (seen || seen.error().code == Code::data_loss) {
    return {SeenAs::damaged, Error{Code::data_loss, "its images are damaged: " + said}};
  }
  return {SeenAs::unseen, Error{seen.error().code, "its images could not be verified: " + said}};
}

// Errors: why the files of the container's /dev/shm are not in the directory.
Result<void> has_its_parts(const EndedDump& dump) {
  if (dump.lost_part) return *dump.lost_part;
  if (!runtime::is_part_in_scratch(dump.spec)) return {};
  return Error{Code::resource_exhausted,
               "the files of the container's /dev/shm are only in memory, in " +
                   dump.spec.scratch_dir + runtime::kSharedMemory + ": kymod moves them to " +
                   dump.spec.work_dir + " as soon as its disk takes them"};
}

// What is known of the images.
ImagesFound look_for_images(const EndedDump& dump, const ForeignFiles& foreign, AskedDisk& disk) {
  if (dump.out_of_reach) {
    const bool safe = dump.process == DumpEvidence::Process::ended &&
                      runtime::whole_in_memory(dump.spec.memory_images);
    return safe ? in_memory(*dump.out_of_reach)
                : ImagesFound{SeenAs::out_of_reach, dump.out_of_reach};
  }
  if (is_worthless(dump) && dump.spec.held) return {};
  std::optional<ImagesFound> found =
      disk.ask([dir = dump.dir, held = dump.spec.held] { return images_on_disk(dir, held.get()); });
  if (!found) return on_a_silent_disk(dump, disk);
  if (found->images == SeenAs::published) {
    return dump.of_earlier_boot ? verified(foreign, dump.dir.images(), SeenAs::published) : *found;
  }
  if (is_worthless(dump) || dump.process == DumpEvidence::Process::unsure) return {};
  if (const Result<void> parts = has_its_parts(dump); !parts) {
    return {SeenAs::without_part, parts.error()};
  }
  if (runtime::whole_in_memory(dump.spec.memory_images)) {
    const bool led_away = found->images == SeenAs::changed || found->images == SeenAs::hindered;
    const Result<void> taken = led_away ? Result<void>(*found->why) : take_images(dump, disk);
    if (!taken) return in_memory(taken.error());
    found = ImagesFound{SeenAs::whole};
  }
  if (found->images == SeenAs::partial && dump.succeeded) {
    found->why = Error{Code::data_loss, "its runtime reported success, but " +
                                            dump.dir.partial_images() + " has no images"};
  }
  if (found->images != SeenAs::whole || dump.succeeded) return *found;
  return verified(foreign, dump.dir.partial_images(), SeenAs::whole);
}

// Ends the processes that a CRIU that died had not ended yet. They are in the images, too.
void end_what_is_left(const EndedDump& dump) {
  for (const runtime::ProcessId& one : dump.left) {
    if (probe::life_of(one.pid, one.start_ticks) == probe::Life::runs) kill(one.pid, SIGKILL);
  }
}

struct Listed {
  json images{};
  Result<void> written{};
};

// Writes the list of the images into the record, before they get the name that makes them a
// checkpoint. They are complete by now, so a missing list is only a warning. Returns false if the
// disk does not answer.
bool list_images(const EndedDump& dump, AskedDisk& disk, SettledDump& settled) {
  const Scope scope("list images", {.category = "files"});
  if (dump.record.contains(report::kImages)) {
    settled.images = dump.record[report::kImages];
    return true;
  }
  const auto listed = disk.ask([dir = dump.dir, held = dump.spec.held, record = dump.record,
                                sums = dump.sums]() mutable -> Listed {
    const auto images = criu::list_images(held ? held->own_path() : dir.partial_images(), sums);
    if (!images) return {json(), images.error()};
    Listed out{report::json_of(*images), {}};
    if (record.empty()) return out;
    record[report::kImages] = out.images;
    out.written = write_record(dir, std::move(record));
    return out;
  });
  if (!listed) return false;
  settled.images = listed->images;
  if (!listed->written) {
    settled.warnings.push_back("the list of the images was not written: " +
                               listed->written.error().message);
  }
  return true;
}

ImagesFound publish(const EndedDump& dump, AskedDisk& disk, SettledDump& settled) {
  if (!list_images(dump, disk, settled)) return on_a_silent_disk(dump, disk);
  const Scope scope("publish images", {.category = "files"});
  const auto done = disk.ask([dir = dump.dir, held = dump.spec.held] {
    Result<void> same = held ? held->check() : Result<void>();
    return same ? publish_images(dir, held.get()) : same;
  });
  if (!done) return on_a_silent_disk(dump, disk);
  if (*done) return {SeenAs::published};
  Error error = done->error();
  if (error.code == Code::aborted) return {SeenAs::changed, std::move(error)};
  error.message = "its images are whole: " + error.message;
  if (error.code != Code::already_exists) {
    error.message += "; kymod lists the checkpoint as complete when the disk takes them";
  }
  return {SeenAs::hindered, std::move(error)};
}

// The job as it is then, if its newest process is the one that was dumped.
std::optional<store::Job> job_after(store::Store& store, const EndedDump& dump,
                                    DumpFate::OfJob what, const store::Checkpoint& checkpoint) {
  if (what == DumpFate::OfJob::as_it_is) return std::nullopt;
  std::optional<store::Job> job = job_with(store, checkpoint.job_id, dump.spec.process);
  if (!job) return std::nullopt;
  if (what == DumpFate::OfJob::dumped) {
    job->state = store::JobState::dumped;
    return job;
  }
  const std::vector<store::Checkpoint> all = store.checkpoints(job->id);
  const bool by_this_dump =
      job->state == store::JobState::dumped && !all.empty() && all.back().id == checkpoint.id;
  if (!by_this_dump) return std::nullopt;
  job->state = store::JobState::exited;
  return job;
}

void write_files(const EndedDump& dump, SettledDump& settled, const MakeRecord& make_record,
                 bool durable, AskedDisk& disk) {
  const Scope scope("write record", {.category = "files"});
  const auto work = [dir = dump.dir, held = dump.spec.held, memory = dump.spec.memory_images,
                     discard = settled.fate.images == DumpFate::OfImages::discard, durable,
                     record = make_record()]() -> Result<void> {
    runtime::drop_memory_images(memory);
    if (discard && !discard_images(dir, held.get())) {
      spdlog::warn("{}: it is not the folder that kymod made, so nothing was removed there",
                   dir.partial_images());
    }
    Result<void> written = write_record(dir, record);
    return written && durable ? sync_record(dir) : written;
  };
  // A complete checkpoint is not listed before its record says so.
  const std::optional<Result<void>> written = settled.fate.state == store::CheckpointState::complete
                                                  ? std::optional(work())
                                                  : disk.ask(work);
  if (!written) {
    spdlog::warn("{}: its disk does not answer, so the files of the failed dump may remain there",
                 dump.dir.path());
  } else if (!*written) {
    settled.warnings.push_back(written->error().message);
  }
}

}  // namespace

SettledDump settle(const EndedDump& dump, const ForeignFiles& foreign, AskedDisk& disk) {
  SettledDump settled;
  const auto take = [&](ImagesFound found) {
    settled.seen = {dump.process, found.images, dump.spec.leave_running, dump.failed};
    settled.why = std::move(found.why);
    settled.fate = decide(settled.seen);
  };
  if (!dump.out_of_reach) move_work_files(dump, disk, settled.warnings);
  take(look_for_images(dump, foreign, disk));
  if (settled.seen.images != SeenAs::whole || settled.fate.images != DumpFate::OfImages::publish) {
    return settled;
  }
  if (dump.process == DumpEvidence::Process::ended) end_what_is_left(dump);
  take(publish(dump, disk, settled));
  return settled;
}

std::string told(const EndedDump& dump, const SettledDump& settled) {
  const bool runs = settled.seen.process == DumpEvidence::Process::runs;
  const bool unsure = settled.seen.process == DumpEvidence::Process::unsure;
  const std::string process =
      unsure ? dump.why_unsure : dump.text + (runs ? " runs on" : " has ended");
  std::string why = settled.why ? settled.why->message : "";
  if (settled.fate.state == store::CheckpointState::unconfirmed) {
    const std::string& memory = dump.spec.memory_images;
    if (settled.seen.images == SeenAs::in_memory) {
      return process + ", and its whole images are in memory, in " + memory + ", because " + why;
    }
    const std::string known = why.empty() ? process : runs ? why : process + ", and " + why;
    return known + "; its images are kept in " +
           (memory.empty() ? dump.dir.partial_images() : memory);
  }
  if (runs && settled.seen.images == SeenAs::changed) why += criu::kDumpAgain;
  if (!why.empty()) why += "; ";
  return why + process +
         (settled.fate.images == DumpFate::OfImages::keep
              ? ", and kymod has removed nothing: look for its images in " +
                    dump.dir.partial_images()
              : ", and its images were removed");
}

Result<void> carry_out(store::Store& store, const EndedDump& dump, SettledDump& settled,
                       store::Checkpoint& checkpoint, const MakeRecord& make_record, bool durable,
                       const std::optional<store::Run>& run, AskedDisk& disk) {
  checkpoint.state = settled.fate.state;
  if (checkpoint.state != store::CheckpointState::unconfirmed) {
    write_files(dump, settled, make_record, durable, disk);
  }
  const Scope scope("update store", {.category = "store"});
  const std::optional<store::Job> job = job_after(store, dump, settled.fate.job, checkpoint);
  return store.update_checkpoint(checkpoint, job ? &*job : nullptr, run ? &*run : nullptr);
}

}  // namespace kymo::daemon
