#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/criu/drive/held_images.h"
#include "daemon/request/check.h"
#include "daemon/request/deadline.h"
#include "daemon/request/request.h"
#include "daemon/request/target.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/directory_claim.h"
#include "daemon/state/dump_end.h"

namespace kymo::daemon {

// What the steps of a dump know and find out. Threads and ownership: those of Request.
struct DumpContext : Request {
  DumpContext(const Parts& all, const v1::DumpRequest& request, const ScopeTree* timed,
              std::shared_ptr<RequestProgress> shown, Handover& to_caller)
      : Request(all, store::RunKind::dump, timed, std::move(shown), to_caller), asked(request) {}

  const v1::DumpRequest& asked;
  const std::uint64_t deadline_ns = deadline_from_now(asked.deadline_ns());  // 0: none
  std::string asked_directory;                                               // empty: none
  std::optional<criu::Encoding> stream;
  Target target;
  // The process has a mount namespace of its own, whose root is that of kymod: its restore needs the option root.
  bool own_mounts_on_root = false;
  std::vector<preflight::HostName> names;  // of the config.json of a container
  std::string owner;  // of the history of the target; empty: the target is not known yet
  std::shared_ptr<const DirectoryClaim> directory_claim;
  std::optional<CheckpointDir> dir;        // set once this request has made it
  std::shared_ptr<criu::HeldImages> held;  // the images in it; set with it
  store::Checkpoint checkpoint;
  bool listed = false;              // the checkpoint is in the store
  std::uint64_t memory_bytes = 0;   // of the processes, about
  std::uint64_t planned_bytes = 0;  // of the images before compression, about
  std::string memory_images;        // runtime::DumpSpec::memory_images
  std::string forecast;
  std::vector<preflight::Finding> seen_before;  // what may make the dump fail
  std::uint64_t streamed_bytes = 0;             // before compression
  std::optional<EndedDump> ended_dump;          // set with `dir`
  SettledDump settled;  // until the runtime is called: the dump has failed, and left nothing
  std::optional<AskedDisk> asked_disk;  // of the directory; set when the dump is settled
  std::uint64_t stood_still_ns = 0;     // until the outcome was known; 0: not known, or it did not
  std::string disk;                     // of the directory (disk_of())
  runtime::DumpOutcome outcome;
};

}  // namespace kymo::daemon
