#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/claims.h"
#include "daemon/database/store.h"
#include "daemon/recording/metrics.h"
#include "daemon/state/cut_short.h"
#include "daemon/state/foreign.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Looks after dumps whose outcome is not known: those that were running when an earlier kymod
// stopped, and those whose process was not seen to run and whose images may not be whole, for example
// because their disk does not answer (CheckpointState::unconfirmed). Each is looked at every second
// until its outcome is known (close_cut_short_dump()). A dump that no request has counted, because kymod stopped, is
// counted then.
//
// Threads:   every member from any thread. Each such dump has a thread of its own, because the disk
//            of its images may not answer for a long time. There are few of them.
// Ownership: refers to the arguments of its constructor, which must outlive these threads: see
//            stop().
// Errors:    what a look could not do is logged once, and tried again.
class UnconfirmedDumps {
 public:
  UnconfirmedDumps(store::Store& store, const ForeignFiles& foreign, Metrics& metrics,
                   Claims<std::string>& claims, SettleDump settle);
  ~UnconfirmedDumps();
  UnconfirmedDumps(const UnconfirmedDumps&) = delete;
  UnconfirmedDumps& operator=(const UnconfirmedDumps&) = delete;

  // Looks after this checkpoint from now on.
  void watch(const std::string& checkpoint_id);
  // The same for all checkpoints in the store whose dumps have not ended. Waits at most `patience`
  // for a first look at each. Call it at the start of kymod, before any request.
  void watch_all(std::chrono::milliseconds patience);
  // Looks at the checkpoint now, if it is one of these, and waits at most `patience` for the result.
  // Returns false if its outcome is still not known.
  bool look_now(const std::string& checkpoint_id, std::chrono::milliseconds patience);

  // How many there are, and how many of their processes are held (runtime::held_by()).
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::size_t held() const;

  // Ends the threads. Returns false if a thread still waits for a disk after `patience`. The caller
  // must then end the program without destroying what the threads use.
  [[nodiscard]] bool stop(std::chrono::milliseconds patience);

 private:
  struct Watched {
    std::size_t looks = 0;  // that have ended
    bool now = false;       // do not wait for the next second
    bool held = false;
  };
  void look_until_known(const std::string& checkpoint_id);
  bool look(const std::string& checkpoint_id, std::string& said);
  void count(const std::string& checkpoint_id);

  store::Store& store_;
  const ForeignFiles& foreign_;
  Metrics& metrics_;
  Claims<std::string>& claims_;
  const SettleDump settle_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Watched> watched_;  // by the id of the checkpoint
  bool stopping_ = false;
};

}  // namespace kymo::daemon
