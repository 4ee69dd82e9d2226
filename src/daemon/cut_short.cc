#include "daemon/cut_short.h"

#include <spdlog/spdlog.h>

#include <cctype>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "criu/images.h"
#include "criu/leftovers.h"
#include "criu/stats.h"
#include "daemon/checkpoint_dir.h"
#include "daemon/stats_json.h"
#include "probe/directory_bytes.h"
#include "probe/process.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kReleasedWithin{2};

// What has become of a process that was being dumped.
enum class Fate : std::uint8_t { runs, gone, unsure };

Fate fate_of(const store::Checkpoint& checkpoint, const std::optional<store::Job>& job) {
  if (!probe::process_lives(checkpoint.pid, job ? job->start_ticks : 0)) return Fate::gone;
  // Without its start time it may be another of the same pid; and one that is still held by CRIU
  // may yet be ended by it. A tracer's hold ends an instant after the tracer.
  bool held = true;
  for (const auto until = Clock::now() + kReleasedWithin; held && Clock::now() < until;) {
    held = !probe::stopped_threads(checkpoint.pid).empty();
    if (held) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return job && !held ? Fate::runs : Fate::unsure;
}

nlohmann::json record_of(const store::Checkpoint& checkpoint,
                         const std::optional<store::Job>& job) {
  nlohmann::json record{{"state", store::name_of(checkpoint.state)},
                        {"pid", checkpoint.pid},
                        {"created_unix_ns", checkpoint.created_unix_ns},
                        {"image_bytes", checkpoint.image_bytes},
                        {"recovered", true}};
  if (job) {
    record["command"] = job->command;
    record["job"] = {{"id", job->id}, {"name", job->name}};
  }
  return record;
}

// CRIU had done its work, and nobody was there to say so.
Result<void> conclude(store::Store& store, store::Checkpoint checkpoint,
                      std::optional<store::Job> job, Fate fate) {
  const CheckpointDir dir(checkpoint.directory);
  const Result<std::uint64_t> bytes = probe::directory_bytes(dir.images());
  if (!bytes) return bytes.error();
  checkpoint.image_bytes = *bytes;
  checkpoint.state = store::CheckpointState::complete;
  checkpoint.error = "kymod ended before it was told; the images are whole";
  nlohmann::json record = record_of(checkpoint, job);
  const auto stats = criu::read_dump_stats(dir.work() + "/stats-dump");
  if (stats) {
    record["stats"] = to_json(*stats);
    checkpoint.stats_json = record["stats"].dump();
  }
  if (Result<void> ok = write_record(dir, std::move(record)); !ok) return ok;
  if (job) job->state = store::JobState::dumped;
  spdlog::warn("dump of pid {}: kymod ended before it was told, but the images in {} are whole",
               checkpoint.pid, dir.images());
  return store.update_checkpoint(checkpoint, job && fate == Fate::gone ? &*job : nullptr);
}

Result<void> close(store::Store& store, store::Checkpoint checkpoint) {
  const CheckpointDir dir(checkpoint.directory);
  std::optional<store::Job> job;
  if (Result<store::Job> found = store.job(checkpoint.job_id); found) job = *found;
  const Result<void> ended =
      criu::end_leftover_dump(dir.work() + "/dump.log", probe::process_tree(checkpoint.pid));
  if (!ended) spdlog::error("dump of pid {}: {}", checkpoint.pid, ended.error().message);
  const Fate fate = fate_of(checkpoint, job);
  std::error_code error;
  if (fs::exists(dir.images(), error)) return conclude(store, checkpoint, job, fate);
  // CRIU writes it last, and ends no process before.
  const bool all_written = !criu::stored_path(dir.partial_images() + "/inventory.img").empty();
  if (all_written && fate == Fate::gone) {
    if (Result<void> ok = publish_images(dir); !ok) return ok;
    return conclude(store, checkpoint, job, fate);
  }
  checkpoint.state = store::CheckpointState::failed;
  checkpoint.error = "cut short, kymod ended during the dump; ";
  if (all_written && fate == Fate::unsure) {
    checkpoint.error += "what CRIU had written is in " + dir.partial_images() +
                        ": remove it when process " + std::to_string(checkpoint.pid) + " runs on";
  } else {
    discard_images(dir);
    checkpoint.error += "the half images were removed";
  }
  spdlog::warn("dump of pid {}: {}", checkpoint.pid, checkpoint.error);
  nlohmann::json record = record_of(checkpoint, job);
  record["error"] = checkpoint.error;
  if (Result<void> ok = write_record(dir, std::move(record)); !ok) {
    spdlog::warn("{}", ok.error().message);  // the folder may be gone by now
  }
  return store.update_checkpoint(checkpoint);
}

// The process whose standard output is this file: nobody but the job itself has it.
std::optional<probe::Process> writer_of(const std::string& path) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (std::isdigit(static_cast<unsigned char>(name.front())) == 0) continue;
    if (!fs::equivalent(entry.path() / "fd/1", path, error)) continue;
    Result<probe::Process> process = probe::read_process(std::stoi(name));
    if (process && process->session == process->pid) return *process;
  }
  return std::nullopt;
}

}  // namespace

Result<void> close_cut_short_dumps(store::Store& store) {
  Result<std::vector<store::Checkpoint>> checkpoints = store.checkpoints();
  if (!checkpoints) return checkpoints.error();
  for (const store::Checkpoint& checkpoint : *checkpoints) {
    if (checkpoint.state != store::CheckpointState::started) continue;
    if (Result<void> ok = close(store, checkpoint); !ok) {
      spdlog::error("dump of pid {}, cut short: {}", checkpoint.pid, ok.error().message);
    }
  }
  return {};
}

Result<void> settle_unstarted_jobs(store::Store& store) {
  Result<std::vector<store::Job>> jobs = store.jobs();
  if (!jobs) return jobs.error();
  for (store::Job& job : *jobs) {
    if (job.state != store::JobState::running || job.pid != 0) continue;
    if (const std::optional<probe::Process> process = writer_of(job.stdout_path)) {
      job.pid = process->pid;
      job.start_ticks = process->start_ticks;
      spdlog::warn("job {}: kymod ended while it was started; it is pid {}", job.name, job.pid);
      if (Result<void> ok = store.update_job(job); !ok) return ok;
    } else {
      spdlog::warn("job {}: kymod ended before it was started", job.name);
      if (Result<void> ok = store.remove_job(job.id); !ok) return ok;
    }
  }
  return {};
}

}  // namespace kymo::daemon
