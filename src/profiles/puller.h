#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "profiles/keeper.h"
#include "profiles/pull_child.h"
#include "profiles/pulled.h"
#include "profiles/taken.h"

namespace kymo::profiles {

// When a target is asked after this instant, on the clock of monotonic_ns(): once in each `every_ns`, at an instant in it
// that is the target's own, so that not all are asked at once.
std::uint64_t next_turn(const PullTarget& target, std::uint64_t every_ns, std::uint64_t after_ns);

// Pulls the profiles of programs of Go, from each target once in an interval. A child process asks a target (pulled.h), one at a
// time for each target. It may be taken over by what it reads, so nothing that it writes is believed: not of which service a
// profile is, nor that it ends. The targets are read again each time, by another child: a file, or the pods of Kubernetes.
//
// Threads: the only one of the process.
// Errors:  said to the program (keeper.h), for each target when they change.
// Bounds:  kMaxTargets, kMaxAtOnce children, and kMaxBytes of what they have given and what is compared next time.
class Puller {
 public:
  static constexpr std::size_t kMaxTargets = 1000;
  static constexpr std::size_t kMaxAtOnce = 32;
  static constexpr std::size_t kMaxBytes = std::size_t{512} << 20U;
  static constexpr std::size_t kMaxWritten = std::size_t{256} << 20U;  // by one child

  static constexpr std::size_t kMaxListBytes = std::size_t{1} << 20U;  // of the pods to ask

  Puller(PullFrom from, int every_s, int answers)
      : from_(std::move(from)), every_s_(every_s), answers_(answers) {}
  Puller(const Puller&) = delete;
  Puller& operator=(const Puller&) = delete;

  // Reads what children have written, and starts those that are due. It does not wait.
  void look();
  // What was pulled since the last call, as that of `minute`.
  std::vector<TakenMinute> take(std::int64_t minute);

 private:
  struct Target {
    PullTarget at;
    std::uint64_t next_ns = 0;  // when it is asked
    std::map<Type, std::string> bases;
    std::string failures;  // that were said
    PullChild child;
  };

  void read_targets();
  void set_targets(Result<PullTargets> read);
  void start(Target& target);
  void finish(Target& target, const std::string& written);
  void say(Target& target, std::string failures) const;
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] std::uint64_t every_ns() const {
    return static_cast<std::uint64_t>(every_s_) * kNanosPerSecond;
  }

  PullFrom from_;
  PullChild lister_;
  int every_s_;
  int answers_;
  std::uint64_t next_ns_ = 0;  // when the file is read
  std::string trouble_;        // with the file, that was said
  std::map<PullTarget, Target> targets_;
  std::map<Type, std::map<PullTarget, std::vector<PulledProfile>>> taken_;
};

}  // namespace kymo::profiles
