#pragma once

#include <atomic>
#include <cstdint>

namespace kymo {

// A count that one thread writes and other threads read.
class OwnedCount {
 public:
  void add(std::uint64_t n) noexcept { set(get() + n); }
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void raise_to(std::uint64_t value) noexcept {
    if (value > get()) {
      set(value);
    }
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace kymo
