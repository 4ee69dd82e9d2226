#include "daemon/request/dump.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/inodes.h"
#include "base/mounts.h"
#include "base/proc/boot.h"
#include "checkpoint/criu/images/image_list.h"
#include "checkpoint/failures/catalogue.h"
#include "checkpoint/failures/explain.h"
#include "checkpoint/runtimes/shared/memory_images.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/restore_checks.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "daemon/config/allowed_path.h"
#include "daemon/request/check.h"
#include "daemon/request/deadline.h"
#include "daemon/request/dump_context.h"
#include "daemon/request/dump_outcome.h"
#include "daemon/request/dump_record.h"
#include "daemon/request/forecast.h"
#include "daemon/request/rehearsal.h"
#include "daemon/request/request.h"
#include "daemon/request/room.h"
#include "daemon/request/stream_choice.h"
#include "daemon/request/target.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/directory_claim.h"
#include "lens/report/checkpoint_record.h"
#include "lens/report/human.h"

namespace kymo::daemon {
namespace {

using nlohmann::json;

// If the memory of a process could not be written in this many rounds, more rounds will not help.
constexpr std::uint32_t kMaxPreDumps = 32;

Result<void> validate(DumpContext& c) {
  const v1::DumpRequest& request = c.asked;
  if (!request.directory().empty()) {
    Result<std::string> path = allowed_path(c.parts.config, "dump into", request.directory());
    if (!path) return path.error();
    c.asked_directory = std::move(path).value();
    Result<void> free = refuse_own_files(c.parts.config, "dump into", c.asked_directory);
    if (!free) return free;
  }
  if (request.pre_dumps() > kMaxPreDumps) {
    return Error{Code::invalid_argument, "dump: " + std::to_string(request.pre_dumps()) +
                                             " rounds of pre-dump were asked for: the limit is " +
                                             std::to_string(kMaxPreDumps)};
  }
  const Result<std::optional<criu::Encoding>> asked = encoding_of(request);
  if (!asked) return asked.error();
  c.stream = *asked;
  return {};
}

// Refuses what the runtime cannot do.
Result<void> refuse_for_runtime(const DumpContext& c) {
  const runtime::RuntimeRow& row = runtime::row_of(c.target.kind);
  const std::string tried = "dump " + c.target.text() + ": ";
  const std::string name(row.name);
  if (c.stream && !row.streams) {
    return Error{Code::unimplemented, tried + (c.asked.stream() ? "--stream" : "--compression") +
                                          " is for plain processes: " + name +
                                          " has no way to tell CRIU to stream"};
  }
  if (c.asked.sync() && !row.syncs) {
    return Error{Code::unimplemented,
                 tried + "--sync is for plain processes: " + name +
                     " ends its container before its images can be synced; dump it with "
                     "--leave-running, then sync the images and stop it"};
  }
  if (c.asked.pre_dumps() != 0 && !row.pre_dumps) {
    return Error{Code::unimplemented, tried + "--pre-dump: " + name + " makes no rounds of it"};
  }
  return {};
}

Result<void> find_process(DumpContext& c) {
  Result<Target> found = find_target(c.parts, "dump", target_of(c.asked));
  if (!found) return found.error();
  c.target = std::move(found).value();
  c.owner = history_owner(c.target);
  c.handover.set_tried("dump " + c.target.text());
  c.job = c.target.job;
  if (Result<void> ok = refuse_for_runtime(c); !ok) return ok;
  if (!c.stream && streams_by_default(c.asked, c.target.kind)) c.stream = criu::Encoding{};
  const Result<runtime::CriuChoice> crius = crius_of(c.parts, c.target.kind);
  if (!crius) {
    return Error{crius.error().code, "dump " + c.target.text() + ": " + crius.error().message};
  }
  c.criu = crius->for_dump(c.target.read_only_root);
  c.names = preflight::host_names_in(c.target.bundle);
  c.own_mounts_on_root =
      c.target.id.empty() && runtime::has_own_mounts_on_root(c.target.process.pid);
  c.progress.set_target(c.target.process.pid, c.job ? c.job->name : "");
  if (runtime::row_of(c.target.kind).containers) {
    c.progress.set_container(c.target.id, c.target.name);
  }
  return {};
}

Result<void> claim_process(DumpContext& c) {
  const std::string pid = std::to_string(c.target.process.pid);
  auto claim = c.parts.claims.claim("process:" + pid);
  if (!claim) {
    return Error{Code::failed_precondition,
                 "dump " + c.target.text() + ": it is being dumped already: wait for that to end"};
  }
  c.handover.hold(std::move(claim));
  Result<runtime::DumpLock> lock = lock_target(c.parts, "dump", c.target);
  if (!lock) return lock.error();
  c.handover.hold(*std::move(lock));
  if (c.job) c.handover.hold(c.parts.jobs.hold(c.job->id, Jobs::Doing::dump));
  return {};
}

std::string checkpoint_id(const DumpContext& c) {
  return "c" + std::to_string(c.began_unix_ns) + "-" + std::to_string(c.target.process.pid);
}

Result<void> prove(DumpContext& c, const std::string& images_dir, std::chrono::milliseconds left);

runtime::DumpSpec spec_of(DumpContext& c) {
  runtime::DumpSpec spec;
  if (c.asked.prove()) {
    spec.prove = [&c](const std::string& images_dir, std::chrono::milliseconds left) {
      return prove(c, images_dir, left);
    };
  }
  spec.process = c.target.process;
  if (c.dir) {
    spec.images_dir = c.dir->partial_images();
    spec.work_dir = c.dir->work();
    spec.scratch_dir = runtime::scratch_path(checkpoint_id(c));
    spec.memory_images = c.memory_images;
  }
  spec.leave_running = c.asked.leave_running();
  spec.force = c.asked.force();
  spec.sync = c.asked.sync();
  spec.container = c.target.id;
  spec.container_name = c.target.id.empty() ? "" : c.target.name;
  spec.options = to_options(c.asked.options());
  spec.stream = c.stream;
  spec.deadline_ns = c.deadline_ns;
  spec.pre_dumps = c.asked.pre_dumps();
  spec.frozen = c.target.frozen;
  spec.criu = c.criu;
  spec.held = c.held;
  spec.cancel = &c.progress.cancellation();
  return spec;
}

// Whether its restore can be rehearsed while it stands still.
Result<void> check_provable(const DumpContext& c) {
  if (!c.asked.prove()) return {};
  const Result<void> can = may_rehearse(c.target.kind, c.criu);
  if (can && c.asked.options().external().empty()) return {};
  return Error{can ? Code::invalid_argument : can.error().code,
               "dump " + c.target.text() + " with --prove: " +
                   (can ? "the restore needs --external again, with the places of then, which are "
                          "not known now: dump it without --prove, and use kymo verify --rehearse"
                        : can.error().message)};
}

// This runs before anything is made, so a dump that is refused leaves no failed checkpoint behind.
Result<void> check_dumpable(DumpContext& c) {
  if (Result<void> provable = check_provable(c); !provable) return provable;
  return c.parts.runtimes.of(c.target.kind).may_dump(spec_of(c));
}

Result<void> look_before(DumpContext& c) {
  Result<preflight::Report> seen = refuse_if_sure_to_fail(c.target, c.asked);
  if (!seen) return seen.error();
  c.memory_bytes = seen->memory_bytes;
  c.planned_bytes = seen->bytes_to_write();
  c.seen_before = std::move(seen->findings);
  return {};
}

// Where the checkpoint will be, or its directory.
std::string folder_of(const DumpContext& c) {
  return c.asked_directory.empty() ? c.parts.config.state_dir + "/checkpoints" : c.asked_directory;
}

// Runs before anything is made, and before the process is stopped.
Result<void> look_for_room(DumpContext& c) {
  if (c.asked.force() || c.planned_bytes == 0) return {};
  PlannedImages planned =
      plan_images(c.parts.store, c.owner, c.planned_bytes,
                  compression_name(c.stream ? c.stream->compression : criu::Compression::none));
  planned.can_compress = runtime::row_of(c.target.kind).streams;
  planned.uncompressed_by = excludes_compression(c.asked);
  const Result<void> room = check_room(folder_of(c), planned);
  if (room) return {};
  return Error{room.error().code, "dump " + c.target.text() + ": " + room.error().message};
}

// Refuses a dump that clearly has no room.
Result<void> estimate_size(DumpContext& c) {
  c.disk = disk_of(folder_of(c));
  c.progress.expect(c.planned_bytes);
  if (const Result<void> room =
          c.asked.prove() ? check_rehearsal_memory(c.memory_bytes) : Result<void>();
      !room) {
    return Error{room.error().code, "dump " + c.target.text() + ": " + room.error().message};
  }
  return look_for_room(c);
}

// Says whether the dump is likely to meet its deadline. The dump is tried in any case.
Result<void> forecast(DumpContext& c) {
  if (c.asked.deadline_ns() == 0) return {};
  const Result<EarlierDumps> earlier =
      earlier_dumps(c.parts.store, history_owner(c.target), !c.target.id.empty(),
                    {.prove = c.asked.prove(), .sync = c.asked.sync()});
  if (!earlier) return earlier.error();
  c.forecast = forecast_dump(*earlier, {c.planned_bytes, c.disk}, c.asked.deadline_ns()).text;
  c.progress.set_forecast(c.forecast);
  return {};
}

// If the deadline ended CRIU, returns an error that says so.
Error explain_deadline(const DumpContext& c, Error error) {
  const bool over = c.deadline_ns != 0 && monotonic_ns() + 1'000'000 >= c.deadline_ns;
  if (error.code != Code::deadline_exceeded || !over) return error;
  error.message = "dump " + c.target.text() + ": it did not end within its deadline of " +
                  report::duration(c.asked.deadline_ns()) + " (" + error.message + ")";
  return error;
}

// Adds to the error of CRIU that it is too old for the kernel's sockets, and what was seen before the dump.
Error explain_criu(const DumpContext& c, Error error) {
  const std::string too_old = runtime::too_old_for_kernel(c.criu.version, c.parts.crius.kernel());
  if (!too_old.empty() && error.message.find("sockets: ") != std::string::npos) {
    error.message = "dump " + c.target.text() + ": " + too_old + ": " + error.message;
  }
  return with_places(std::move(error), c.seen_before);
}

// If the disk was full, adds to the error how much space the images need.
Error explain_full_disk(const DumpContext& c, Error error) {
  if (error.code != Code::resource_exhausted || c.planned_bytes == 0) return error;
  const std::string id = failures::of_error(error).id;
  if (id != "no-space" && id != "disk-full") return error;
  if (has_advice_on_inodes(error.message)) return error;  // not the space is used up
  error.message +=
      "; about " + report::bytes(c.planned_bytes) +
      (is_compressed(c.stream) ? ", before compression, are needed in " : " are needed in ") +
      c.dir->path();
  return error;
}

// The process runs on, and may have missed something meanwhile: adds to the error how long it stood still.
Error add_standstill(const DumpContext& c, Error error) {
  const std::uint64_t ns = diagnosis::stood_still_ns({}, c.phases());
  if (ns != 0) error.message += "; it stood still for " + report::duration(ns);
  return error;
}

// Returns false if another request holds it.
bool claim_directory(DumpContext& c, const std::string& path) {
  c.directory_claim = std::make_shared<DirectoryClaim>(c.parts.claims, std::set<std::string>{path});
  return static_cast<bool>(*c.directory_claim);
}

// The highest N of the directories FOLDER/NAME-N of listed checkpoints. Somebody may have moved the directory of one.
int highest_listed(store::Store& store, const std::string& folder, const std::string& name) {
  const std::string begin = folder + "/" + name + "-";
  int highest = 0;
  for (const store::Checkpoint& checkpoint : store.checkpoints()) {
    if (!checkpoint.directory.starts_with(begin)) continue;
    highest = std::max(highest, number_after(checkpoint.directory, begin.size()));
  }
  return highest;
}

// Returns <state-dir>/checkpoints/NAME-N, and claims it so that no other request takes it. N is
// higher than the number of every such folder, and of every checkpoint in the list. So no checkpoint takes the place of
// one that was deleted or moved.
std::string choose_directory(DumpContext& c) {
  // A process can choose any name for itself.
  const std::string name =
      c.job ? c.job->name
            : as_file_name(c.target.name) + "-" + std::to_string(c.target.process.pid);
  const std::string folder = c.parts.config.state_dir + "/checkpoints";
  const int highest =
      std::max(highest_number(folder, name), highest_listed(c.parts.store, folder, name));
  for (int n = highest + 1;; ++n) {
    std::string path = folder + "/" + name + "-" + std::to_string(n);
    std::error_code error;
    if (!std::filesystem::exists(path, error) && claim_directory(c, path)) return path;
  }
}

Result<void> prepare_directory(DumpContext& c) {
  std::string path = c.asked_directory;
  if (path.empty()) {
    path = choose_directory(c);
  } else if (!claim_directory(c, path)) {
    return Error{Code::failed_precondition, "the checkpoint directory " + path +
                                                " is in use by another request: name a new one"};
  }
  const CheckpointDir dir(path);
  if (Result<void> made = create_checkpoint_dir(dir); !made) return made;
  auto held = criu::HeldImages::hold(dir.partial_images(), dir.images());
  if (!held) return held.error();
  c.held = *std::move(held);
  c.dir = dir;
  c.ended_dump = EndedDump{.dir = dir, .process = DumpEvidence::Process::runs, .failed = true};
  c.ended_dump->spec.held = c.held;
  c.progress.set_directory(path);
  return {};
}

// Writes checkpoint.json before the process is touched. If kymod is killed during the dump, the
// next kymod reads in it what was being dumped, and lets that go on.
Result<void> write_entry(DumpContext& c) {
  return write_record(*c.dir, entry_of(c, "started"));
}

Result<void> begin_recording(DumpContext& c) {
  json about{
      {"request", "dump"},
      {"directory", c.dir->path()},
      {"leave_running", c.asked.leave_running()},
      {"target",
       {{"pid", c.target.process.pid}, {"name", c.target.name}, {"command", c.target.command}}}};
  if (!c.target.id.empty()) about["container"] = container_json(c.target);
  c.begin_recording(c.dir->next_recording("dump"), std::move(about),
                    {c.target.process.pid, !c.target.id.empty(), {}, c.dir->path()});
  return {};
}

Result<void> list_checkpoint(DumpContext& c) {
  c.checkpoint.id = checkpoint_id(c);
  c.checkpoint.job_id = c.job ? c.job->id : "";
  c.checkpoint.pid = c.target.process.pid;
  c.checkpoint.start_ticks = c.target.process.start_ticks;
  c.checkpoint.boot_id = probe::boot_id();
  c.checkpoint.directory = c.dir->path();
  c.checkpoint.created_unix_ns = c.began_unix_ns;
  Result<void> added = c.parts.store.add_checkpoint(c.checkpoint);
  c.listed = added.ok();
  return added;
}

// If CRIU writes the images itself, looks from now on what happens to them.
void watch_images(DumpContext& c) {
  if (c.stream || !c.memory_images.empty()) return;
  if (const Result<void> watched = c.held->watch(); !watched) {
    c.warnings.push_back("kymod could not see whether another program changed the images: " +
                         watched.error().message);
  }
}

// A dump of a container with a deadline writes its images to memory first, if there is room. So CRIU
// does not wait for a disk, and can be ended at the deadline.
void choose_memory(DumpContext& c) {
  if (runtime::row_of(c.target.kind).streams || c.asked.deadline_ns() == 0) return;
  const std::uint64_t bytes = c.planned_bytes * (1 + std::uint64_t{c.asked.pre_dumps()});
  Result<std::string> place =
      runtime::choose_memory_images(checkpoint_id(c), bytes, c.dir->partial_images());
  if (place) {
    c.memory_images = std::move(place).value();
  } else {
    c.warnings.push_back(
        "the images were not written to memory first, so a disk that stalls could "
        "have held the container after the deadline: " +
        place.error().message);
  }
}

Result<void> choose_place(DumpContext& c) {
  choose_memory(c);
  watch_images(c);
  return {};
}

// Rehearses the restore of the images, while the processes stand still.
Result<void> prove(DumpContext& c, const std::string& images_dir, std::chrono::milliseconds left) {
  const Scope scope("prove", {.category = "criu"});
  c.working(diagnosis::kRehearsalPhase);
  const auto failed = [](const Error& error) {
    return Error{error.code, "the rehearsal of its restore failed: " + error.message,
                 error.errno_value};
  };
  const Result<ImagesSeen> seen =
      c.parts.foreign.look_at_images(images_dir, &c.progress.cancellation());
  if (!seen) {
    c.working("");
    return failed(seen.error());
  }
  runtime::RehearsalSpec spec;
  spec.images_dir = images_dir;
  spec.container = c.target.id;
  spec.container_name = c.target.id.empty() ? "" : c.target.name;
  spec.bundle = c.target.bundle;
  spec.options = restore_options({}, entry_of(c, "started"), c.target.kind);
  spec.criu = c.criu;
  spec.cancel = &c.progress.cancellation();
  spec.time_limit = left;
  const Result<void> rehearsed =
      rehearse(c.parts, c.target.kind, std::move(spec), *seen, c.memory_bytes);
  c.working("");
  return rehearsed ? rehearsed : failed(rehearsed.error());
}

// What was seen before the dump of things that a restore lacks: whether that matters is not known at its end either.
void warn_of_restore(DumpContext& c) {
  for (const preflight::Finding& finding : c.seen_before) {
    const bool of_restore = failures::entry_of(finding.failure).phase == "restore" ||
                            finding.failure == preflight::kNotRestored;
    if (!of_restore) continue;
    c.warnings.push_back(
        report::printable(finding.what + " (" + places_of(finding) + "). " + finding.remedy));
  }
}

// What the runtime says of the process. Returns why it has failed, if it has.
std::optional<Error> take_outcome(DumpContext& c, Result<runtime::DumpOutcome> outcome) {
  using Process = DumpEvidence::Process;
  EndedDump& dump = *c.ended_dump;
  dump.spec = spec_of(c);
  dump.text = c.target.id.empty() ? "the process" : "the container";
  dump.record = entry_of(c, "started");
  dump.sums = c.asked.checksums() ? criu::Sums::all : criu::Sums::small;
  if (!outcome) return outcome.error();  // it runs on
  c.outcome = std::move(outcome).value();
  dump.lost_part = c.outcome.lost_part;
  if (const auto& failure = c.outcome.failure) {
    dump.process = failure->ended ? Process::ended : Process::unsure;
    dump.why_unsure = failure->why_unsure;
    dump.left = failure->left;
    return failure->error;
  }
  dump.process = c.asked.leave_running() ? Process::runs : Process::ended;
  dump.failed = false;
  dump.succeeded = true;
  if (c.outcome.stats) c.seen.add(*c.outcome.stats);
  return std::nullopt;
}

// The error of a dump that is not complete. `cause`: why the runtime has failed, if it has.
Error explain_fate(const DumpContext& c, const std::optional<Error>& cause) {
  const bool failed = c.settled.fate.state == store::CheckpointState::failed;
  const bool runs = c.ended_dump->process == DumpEvidence::Process::runs;
  const auto& why = c.settled.why;
  Error error = cause.value_or(Error{why ? why->code : Code::internal, "dump " + c.target.text()});
  if (!cause || !runs) {  // the runtime has said that it runs on
    error.message += (cause ? "; " : ": ") + told(*c.ended_dump, c.settled);
  }
  if (failed && c.settled.fate.images == DumpFate::OfImages::keep) error.code = Code::data_loss;
  if (!failed) return explain_deadline(c, std::move(error));
  error = explain_full_disk(c, explain_deadline(c, explain_criu(c, std::move(error))));
  return runs && !c.target.frozen ? add_standstill(c, std::move(error)) : error;
}

// Decides what becomes of the dump, and gives whole images their name.
Result<void> settle_dump(DumpContext& c, Result<runtime::DumpOutcome> outcome) {
  const Scope scope("settle", {.category = "files"});
  const std::optional<Error> cause = take_outcome(c, std::move(outcome));
  // Nobody waits long for the disk of a dump that has failed.
  if (cause) {
    c.asked_disk.emplace(c.directory_claim);
  } else {
    c.asked_disk.emplace(c.directory_claim, &c.progress.cancellation(), c.deadline_ns);
  }
  c.settled = settle(*c.ended_dump, c.parts.foreign, *c.asked_disk);
  const bool complete = c.settled.fate.state == store::CheckpointState::complete;
  if (cause && complete) {
    c.warnings.push_back("every image was written and " + c.ended_dump->text + " ended, but then " +
                         cause->message);
  }
  if (cause && c.settled.fate.state == store::CheckpointState::failed) c.outcome = {};
  for (const auto* const warnings : {&c.outcome.warnings, &c.settled.warnings}) {
    c.warnings.insert(c.warnings.end(), warnings->begin(), warnings->end());
  }
  c.settled.warnings.clear();
  if (!complete) return explain_fate(c, cause);
  warn_of_restore(c);
  return {};
}

Result<void> call_runtime(DumpContext& c) {
  c.times.container = !c.target.id.empty();
  Result<runtime::Observer> called = c.runtime_called();
  if (!called) return called.error();
  // Until it is known, whatever happens.
  c.settled.fate = {store::CheckpointState::unconfirmed, DumpFate::OfImages::keep};
  runtime::Observer observer = *std::move(called);
  std::uint64_t counted = 0;
  observer.image_bytes = [&](std::uint64_t total) {
    c.seen.image_bytes_written(total - counted);
    counted = total;
    c.progress.stored(total);
  };
  observer.moved = [&](std::uint64_t bytes, std::uint64_t page_bytes, bool exact) {
    if (exact) c.streamed_bytes = bytes;
    c.progress.moved(bytes, page_bytes, exact ? v1::Progress::STREAM : v1::Progress::PASSIVE);
  };
  observer.pre_dumped = [&c, marked = observer.pre_dumped](const runtime::PreDumpRound& round) {
    marked(round);
    spdlog::info("pre-dump of {}: {} pages in {}", c.target.text(), round.pages_written,
                 report::duration(round.duration_ns));
  };
  Result<runtime::DumpOutcome> outcome =
      runtime::in_scratch(spec_of(c), [&](const runtime::DumpSpec& spec) {
        return c.parts.runtimes.of(c.target.kind).dump(spec, observer);
      });
  c.progress.finishing();
  return settle_dump(c, std::move(outcome));
}

constexpr std::array<Step<DumpContext>, 13> kDumpSteps{{
    {"validate", validate},
    {"find process", find_process},
    {"claim process", claim_process},
    {"check", check_dumpable, "runtime"},
    {"preflight", look_before},
    {"estimate size", estimate_size},
    {"forecast", forecast, "store"},
    {"prepare directory", prepare_directory, "files"},
    {"list checkpoint", list_checkpoint, "store"},
    {"begin recording", begin_recording, "recording"},
    {"write entry", write_entry, "files"},
    {"choose place", choose_place, "files"},
    {"dump", call_runtime, "runtime"},
}};

}  // namespace

Result<v1::DumpResponse> dump(const Parts& parts, const v1::DumpRequest& request,
                              std::shared_ptr<ScopeTree> timing) {
  return run_request<DumpContext>(parts, request, std::move(timing), v1::Progress::DUMP, "dump",
                                  kDumpSteps);
}

}  // namespace kymo::daemon
