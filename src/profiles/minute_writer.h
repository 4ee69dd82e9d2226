#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "profiles/keeper.h"
#include "profiles/taken.h"

namespace kymo::profiles {

// Names the stacks of minutes and keeps them. A child process does that, so that stacks are taken meanwhile,
// also if the disk stalls. There is one child at a time; minutes wait for it.
//
// The child answers for the keeper: a line for each time that it has written. It may outlive this object, if
// the disk stalls.
//
// Threads: the only one of the process.
// Bounds:  if more than kMostWaiting minutes wait, the oldest are given up, and counted as lost.
class MinuteWriter {
 public:
  static constexpr std::size_t kMostWaiting = 8;

  MinuteWriter(const KeeperOrder& order, int answers) : order_(order), answers_(answers) {}
  void add(TakenMinute minute);
  // Looks whether the child has ended, and starts one if minutes wait.
  void look();
  // Nothing waits and no child runs.
  [[nodiscard]] bool idle() const { return child_ == 0 && waiting_.empty(); }
  // No minute waits, so nothing here refers to a module.
  [[nodiscard]] bool holds_none() const { return waiting_.empty(); }
  // Waits until all is written, but not for longer than `ms`.
  void finish(int ms);

 private:
  void reap();
  void start();
  [[noreturn]] void write() const;
  Result<void> keep(std::uint64_t& samples) const;
  void fail(std::uint64_t lost, const std::string& why) const;

  const KeeperOrder& order_;
  int answers_;
  std::deque<TakenMinute> waiting_;
  std::uint64_t given_up_ = 0;  // samples of minutes that waited too long
  pid_t child_ = 0;
  std::uint64_t child_samples_ = 0;
};

}  // namespace kymo::profiles
