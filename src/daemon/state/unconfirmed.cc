#include "daemon/state/unconfirmed.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <set>
#include <utility>

#include "base/own_thread.h"
#include "checkpoint/failures/explain.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/restore_lock.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/directory_claim.h"

namespace kymo::daemon {
namespace {

constexpr std::chrono::seconds kLookEvery{1};

}  // namespace

UnconfirmedDumps::UnconfirmedDumps(store::Store& store, const ForeignFiles& foreign,
                                   Metrics& metrics, Claims<std::string>& claims, SettleDump settle)
    : store_(store),
      foreign_(foreign),
      metrics_(metrics),
      claims_(claims),
      settle_(std::move(settle)) {}

UnconfirmedDumps::~UnconfirmedDumps() {
  constexpr std::chrono::hours kForGood{1000};
  static_cast<void>(stop(kForGood));
}

void UnconfirmedDumps::watch(const std::string& checkpoint_id) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || !watched_.try_emplace(checkpoint_id).second) return;
  const Result<void> begun =
      on_own_thread([this, checkpoint_id] { look_until_known(checkpoint_id); });
  if (!begun) {
    watched_.erase(checkpoint_id);
    spdlog::error("checkpoint {}: kymod checks it again at its next start: {}", checkpoint_id,
                  begun.error().message);
  }
}

void UnconfirmedDumps::watch_all(std::chrono::milliseconds patience) {
  for (const store::Checkpoint& checkpoint : store_.checkpoints()) {
    if (is_open(checkpoint)) watch(checkpoint.id);
  }
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] {
    return std::all_of(watched_.begin(), watched_.end(),
                       [](const auto& one) { return one.second.looks != 0; });
  });
}

bool UnconfirmedDumps::look_now(const std::string& checkpoint_id,
                                std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const auto found = watched_.find(checkpoint_id);
  if (found == watched_.end()) return true;
  found->second.now = true;
  changed_.notify_all();
  return changed_.wait_for(lock, patience, [&] { return !watched_.contains(checkpoint_id); });
}

std::size_t UnconfirmedDumps::size() const {
  const std::lock_guard lock(mutex_);
  return watched_.size();
}

std::size_t UnconfirmedDumps::held() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(watched_.begin(), watched_.end(),
                                                [](const auto& one) { return one.second.held; }));
}

bool UnconfirmedDumps::stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, patience, [&] { return watched_.empty(); });
}

void UnconfirmedDumps::look_until_known(const std::string& checkpoint_id) {
  std::string said;  // the last trouble in the log
  for (;;) {
    const bool known = look(checkpoint_id, said);
    std::unique_lock lock(mutex_);
    Watched& watched = watched_[checkpoint_id];
    ++watched.looks;
    if (!known && !stopping_) {
      changed_.notify_all();
      changed_.wait_for(lock, kLookEvery, [&] { return stopping_ || watched.now; });
      watched.now = false;
    }
    if (known || stopping_) {
      watched_.erase(checkpoint_id);
      changed_.notify_all();  // under the lock: this object may be gone right after it
      return;
    }
  }
}

// Returns whether the outcome is known now.
bool UnconfirmedDumps::look(const std::string& checkpoint_id, std::string& said) try {
  const Result<store::Checkpoint> checkpoint = store_.checkpoint(checkpoint_id);
  if (!checkpoint) return checkpoint.error().code == Code::not_found;  // somebody deleted it
  if (!is_open(*checkpoint)) return true;
  {
    const bool held = runtime::held_by(checkpoint->pid) != 0;
    const std::lock_guard lock(mutex_);
    watched_[checkpoint_id].held = held;
  }
  // A restore of the bare images claims only their own path. If the disk is silent, the look goes on: it also ends what
  // holds the process.
  const CheckpointDir dir(checkpoint->directory);
  struct Use {
    DirectoryClaim claim;
    Result<FileDescriptor> lock = FileDescriptor();
  };
  const std::set<std::string> paths{dir.path(), dir.partial_images()};
  auto use = std::make_shared<Use>();
  use->claim = DirectoryClaim(claims_, paths, DirectoryClaim::SilentDisk::leave);
  if (!use->claim) return false;  // a request uses it: the dump itself, a deletion or a restore
  use->lock = runtime::lock_images(real_directories(paths), runtime::ImageUse::change);
  if (!use->lock) return false;  // another kymod restores them
  const Result<bool> known =
      close_cut_short_dump(store_, foreign_, *checkpoint, settle_, std::move(use));
  if (!known && std::exchange(said, known.error().message) != known.error().message) {
    spdlog::error("dump of pid {}, whose outcome is not known yet: {}", checkpoint->pid,
                  known.error().message);
  }
  if (known && *known && is_lost(*checkpoint)) count(checkpoint_id);
  return known && *known;
} catch (const std::exception&) {  // no memory: the next look tries again
  return false;
}

// Counts a dump whose outcome is known now.
void UnconfirmedDumps::count(const std::string& checkpoint_id) {
  const Result<store::Checkpoint> settled = store_.checkpoint(checkpoint_id);
  if (!settled) return;
  const bool failed = settled->state == store::CheckpointState::failed;
  metrics_.dump_ended(failed ? RequestResult::error : RequestResult::ok);
  if (!failed) return;
  const Error error{Code::unavailable, settled->error};
  metrics_.outcomes()->failed("dump", failures::of_error(error).id);
}

}  // namespace kymo::daemon
