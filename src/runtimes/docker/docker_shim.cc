#include "runtimes/docker/docker_shim.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/beneath.h"
#include "base/file.h"
#include "base/patience.h"
#include "criu/leftovers.h"
#include "probe/container_keeper.h"
#include "probe/process.h"
#include "runtime/server.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kShimLookEvery{4};
constexpr char kLogName[] = "/restore.log";
constexpr char kStatsName[] = "/stats-restore";
constexpr std::size_t kMaxLogBytes = std::size_t{1} << 30U;

// The folder in which the shim lets CRIU work.
std::string work_folder(pid_t shim) {
  return folder_of_shim(shim, "work");
}

// Detaches what a CRIU that was killed left mounted. containerd gives the folder a dot before it
// removes it, and then fails if something is mounted there.
void clean_up(const fs::path& folder) {
  const fs::path renamed = folder.parent_path() / ("." + folder.filename().string());
  criu::remove_leftover_mounts(folder);
  criu::remove_leftover_mounts(renamed);
  std::error_code ignored;
  fs::remove(renamed, ignored);  // if it is empty now
}

}  // namespace

DockerDumpFiles::DockerDumpFiles(pid_t process, const std::string& work_dir) {
  const Result<probe::Process> seen = probe::read_process(process);
  const std::string folder = seen ? work_folder(seen->parent) : "";
  if (folder.empty()) return;
  link_ = folder + "/criu-work";
  std::error_code error;
  if (fs::is_symlink(link_, error)) fs::remove(link_, error);  // left by a kymod that was killed
  fs::create_directory_symlink(work_dir, link_, error);
  if (error) link_.clear();
}

DockerDumpFiles::~DockerDumpFiles() {
  std::error_code ignored;
  if (!link_.empty() && fs::is_symlink(link_, ignored)) fs::remove(link_, ignored);
}

struct DockerRestoreFiles::State {
  std::string link;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;  // guarded by mutex
  bool ended = false;     // guarded by mutex: the thread does not use what follows any more
  std::optional<probe::ContainerKeeper> keeper;
  pid_t shim = 0;      // 0: not found yet
  std::string folder;  // in which CRIU works
  FileDescriptor log;
  FileDescriptor stats;
  std::thread thread;

  void look_for_shim();
  void look();
  void follow();
};

void DockerRestoreFiles::State::look_for_shim() {
  for (const pid_t pid : keeper->look()) {
    folder = work_folder(pid);
    if (folder.empty()) continue;
    shim = pid;
    std::error_code error;
    fs::create_directory_symlink(folder, link, error);
    return;
  }
}

void DockerRestoreFiles::State::look() {
  if (shim == 0) look_for_shim();
  if (shim == 0) return;
  const auto hold = [this](const char* name, FileDescriptor& file) {
    if (file.valid()) return;
    if (Result<FileDescriptor> found = open_no_link(folder + name, O_RDONLY)) {
      file = std::move(found).value();
    }
  };
  hold(kLogName, log);
  hold(kStatsName, stats);
}

void DockerRestoreFiles::State::follow() {
  look_until(stopping, ended, mutex, changed, kShimLookEvery, [this] { look(); });
}

DockerRestoreFiles::DockerRestoreFiles(std::string id, std::string link)
    : state_(std::make_shared<State>()) {
  state_->keeper.emplace(std::move(id));
  state_->link = std::move(link);
  try {
    state_->thread = std::thread([state = state_] { state->follow(); });
  } catch (const std::system_error&) {  // CRIU's log and statistics will be missing
    state_->ended = true;
  }
}

DockerRestoreFiles::~DockerRestoreFiles() {
  finish("");
}

void DockerRestoreFiles::finish(const std::string& work_dir) {
  State& s = *state_;
  if (!s.thread.joinable()) return;
  {
    std::unique_lock lock(s.mutex);
    s.stopping = true;
    s.changed.notify_all();
    if (!join_or_leave(s.thread, lock, s.changed, [&s] { return s.ended; })) return;
  }
  static_cast<void>(within(kDiskPatience, [state = state_, work_dir] {
    const auto copy = [&](const FileDescriptor& file, const char* name) {
      if (!file.valid() || work_dir.empty()) return;
      const Result<std::string> text = read_all(file.get(), name, kMaxLogBytes);
      // Without the file, the caller says that it is missing.
      if (text) static_cast<void>(replace_file(work_dir + name, *text).ok());
    };
    copy(state->log, kLogName);
    copy(state->stats, kStatsName);
    return true;
  }));
  if (!s.folder.empty()) clean_up(s.folder);
}

}  // namespace kymo::runtime
