#include "daemon/stored/space_bound.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/stored/deletion.h"
#include "daemon/stored/gone.h"
#include "lens/report/human.h"

namespace kymo::daemon {
namespace {

// The owner of a checkpoint: its job, or a process that is no job. Another process may have the same pid later, so a
// checkpoint of an earlier version, which has nothing but the pid, may be the only one of its process.
std::string owner_of(const store::Checkpoint& checkpoint) {
  if (!checkpoint.job_id.empty()) return checkpoint.job_id;
  if (checkpoint.start_ticks == 0) return "checkpoint " + checkpoint.id;
  return "process " + std::to_string(checkpoint.pid) + " " +
         std::to_string(checkpoint.start_ticks) + " " + checkpoint.boot_id;
}

constexpr std::uint64_t kFailedKept = 10;  // of each job, if no count is given

// Failed checkpoints have no images, but their logs and recordings fill the disk as well. Processes that
// are no job count as one, because each has a pid of its own.
std::vector<store::Checkpoint> failed_beyond(const std::vector<store::Checkpoint>& all,
                                             const std::string& state_dir,
                                             const SpaceBound& bound) {
  const std::uint64_t most = bound.count != 0 ? bound.count : kFailedKept;
  std::map<std::string, std::uint64_t> seen;  // by job, from the newest on
  std::vector<store::Checkpoint> out;
  std::for_each(all.rbegin(), all.rend(), [&](const store::Checkpoint& checkpoint) {
    if (checkpoint.state != store::CheckpointState::failed ||
        !below_state_dir(state_dir, checkpoint.directory)) {
      return;
    }
    if (++seen[checkpoint.job_id] > most) out.push_back(checkpoint);
  });
  std::reverse(out.begin(), out.end());
  return out;
}

// Oldest first. The others fill no disk, and none of them is the newest that a job can be restored from.
std::vector<store::Checkpoint> checkpoints_on_disk(const Parts& parts) {
  std::vector<store::Checkpoint> all = parts.store.checkpoints();
  const std::map<std::string, std::string> moved = find_gone(all);
  std::erase_if(all, [&](const store::Checkpoint& one) { return moved.contains(one.id); });
  return all;
}

SpaceBound bound_of(const Parts& parts) {
  return {parts.config.keep_bytes, parts.config.keep_count};
}

std::string count_of(std::size_t count, const std::string& kind) {
  return std::to_string(count) + " " + kind + (count == 1 ? " one" : " ones");
}

std::string allowed_by(const SpaceBound& bound) {
  const std::string count = "--keep-count " + std::to_string(bound.count);
  const std::string bytes = "--keep-bytes " + report::bytes(bound.bytes);
  if (bound.bytes == 0) return count + " allows";
  return bound.count == 0 ? bytes + " allows" : count + " and " + bytes + " allow";
}

}  // namespace

std::string text_of_removal(const std::vector<store::Checkpoint>& removed,
                            const SpaceBound& bound) {
  if (removed.empty()) return {};
  std::uint64_t bytes = 0;
  std::size_t failed = 0;
  for (const store::Checkpoint& one : removed) {
    bytes += one.image_bytes;
    if (one.state == store::CheckpointState::failed) ++failed;
  }
  const std::size_t complete = removed.size() - failed;
  std::string text = "removing " + std::to_string(removed.size()) + " old " +
                     (removed.size() == 1 ? "checkpoint" : "checkpoints") + " with " +
                     report::bytes(bytes) + " of images now: ";
  if (complete != 0) {
    text += count_of(complete, "complete") + ", more than " + allowed_by(bound);
  }
  if (failed == 0) return text;
  const std::uint64_t kept = bound.count != 0 ? bound.count : kFailedKept;
  return text + (complete == 0 ? "" : "; ") + count_of(failed, "failed") +
         ", of which the newest " + std::to_string(kept) + " of each job stay";
}

std::string planned_removal(const Parts& parts) {
  const SpaceBound bound = bound_of(parts);
  return text_of_removal(beyond_bound(checkpoints_on_disk(parts), parts.config.state_dir, bound),
                         bound);
}

std::vector<store::Checkpoint> beyond_bound(const std::vector<store::Checkpoint>& all,
                                            const std::string& state_dir, const SpaceBound& bound) {
  std::vector<store::Checkpoint> out = failed_beyond(all, state_dir, bound);
  std::map<std::string, std::string> newest;   // by owner
  std::map<std::string, std::uint64_t> count;  // by owner
  std::vector<const store::Checkpoint*> ours;  // oldest first
  std::uint64_t bytes = 0;
  for (const store::Checkpoint& checkpoint : all) {
    if (checkpoint.state != store::CheckpointState::complete) continue;
    newest[owner_of(checkpoint)] = checkpoint.id;
    if (!below_state_dir(state_dir, checkpoint.directory)) continue;
    ours.push_back(&checkpoint);
    ++count[owner_of(checkpoint)];
    bytes += checkpoint.image_bytes;
  }
  for (const store::Checkpoint* checkpoint : ours) {
    const std::string owner = owner_of(*checkpoint);
    const bool many = bound.count != 0 && count[owner] > bound.count;
    const bool large = bound.bytes != 0 && bytes > bound.bytes;
    if ((!many && !large) || newest[owner] == checkpoint->id) continue;
    out.push_back(*checkpoint);
    --count[owner];
    bytes -= checkpoint->image_bytes;
  }
  return out;
}

std::string make_room(const Parts& parts) {
  const SpaceBound bound = bound_of(parts);
  std::vector<std::string> troubles;
  std::set<std::string> tried;
  // A deletion may take long, and somebody may delete the newest checkpoint meanwhile: looks again before each.
  const auto next = [&]() -> std::optional<store::Checkpoint> {
    const std::vector<store::Checkpoint> all = checkpoints_on_disk(parts);
    for (store::Checkpoint& one : beyond_bound(all, parts.config.state_dir, bound)) {
      if (tried.insert(one.id).second) return std::move(one);
    }
    return std::nullopt;
  };
  for (std::optional<store::Checkpoint> found = next(); found; found = next()) {
    const store::Checkpoint& checkpoint = *found;
    const Result<bool> deleted = delete_checkpoint(DeletionParts(parts), checkpoint, troubles);
    if (deleted && *deleted) {
      spdlog::info("made room: removed the oldest checkpoint, {} in {} ({})", checkpoint.id,
                   checkpoint.directory, report::bytes(checkpoint.image_bytes));
    } else if (!deleted) {
      troubles.push_back(deleted.error().message);
    }
  }
  return troubles.empty() ? "" : "make room for checkpoints: " + troubles.front();
}

}  // namespace kymo::daemon
