#pragma once

#include <sys/types.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace kymo::runtime {

// The pids that running restores give to their processes: two that want the same one would end each
// other's.
//
// Threads: any. Ownership: a Claim must not outlive its PidClaims.
class PidClaims {
 public:
  class Claim {
   public:
    Claim() = default;
    Claim(Claim&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), pids_(std::move(other.pids_)) {}
    Claim& operator=(Claim&&) = delete;
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() {
      if (owner_ != nullptr) {
        owner_->release(pids_);
      }
    }
    explicit operator bool() const { return owner_ != nullptr; }

   private:
    friend class PidClaims;
    Claim(PidClaims* owner, std::set<pid_t> pids) : owner_(owner), pids_(std::move(pids)) {}

    PidClaims* owner_ = nullptr;
    std::set<pid_t> pids_;
  };

  // All of them for as long as the claim lives, or none: false.
  [[nodiscard]] Claim claim(std::set<pid_t> pids) {
    const std::lock_guard lock(mutex_);
    const auto held = [this](pid_t pid) { return held_.contains(pid); };
    if (std::any_of(pids.begin(), pids.end(), held)) {
      return {};
    }
    held_.insert(pids.begin(), pids.end());
    return {this, std::move(pids)};
  }

 private:
  void release(const std::set<pid_t>& pids) {
    const std::lock_guard lock(mutex_);
    for (const pid_t pid : pids) {
      held_.erase(pid);
    }
  }

  std::mutex mutex_;
  std::set<pid_t> held_;
};

}  // namespace kymo::runtime
