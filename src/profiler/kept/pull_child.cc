#include "profiler/kept/pull_child.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/child.h"
#include "base/clock.h"
#include "base/pipe.h"
#include "base/reap.h"

namespace kymo::profiles {
namespace {

constexpr std::uint64_t kPatienceNs = 60 * kNanosPerSecond;
constexpr int kPipeBytes = 1 << 20;
// How much work it is to read an answer is up to the program that answers, so the process that
// writes a minute (nice 10) has priority.
constexpr int kChildNice = 19;

}  // namespace

PullChild::~PullChild() {
  if (child_ == 0) return;
  ::kill(child_, SIGKILL);
  reap(child_);
}

Result<void> PullChild::start(const std::function<void(int to)>& work, std::size_t most) {
  Result<Pipe> pipe = make_pipe();
  if (!pipe) return pipe.error();
  static_cast<void>(::fcntl(pipe->to.get(), F_SETPIPE_SZ, kPipeBytes));
  // Nothing that it prints is taken for an answer of the keeper.
  const Result<pid_t> child = fork_child({.what = "start a process that sends the request",
                                          .nice = kChildNice,
                                          .silent = true,
                                          .keeps = {pipe->to.get()}},
                                         [&work, to = pipe->to.get()] { return work(to), 1; });
  if (!child) return child.error();
  child_ = *child;
  from_ = std::move(pipe->from);
  ::fcntl(from_.get(), F_SETFL, O_NONBLOCK);
  written_.clear();
  most_ = most;
  until_ns_ = monotonic_ns() + kPatienceNs;
  late_ = false;
  return {};
}

std::optional<std::string> PullChild::look(bool room) {
  std::array<char, 65536> part{};
  ssize_t got = 0;
  do {
    got = ::read(from_.get(), part.data(), part.size());
    if (got > 0) written_.append(part.data(), static_cast<std::size_t>(got));
  } while ((got > 0 && written_.size() < most_) || (got < 0 && errno == EINTR));
  if (got != 0) {
    late_ = monotonic_ns() >= until_ns_;
    if (late_ || !room || written_.size() >= most_) ::kill(child_, SIGKILL);
    return std::nullopt;
  }
  ::kill(child_, SIGKILL);  // it may have closed its end and go on
  reap(child_);
  child_ = 0;
  from_.reset();
  return std::exchange(written_, {});
}

}  // namespace kymo::profiles
