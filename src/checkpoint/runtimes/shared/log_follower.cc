#include "checkpoint/runtimes/shared/log_follower.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/beneath.h"
#include "base/file.h"
#include "base/patience.h"
#include "checkpoint/criu/drive/phases.h"

namespace kymo::runtime {
namespace {

constexpr std::chrono::milliseconds kLogLookEvery{1};
constexpr std::string_view kMark = "Running ";
constexpr std::string_view kMarkEnd = " scripts";
constexpr std::size_t kMaxLine = 64 * 1024;

}  // namespace

struct LogFollower::State {
  std::string path;
  Notified notified;
  FileDescriptor file;  // only for the thread
  std::string line;     // only for the thread: the current line as far as it has been read
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;   // guarded by mutex
  bool ended = false;      // guarded by mutex: everything in the log was reported
  bool abandoned = false;  // guarded by mutex: nothing may be reported any more
  std::thread thread;

  void look();
  void take(std::string_view text);
  void tell(std::string_view notification);
  void follow();
};

void LogFollower::State::tell(std::string_view notification) {
  const std::lock_guard lock(mutex);
  if (!abandoned) notified(notification);
}

void LogFollower::State::take(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    line.append(text.substr(0, end));
    if (end == std::string_view::npos) {
      if (line.size() > kMaxLine) {
        line.clear();  // too long for a line of CRIU's log
      }
      return;
    }
    const auto parsed = criu::parse_log_line(line);
    if (parsed && parsed->text.starts_with(kMark) && parsed->text.ends_with(kMarkEnd)) {
      tell(parsed->text.substr(kMark.size(), parsed->text.size() - kMark.size() - kMarkEnd.size()));
    }
    line.clear();
    text.remove_prefix(end + 1);
  }
}

void LogFollower::State::look() {
  if (!file.valid()) {
    if (Result<FileDescriptor> log = open_no_link(path, O_RDONLY)) file = std::move(log).value();
  }
  std::array<char, 16384> buffer{};
  for (ssize_t got = 1; file.valid() && got > 0;) {
    got = ::read(file.get(), buffer.data(), buffer.size());
    if (got > 0) {
      take({buffer.data(), static_cast<std::size_t>(got)});
    }
  }
}

void LogFollower::State::follow() {
  look_until(stopping, ended, mutex, changed, kLogLookEvery, [this] { look(); });
}

LogFollower::LogFollower(std::string log_path, Notified notified)
    : state_(std::make_shared<State>()) {
  state_->path = std::move(log_path);
  state_->notified = std::move(notified);
  if (state_->notified) {
    state_->thread = std::thread([state = state_] { state->follow(); });
  }
}

LogFollower::~LogFollower() {
  finish();
}

void LogFollower::finish() {
  State& s = *state_;
  if (!s.thread.joinable()) {
    return;
  }
  std::unique_lock lock(s.mutex);
  s.stopping = true;
  s.changed.notify_all();
  s.abandoned = !join_or_leave(s.thread, lock, s.changed, [&s] { return s.ended; });
}

}  // namespace kymo::runtime
