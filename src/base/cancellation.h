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

  // Asks to end the work, and says why: a text that is never destroyed. This cannot be undone, and the first call
  // counts.
  void ask(const char* why = "the request was cancelled") noexcept;
  [[nodiscard]] bool asked() const noexcept { return why() != nullptr; }
  // For the error of what was ended. Null: nobody has asked.
  [[nodiscard]] const char* why() const noexcept { return why_.load(std::memory_order_acquire); }
  // Becomes readable when ask() was called. Use it only for poll(2).
  [[nodiscard]] int fd() const noexcept { return event_.get(); }

 private:
  std::atomic<const char*> why_{nullptr};
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
