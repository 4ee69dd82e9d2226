#include "runtimes/docker/docker_thaw.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/beneath.h"
#include "base/file.h"
#include "base/patience.h"
#include "runtime/freezer.h"

namespace kymo::runtime {
namespace {

constexpr std::chrono::milliseconds kDoneLookEvery{4};
// The last line of the log of a dump that succeeded.
constexpr std::string_view kDone = "Dumping finished successfully";

bool ends_with_done(const FileDescriptor& log) {
  std::array<char, 128> end{};
  struct stat info {};
  if (!log.valid() || fstat(log.get(), &info) != 0) return false;
  const off_t from = std::max<off_t>(0, info.st_size - static_cast<off_t>(end.size()));
  const ssize_t got = ::pread(log.get(), end.data(), end.size(), from);
  const std::string_view text(end.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text.find(kDone) != std::string_view::npos;
}

}  // namespace

Result<void> unpause_in_docker(const DockerClient& client, const std::string& id,
                               const ProcessId& process) {
  const Result<DockerContainer> seen = client.container(id);
  if (!seen) return seen.error();
  if (!seen->paused) return {};
  if (const Result<Freezer> freezer = Freezer::of(process.pid); freezer && !freezer->frozen()) {
    static_cast<void>(freezer->set(true).ok());  // Docker then says why it cannot unpause it
  }
  return client.unpause(id);
}

Pause pause_since(const DockerClient& client, const std::string& id, const ProcessId& process,
                  std::chrono::system_clock::time_point since) {
  const Result<Freezer> freezer = Freezer::of(process.pid);
  const bool runs = freezer && !freezer->frozen();
  const Result<DockerEvents> events = client.events(id, since);
  if (!runs && (!events || !events->unpaused)) return Pause::held;
  return events && !events->signalled ? Pause::undone : Pause::ended;
}

struct DockerThaw::State {
  DockerClient client;
  std::string id;
  ProcessId process;
  std::string log_path;
  FileDescriptor log;  // only for the thread
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;  // guarded by mutex
  bool ended = false;     // guarded by mutex: the thread uses nothing any more
  std::thread thread;

  void follow();
};

void DockerThaw::State::follow() {
  for (bool stop = false; !stop;) {
    if (!log.valid()) {
      if (Result<FileDescriptor> file = open_no_link(log_path, O_RDONLY)) {
        log = std::move(file).value();
      }
    }
    const bool done = ends_with_done(log);
    std::unique_lock lock(mutex);
    // Whoever ended the wait unpauses the container itself.
    if (!stopping && done) {
      lock.unlock();
      static_cast<void>(unpause_in_docker(client, id, process).ok());
      lock.lock();
      stopping = true;
    }
    changed.wait_for(lock, kDoneLookEvery, [this] { return stopping; });
    stop = stopping;
  }
  const std::lock_guard lock(mutex);
  ended = true;
  changed.notify_all();
}

DockerThaw::DockerThaw(DockerClient client, std::string id, ProcessId process, std::string log_path)
    : state_(std::make_shared<State>()) {
  state_->client = std::move(client);
  state_->id = std::move(id);
  state_->process = process;
  state_->log_path = std::move(log_path);
  try {
    state_->thread = std::thread([state = state_] { state->follow(); });
  } catch (const std::system_error&) {  // the container is unpaused at the end of the dump
    state_->ended = true;
  }
}

DockerThaw::~DockerThaw() {
  State& s = *state_;
  if (!s.thread.joinable()) return;
  std::unique_lock lock(s.mutex);
  s.stopping = true;
  s.changed.notify_all();
  join_or_leave(s.thread, lock, s.changed, [&s] { return s.ended; });
}

}  // namespace kymo::runtime
