#pragma once

#include <atomic>

#include "base/file.h"

namespace kymo {

// The wish that something that runs be ended. Whoever runs it looks at asked(), or waits for fd()
// beside what it waits for anyway.
//
// Threads: every member from any thread. Ownership: owns its descriptor. Errors: where no
// descriptor is left fd() is -1, which poll(2) ignores, and asked() works all the same.
class Cancellation {
 public:
  Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // For good: it cannot be taken back.
  void ask() noexcept;
  [[nodiscard]] bool asked() const noexcept { return asked_.load(std::memory_order_acquire); }
  // Readable once it was asked; for poll(2) alone.
  [[nodiscard]] int fd() const noexcept { return event_.get(); }

 private:
  std::atomic<bool> asked_{false};
  FileDescriptor event_;
};

// Of one that may not be there.
inline bool is_asked(const Cancellation* cancel) {
  return cancel != nullptr && cancel->asked();
}
inline int fd_of(const Cancellation* cancel) {
  return cancel == nullptr ? -1 : cancel->fd();
}

}  // namespace kymo
