#include "daemon/state/unbegun.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/proc/process.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/jobs.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

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
bool all_entries(const fs::path& folder, IsGood is_good) {
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
  return all_entries(dir.path(), [&](const fs::directory_entry& entry) {
    if (entry.path() == dir.recordings()) return all_entries(entry.path(), of_recording);
    return (entry.path() == dir.partial_images() || entry.path() == dir.work()) &&
           all_entries(entry.path(), none);
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

}  // namespace

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
      give_process(job, {process->pid, process->start_ticks});
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
