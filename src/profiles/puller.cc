#include "profiles/puller.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/helper_process.h"
#include "base/pipe.h"
#include "base/text_file.h"
#include "confine/descriptors.h"
#include "profiles/keeper.h"

namespace kymo::profiles {
namespace {

constexpr std::uint64_t kPatienceNs = 60 * kNanosPerSecond;
constexpr int kPipeBytes = 1 << 20;

// Not all targets are asked at the same instant.
std::uint64_t jitter_ns(const PullTarget& target, std::uint64_t within_ns) {
  const std::size_t hash = std::hash<std::string>()(target.service + target.host + target.path +
                                                    std::to_string(target.port));
  return hash % within_ns;
}

// The name of a target in a message.
std::string name_of(const PullTarget& target) {
  return target.service + " at " + target.host + ", port " + std::to_string(target.port);
}

// What a child says, as a part of one line that is not long.
std::string one_line(std::string text) {
  constexpr std::size_t kMostLength = 500;
  if (text.size() > kMostLength) text.resize(kMostLength);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// Closes all descriptors of this process but one. Nothing that it prints is taken for an answer of the keeper.
bool keep_only(int fd) {
  const FileDescriptor nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(nothing.get(), output) < 0) return false;
  }
  return confine::close_all_but({fd}).ok();
}

}  // namespace

Puller::~Puller() {
  for (auto& [at, target] : targets_) {
    if (target.child == 0) continue;
    ::kill(target.child, SIGKILL);
    static_cast<void>(::waitpid(target.child, nullptr, 0));
  }
}

void Puller::look() {
  if (file_.empty()) return;
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns >= next_ns_) {
    read_targets();
    next_ns_ = now_ns + static_cast<std::uint64_t>(every_s_) * kNanosPerSecond;
  }
  const bool room = bytes() <= kMostBytes;
  for (auto& [at, target] : targets_) {
    if (target.child != 0) read(target, room);
  }
  auto running = static_cast<std::size_t>(std::count_if(
      targets_.begin(), targets_.end(), [](const auto& one) { return one.second.child != 0; }));
  for (auto& [at, target] : targets_) {
    if (running >= kMostAtOnce) break;
    if (target.child != 0 || now_ns < target.next_ns) continue;
    start(target);
    ++running;
  }
}

void Puller::read_targets() {
  constexpr std::size_t kMostFileBytes = std::size_t{64} << 20U;
  const Result<FileDescriptor> file = open_regular(file_);
  const Result<std::string> text =
      file ? read_all(file->get(), file_, kMostFileBytes) : Result<std::string>(file.error());
  Result<std::vector<PullTarget>> read = text.ok() ? pull_targets_in(*text, file_) : text.error();
  if (read && read->size() > kMostTargets) {
    read = Error{Code::invalid_argument,
                 file_ + " has more than " + std::to_string(kMostTargets) + " targets"};
  }
  const std::string trouble = read ? "" : read.error().message;
  if (trouble != trouble_ && !trouble.empty()) {
    write_line(answers_, kTrouble + trouble + "; the targets stay those before");
  }
  trouble_ = trouble;
  if (!read) return;
  const std::set<PullTarget> all(read->begin(), read->end());
  std::erase_if(targets_,
                [&](const auto& one) { return one.second.child == 0 && !all.contains(one.first); });
  const std::uint64_t within_ns =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(every_s_), 10) * kNanosPerSecond;
  for (const PullTarget& at : all) {
    const auto [found, added] = targets_.try_emplace(at);
    if (!added) continue;
    found->second.at = at;
    found->second.next_ns = monotonic_ns() + jitter_ns(at, within_ns);
  }
}

