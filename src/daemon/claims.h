#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace kymo::daemon {

// What running requests have to themselves: a process that is being dumped, a directory in use.
//
// Threads: any. Ownership: a Claim must not outlive its Claims.
class Claims {
 public:
  // Held for as long as it lives; false when somebody else has it.
  class Claim {
   public:
    Claim() = default;
    Claim(Claim&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), key_(std::move(other.key_)) {}
    Claim& operator=(Claim&& other) noexcept {
      release();
      owner_ = std::exchange(other.owner_, nullptr);
      key_ = std::move(other.key_);
      return *this;
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() { release(); }
    explicit operator bool() const { return owner_ != nullptr; }

   private:
    friend class Claims;
    Claim(Claims* owner, std::string key) : owner_(owner), key_(std::move(key)) {}
    void release() {
      if (owner_ != nullptr) std::exchange(owner_, nullptr)->release(key_);
    }

    Claims* owner_ = nullptr;
    std::string key_;
  };

  [[nodiscard]] Claim claim(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return held_.insert(key).second ? Claim(this, key) : Claim();
  }

 private:
  void release(const std::string& key) {
    const std::lock_guard lock(mutex_);
    held_.erase(key);
  }

  std::mutex mutex_;
  std::set<std::string> held_;
};

}  // namespace kymo::daemon
