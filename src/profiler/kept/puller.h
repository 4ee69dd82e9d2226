#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "profiler/kept/keeper.h"
#include "profiler/kept/pull_child.h"
#include "profiler/kept/pulled.h"
#include "profiler/kept/taken.h"

namespace kymo::profiles {

// The next time after `after_ns` at which the target is asked, on the clock of monotonic_ns(). A
// target is asked once in each interval of `every_ns`. Each has its own place in the interval, so
// that not all are asked at once.
std::uint64_t next_turn(const PullTarget& target, std::uint64_t every_ns, std::uint64_t after_ns);

// Pulls the profiles of programs of Go, from each target once in an interval. A child process asks
// the target (pulled.h), at most one for each target at a time. What a child reads may take it
// over. So it is not trusted: this class itself knows to which service the answer belongs, and
// kills a child that does not end. The list of targets is a file or the pods of Kubernetes. Another
// child reads it again in each interval.
//
// Threads: the only one of the process.
// Errors:  reported to the program that has started the keeper (keeper.h): those of a target
//          whenever they change.
// Bounds:  kMaxTargets, kMaxAtOnce children, and kMaxBytes for their answers and for the bases
//          (pulled.h).
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
  struct Pull {
    PullTarget at;
    std::uint64_t next_ns = 0;  // when it is asked
    std::map<Type, std::string> bases;
    std::string failures;  // those that were reported last
    PullChild child;
  };

  void read_targets();
  void set_targets(Result<PullTargets> read);
  void start(Pull& target);
  void finish(Pull& target, const std::string& written);
  void say(Pull& target, std::string failures) const;
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] std::uint64_t every_ns() const {
    return static_cast<std::uint64_t>(every_s_) * kNanosPerSecond;
  }

  PullFrom from_;
  PullChild lister_;
  int every_s_;
  int answers_;
  std::uint64_t next_ns_ = 0;  // when the list of targets is read again
  std::string trouble_;        // with that list, as it was reported last
  std::map<PullTarget, Pull> targets_;
  std::map<Type, std::map<PullTarget, std::vector<PulledProfile>>> taken_;
};

}  // namespace kymo::profiles
