#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/disk_wait.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Lets a request be answered although its thread waits for a disk that does not answer: no signal and no timeout
// ends that wait. If the thread does not end soon after a cancellation or the deadline, its caller leaves it: the
// caller answers, and the thread goes on alone. It begins nothing any more, and ends when the disk answers.
//
// Threads: wait() and tried() on the caller's thread, the other members on that of the request.
// Cost:    a lock.
class Handover {
 public:
  // How far the request is. Only in the stage `before` is it certain that it has changed nothing.
  enum class Stage : std::uint8_t { before, in_runtime, known, ended };

  // How long the caller waits in each stage after a cancellation or the deadline. In `before`, a
  // disk gets this time to answer. In `in_runtime`, the runtime ends CRIU and finds out what became
  // of the process. In `known`, the outcome is saved, which has time limits of its own. The time
  // for `known` also runs without a cancellation or a deadline.
  struct Patience {
    std::chrono::milliseconds before{3000};
    std::chrono::milliseconds in_runtime{30'000};
    std::chrono::milliseconds known{15'000};
  };

  explicit Handover(std::string tried, Patience patience);
  explicit Handover(std::string tried) : Handover(std::move(tried), Patience()) {}

  // What was tried, for errors.
  void set_tried(std::string tried);
  [[nodiscard]] std::string tried() const;
  // Lets the request have this for itself, such as a claim, until it ends or its caller leaves it in `before`.
  template <class Held>
  void hold(Held held) {
    keep(std::make_shared<Held>(std::move(held)));
  }
  // Call it before a step that must not be begun after the caller has left. Errors: unavailable: it has.
  [[nodiscard]] Result<void> may_go_on() const;
  // Call it just before the runtime is called. Errors: those of may_go_on().
  [[nodiscard]] Result<void> enter_runtime();
  void known() { advance(Stage::known); }
  void ended() { advance(Stage::ended); }

  // Waits until the request has ended, or leaves it. Returns the stage in which it is.
  [[nodiscard]] Stage wait(const DiskWait& time);

 private:
  void keep(std::shared_ptr<void> held);
  void release();
  void advance(Stage stage);
  [[nodiscard]] bool patience_is_over(bool time_is_over, std::chrono::steady_clock::time_point now);

  const Patience patience_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All guarded by mutex_:
  std::string tried_;
  Stage stage_ = Stage::before;
  bool left_ = false;
  std::chrono::steady_clock::time_point since_;  // when the present patience began
  bool counting_ = false;                        // it has begun
  std::vector<std::shared_ptr<void>> held_;
};

}  // namespace kymo::daemon
