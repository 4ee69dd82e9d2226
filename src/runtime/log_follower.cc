#include "runtime/log_follower.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/file.h"
#include "criu/phases.h"

namespace kymo::runtime {
namespace {

constexpr std::chrono::milliseconds kLogLookEvery{1};
constexpr std::string_view kMark = "Running ";
constexpr std::string_view kMarkEnd = " scripts";
constexpr std::size_t kLongestLine = 64 * 1024;

}  // namespace

struct LogFollower::State {
  std::string path;
  Notified notified;
  FileDescriptor file;
  std::string line;  // what has been read of the present one
  std::mutex mutex;
  std::condition_variable stop;
  bool stopping = false;
  std::thread thread;

  void look();
  void take(std::string_view text);
  void follow();
};

void LogFollower::State::take(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    line.append(text.substr(0, end));
    if (end == std::string_view::npos) {
      if (line.size() > kLongestLine) {
        line.clear();  // no line of CRIU's
      }
      return;
    }
    const auto parsed = criu::parse_log_line(line);
    if (parsed && parsed->text.starts_with(kMark) && parsed->text.ends_with(kMarkEnd)) {
      notified(
          parsed->text.substr(kMark.size(), parsed->text.size() - kMark.size() - kMarkEnd.size()));
    }
    line.clear();
    text.remove_prefix(end + 1);
  }
}

void LogFollower::State::look() {
  if (!file.valid()) {
    file = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
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
  std::unique_lock lock(mutex);
  while (!stopping) {
    look();
    stop.wait_for(lock, kLogLookEvery);
  }
}

LogFollower::LogFollower(std::string log_path, Notified notified)
    : state_(std::make_unique<State>()) {
  state_->path = std::move(log_path);
  state_->notified = std::move(notified);
  if (state_->notified) {
    state_->thread = std::thread([state = state_.get()] { state->follow(); });
  }
}

LogFollower::~LogFollower() {
  finish();
}

void LogFollower::finish() {
  if (!state_->thread.joinable()) {
    return;
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->stop.notify_one();
  state_->thread.join();
  state_->look();
}

}  // namespace kymo::runtime
