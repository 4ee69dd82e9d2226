#pragma once

#include <atomic>

#include "base/file.h"

namespace kymo {

// A request to end work that is running. The code that does the work checks asked(), or adds fd()
// to the descriptors for which it waits.
//
// Threads:   every member from any thread.
// Ownership: owns its descriptor.
// Errors:    if no descriptor is free, fd() is -1, which poll(2) ignores. asked() still works.
class Cancellation {
 public:
  Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // Asks to end the work. This cannot be undone.
  void ask() noexcept;
  [[nodiscard]] bool asked() const noexcept { return asked_.load(std::memory_order_acquire); }
  // Becomes readable when ask() was called. Use it only for poll(2).
  [[nodiscard]] int fd() const noexcept { return event_.get(); }

 private:
  std::atomic<bool> asked_{false};
  FileDescriptor event_;
};

// The same for a pointer that may be null.
inline bool is_asked(const Cancellation* cancel) {
  return cancel != nullptr && cancel->asked();
}
inline int fd_of(const Cancellation* cancel) {
  return cancel == nullptr ? -1 : cancel->fd();
}

}  // namespace kymo
