#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace kymo {

// Things that a running request uses exclusively: a process that is being dumped, a directory, the
// pids that a restore gives to its processes.
//
// Threads:   any.
// Ownership: a Claim may outlive its Claims.
template <class Key>
class Claims {
  struct Keys {
    std::mutex mutex;
    std::set<Key> keys;  // guarded by mutex
  };

 public:
  // Holds its keys until it is destroyed. False if another Claim held one of them already.
  class Claim {
   public:
    Claim() = default;
    Claim(Claim&&) noexcept = default;
    Claim& operator=(Claim&& other) noexcept {
      release();
      held_ = std::move(other.held_);
      keys_ = std::move(other.keys_);
      return *this;
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() { release(); }
    explicit operator bool() const { return held_ != nullptr; }

   private:
    friend class Claims;
    Claim(std::shared_ptr<Keys> held, std::set<Key> keys)
        : held_(std::move(held)), keys_(std::move(keys)) {}
    void release() {
      if (held_ == nullptr) return;
      const std::lock_guard lock(held_->mutex);
      for (const Key& key : keys_) held_->keys.erase(key);
    }

    std::shared_ptr<Keys> held_;
    std::set<Key> keys_;
  };

  [[nodiscard]] Claim claim(Key key) { return claim_all({std::move(key)}); }

  // Claims all keys or none.
  [[nodiscard]] Claim claim_all(std::set<Key> keys) {
    const std::lock_guard lock(held_->mutex);
    const auto is_held = [this](const Key& key) { return held_->keys.contains(key); };
    if (std::any_of(keys.begin(), keys.end(), is_held)) return {};
    held_->keys.insert(keys.begin(), keys.end());
    return {held_, std::move(keys)};
  }

 private:
  std::shared_ptr<Keys> held_ = std::make_shared<Keys>();
};

}  // namespace kymo
