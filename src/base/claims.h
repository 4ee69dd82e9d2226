#pragma once

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace kymo {

// What running requests have to themselves: a process that is being dumped, a directory in use, the
// pids that a restore gives.
//
// Threads: any. Ownership: a Claim must not outlive its Claims.
template <class Key>
class Claims {
 public:
  // Held for as long as it lives; false when somebody else has what was asked for.
  class Claim {
   public:
    Claim() = default;
    Claim(Claim&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), keys_(std::move(other.keys_)) {}
    Claim& operator=(Claim&& other) noexcept {
      release();
      owner_ = std::exchange(other.owner_, nullptr);
      keys_ = std::move(other.keys_);
      return *this;
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() { release(); }
    explicit operator bool() const { return owner_ != nullptr; }

   private:
    friend class Claims;
    Claim(Claims* owner, std::set<Key> keys) : owner_(owner), keys_(std::move(keys)) {}
    void release() {
      if (owner_ != nullptr) std::exchange(owner_, nullptr)->release(keys_);
    }

    Claims* owner_ = nullptr;
    std::set<Key> keys_;
  };

  [[nodiscard]] Claim claim(Key key) { return claim_all({std::move(key)}); }

  // All of them or none.
  [[nodiscard]] Claim claim_all(std::set<Key> keys) {
    const std::lock_guard lock(mutex_);
    const auto held = [this](const Key& key) { return held_.contains(key); };
    if (std::any_of(keys.begin(), keys.end(), held)) return {};
    held_.insert(keys.begin(), keys.end());
    return {this, std::move(keys)};
  }

 private:
  void release(const std::set<Key>& keys) {
    const std::lock_guard lock(mutex_);
    for (const Key& key : keys) held_.erase(key);
  }

  std::mutex mutex_;
  std::set<Key> held_;
};

}  // namespace kymo
