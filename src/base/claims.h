#pragma once

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace kymo {

// Things that a running request uses exclusively: a process that is being dumped, a directory, the
// pids that a restore gives to its processes.
//
// Threads:   any.
// Ownership: a Claim must not outlive its Claims.
template <class Key>
class Claims {
 public:
  // Holds its keys until it is destroyed. False if another Claim held one of them already.
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

  // Claims all keys or none.
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
