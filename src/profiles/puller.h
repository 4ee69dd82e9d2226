#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "profiles/pulled.h"
#include "profiles/taken.h"

namespace kymo::profiles {

// Pulls the profiles of programs of Go, each target once in a time. A child process asks a target (pulled.h), one at a
// time for each target. It may be taken over by what it reads, so nothing that it writes is believed: not of which service a
// profile is, nor that it ends. The file of the targets is read again each time.
//
// Threads: the only one of the process.
// Errors:  said to the program (keeper.h), for each target when they change.
// Bounds:  kMostTargets, kMostAtOnce children, and kMostBytes of what they have given and what is compared next time.
class Puller {
 public:
  static constexpr std::size_t kMostTargets = 1000;
  static constexpr std::size_t kMostAtOnce = 32;
  static constexpr std::size_t kMostBytes = std::size_t{512} << 20U;
  static constexpr std::size_t kMostWritten = std::size_t{256} << 20U;  // by one child

  // `file`: that of the targets; empty: nothing is pulled.
  Puller(std::string file, int every_s, int answers)
      : file_(std::move(file)), every_s_(every_s), answers_(answers) {}
  ~Puller();
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
    pid_t child = 0;       // 0: none runs
    std::uint64_t until_ns = 0;
    FileDescriptor from;
    std::string written;
    bool late = false;  // the child was ended, because it did not end in time
  };

  void read_targets();
  void start(Target& target);
  void read(Target& target, bool room);
  void finish(Target& target);
  void say(Target& target, std::string failures) const;
  [[nodiscard]] std::size_t bytes() const;

  std::string file_;
  int every_s_;
  int answers_;
  std::uint64_t next_ns_ = 0;  // when the file is read
  std::string trouble_;        // with the file, that was said
  std::map<PullTarget, Target> targets_;
  std::map<Type, std::map<PullTarget, std::vector<PulledProfile>>> taken_;
};

}  // namespace kymo::profiles
