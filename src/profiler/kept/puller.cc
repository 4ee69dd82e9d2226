#include "profiler/kept/puller.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/helper_process.h"
#include "base/text_file.h"
#include "profiler/kept/bodies.h"
#include "profiler/kept/keeper.h"

namespace kymo::profiles {
namespace {

// The token that says to Kubernetes who asks. It is read each time, because such tokens are
// renewed. Empty if it cannot be read: Kubernetes then refuses the request, and says why.
std::string token_in(const std::string& path) {
  constexpr std::size_t kMaxTokenBytes = 64 * 1024;
  if (path.empty()) return {};
  const Result<FileDescriptor> file = open_regular(path);
  Result<std::string> token =
      file ? read_all(file->get(), path, kMaxTokenBytes) : Result<std::string>(file.error());
  if (!token) return {};
  token->resize(std::min(token->find_first_of(" \r\n"), token->size()));
  return *std::move(token);
}

// The name of a target in a message.
std::string name_of(const PullTarget& target) {
  return target.service + " at " + target.host + ", port " + std::to_string(target.port);
}

// What a child says, as a part of one line that is not long.
std::string one_line(std::string text) {
  constexpr std::size_t kMaxLength = 500;
  if (text.size() > kMaxLength) text.resize(kMaxLength);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

std::uint64_t next_turn(const PullTarget& target, std::uint64_t every_ns, std::uint64_t after_ns) {
  const std::string name =
      target.service + "\n" + target.host + "\n" + std::to_string(target.port) + "\n" + target.path;
  const std::uint64_t jitter_ns = static_cast<std::uint64_t>(hash_of(name)) % every_ns;
  const std::uint64_t round_ns = after_ns - after_ns % every_ns + jitter_ns;
  return round_ns > after_ns ? round_ns : round_ns + every_ns;
}

void Puller::look() {
  if (from_.place.empty()) return;
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns >= next_ns_) {
    read_targets();
    next_ns_ = now_ns + every_ns();
  }
  if (lister_.runs()) {
    if (const auto written = lister_.look(true)) set_targets(listed_in(*written, from_.place));
  }
  const bool room = bytes() <= kMaxBytes;
  for (auto& [at, target] : targets_) {
    if (!target.child.runs()) continue;
    if (const std::optional<std::string> written = target.child.look(room)) {
      finish(target, *written);
    }
  }
  auto running = static_cast<std::size_t>(std::count_if(
      targets_.begin(), targets_.end(), [](const auto& one) { return one.second.child.runs(); }));
  for (auto& [at, target] : targets_) {
    if (running >= kMaxAtOnce) break;
    if (target.child.runs() || now_ns < target.next_ns) continue;
    start(target);
    ++running;
  }
}

void Puller::read_targets() {
  if (lister_.runs()) return;
  const auto list = [&](int to) {
    if (!is_address(from_.place)) list_file(from_.place, to);
    list_pods({from_.place, token_in(from_.token_file), from_.ca_file}, to);
  };
  const Result<void> started = lister_.start(list, kMaxListBytes);
  if (!started) set_targets(started.error());
}

void Puller::set_targets(Result<PullTargets> read) {
  if (read && read->all.size() > kMaxTargets) {
    read = Error{Code::invalid_argument,
                 from_.place + " has more than " + std::to_string(kMaxTargets) + " targets"};
  }
  const std::string trouble =
      one_line(read ? read->trouble : read.error().message + "; the old list stays in use");
  if (trouble != trouble_ && !trouble.empty()) {
    write_line(answers_, kTrouble + trouble);
  }
  trouble_ = trouble;
  if (!read) return;
  const std::set<PullTarget> all(read->all.begin(), read->all.end());
  std::erase_if(targets_, [&](const auto& one) {
    return !one.second.child.runs() && !all.contains(one.first);
  });
  for (const PullTarget& at : all) {
    const auto [found, added] = targets_.try_emplace(at);
    if (!added) continue;
    found->second.at = at;
    found->second.next_ns = next_turn(at, every_ns(), monotonic_ns());
  }
}

void Puller::start(Pull& target) {
  target.next_ns = next_turn(target.at, every_ns(), monotonic_ns());
  if (bytes() > kMaxBytes) return say(target, "the limit of memory for profiles is reached");
  const Result<void> started = target.child.start(
      [&](int to) { pull(target.at, target.bases, pull_seconds(every_s_), to); }, kMaxWritten);
  if (!started) say(target, started.error().message);
}

// The child has written all, or was ended.
void Puller::finish(Pull& target, const std::string& written) {
  Pulled pulled = pulled_in(written);
  for (auto& [type, base] : pulled.bases) target.bases[type] = std::move(base);
  for (auto& [type, part] : pulled.parts) {
    std::vector<PulledProfile>& parts = taken_[type][target.at];
    if (facts_of(type).level) parts.clear();  // the newest one of the minute
    parts.push_back({target.at.service, std::move(part.profile)});
  }
  const bool late = target.child.was_late() || pulled.late;
  if (target.child.was_late()) pulled.failures = {"it does not answer in time"};
  const PullCounts counts{1, pulled.failures.empty() ? 0U : 1U, late ? 1U : 0U, pulled.bytes};
  write_line(answers_, kPulled + pulled_text(counts));
  std::string failures;
  for (const std::string& one : pulled.failures) failures += (failures.empty() ? "" : "; ") + one;
  say(target, failures);
}

void Puller::say(Pull& target, std::string failures) const {
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
    sum += target.child.bytes();
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
    const std::uint64_t asked_ns =
        most * static_cast<std::uint64_t>(every_s_) * kNanosPerSecond;  // an interval for each time
    taken.duration_ns = facts_of(type).level ? kNanosPerMinute : asked_ns;
    minutes.push_back(std::move(taken));
  }
  taken_.clear();
  return minutes;
}

}  // namespace kymo::profiles