void Puller::start(Target& target) {
  target.next_ns = monotonic_ns() + static_cast<std::uint64_t>(every_s_) * kNanosPerSecond;
  if (bytes() > kMostBytes) return say(target, "there is no room for what it may give");
  Result<Pipe> pipe = make_pipe();
  if (!pipe) return say(target, pipe.error().message);
  static_cast<void>(::fcntl(pipe->to.get(), F_SETPIPE_SZ, kPipeBytes));
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(::prctl(PR_SET_PDEATHSIG, SIGKILL));
    const int to = pipe->to.get();
    if (!keep_only(to)) ::_exit(1);
    pull(target.at, target.bases, pull_seconds(every_s_), to);
  }
  if (child < 0) return say(target, "there is no room for another process");
  target.child = child;
  target.from = std::move(pipe->from);
  ::fcntl(target.from.get(), F_SETFL, O_NONBLOCK);
  target.written.clear();
  target.late = false;
  target.until_ns = monotonic_ns() + kPatienceNs;
}

void Puller::read(Target& target, bool room) {
  std::array<char, 65536> part{};
  ssize_t got = 0;
  do {
    got = ::read(target.from.get(), part.data(), part.size());
    if (got > 0) target.written.append(part.data(), static_cast<std::size_t>(got));
  } while ((got > 0 && target.written.size() < kMostWritten) || (got < 0 && errno == EINTR));
  if (got == 0) return finish(target);
  const bool bounded = room && target.written.size() < kMostWritten;
  target.late = monotonic_ns() >= target.until_ns;
  if (!bounded || target.late) ::kill(target.child, SIGKILL);
}

// The child has written all, or was ended.
void Puller::finish(Target& target) {
  ::kill(target.child, SIGKILL);  // it may have closed its end and go on
  static_cast<void>(::waitpid(target.child, nullptr, 0));
  target.child = 0;
  target.from.reset();
  Pulled pulled = pulled_in(std::exchange(target.written, {}));
  for (auto& [type, base] : pulled.bases) target.bases[type] = std::move(base);
  for (auto& [type, part] : pulled.parts) {
    std::vector<PulledProfile>& parts = taken_[type][target.at];
    if (facts_of(type).level) parts.clear();  // the newest one of the minute
    parts.push_back({target.at.service, std::move(part.profile)});
  }
  const bool late = target.late || pulled.late;
  const PullCounts counts{1, pulled.failures.empty() ? 0U : 1U, late ? 1U : 0U, pulled.bytes};
  write_line(answers_, kPulled + pulled_text(counts));
  std::string failures;
  for (const std::string& one : pulled.failures) failures += (failures.empty() ? "" : "; ") + one;
  say(target, failures);
}

void Puller::say(Target& target, std::string failures) const {
  failures = one_line(std::move(failures));
  if (failures == target.failures) return;
  target.failures = failures;
  if (failures.empty()) return;
  write_line(answers_,
             kTrouble + ("cannot pull profiles of " + name_of(target.at)) + ": " + failures);
}

std::size_t Puller::bytes() const {
  std::size_t sum = 0;
  for (const auto& [at, target] : targets_) {
    sum += target.written.size();
    for (const auto& [type, base] : target.bases) sum += base.size();
  }
  for (const auto& [type, targets] : taken_) {
    for (const auto& [at, parts] : targets) {
      for (const PulledProfile& part : parts) sum += part.profile.size();
    }
  }
  return sum;
}

std::vector<TakenMinute> Puller::take(std::int64_t minute) {
  std::vector<TakenMinute> minutes;
  for (auto& [type, targets] : taken_) {
    TakenMinute taken;
    taken.minute = minute;
    taken.type = type;
    taken.begin_unix_ns = unix_ns();
    std::size_t most = 0;  // how often a target was asked
    for (auto& [at, parts] : targets) {
      most = std::max(most, parts.size());
      std::move(parts.begin(), parts.end(), std::back_inserter(taken.pulled));
    }
    const std::uint64_t asked_ns = most * static_cast<std::uint64_t>(every_s_) *
                                   kNanosPerSecond;  // a difference is of so long
    taken.duration_ns = facts_of(type).level ? kNanosPerMinute : asked_ns;
    minutes.push_back(std::move(taken));
  }
  taken_.clear();
  return minutes;
}

}  // namespace kymo::profiles
