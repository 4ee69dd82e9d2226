#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "profiler/kept/keeper.h"
#include "profiler/kept/taken.h"
#include "profiler/stacks/confined_pprof.h"

namespace kymo::profiles {

// Names the stacks of minutes and keeps them. A child process does that, so that stacks are taken meanwhile,
// also if the disk stalls. There is one child at a time; minutes wait for it.
//
// The child answers for the keeper: a line for each time that it has written. It may outlive this object and the
// keeper, if the disk stalls or the keeper is killed. So it does not keep the keeper's lock of the folder.
//
// Threads: the only one of the process.
// Errors:  a minute that could not be written is tried again when the next one has come.
// Bounds:  if more than kMaxMinutes wait, of whatever types, the oldest are given up, and counted
//          as lost.
class MinuteWriter {
 public:
  static constexpr std::size_t kMaxMinutes = 8;

  // Makes a file of pprof of a profile, in a process without rights. Its answer is read like any file.
  using Namer = Result<std::string> (*)(const stacks::Profile& profile);

  // `lock`: the descriptor with the keeper's lock, or -1.
  MinuteWriter(const KeeperOrder& order, int answers, int lock,
               Namer namer = stacks::confined_pprof)
      : order_(order), answers_(answers), lock_(lock), namer_(namer) {}
  void add(TakenMinute minute);
  // A child runs.
  [[nodiscard]] bool busy() const { return child_ != 0; }
  // Looks whether the child has ended, and starts one if minutes wait.
  void look();
  // Waits until all is written, but not for longer than `ms`. Gives up what could not be written.
  void finish(int ms);

 private:
  [[nodiscard]] std::size_t minutes() const;
  void reap();
  void start();
  [[nodiscard]] int write() const;
  Result<void> keep(std::size_t& kept) const;
  void fail(std::uint64_t lost, const std::string& why) const;

  const KeeperOrder& order_;
  int answers_;
  int lock_;
  Namer namer_;
  std::deque<TakenMinute> waiting_;
  pid_t child_ = 0;          // 0: none runs
  std::size_t writing_ = 0;  // how many of the oldest minutes the child is writing
  bool ends_ = false;        // finish() was called
  bool try_again_ = true;    // false: the child could not write them, and none has come since
};

}  // namespace kymo::profiles
