#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "checkpoint/criu/drive/options.h"
#include "daemon/request/deadline.h"
#include "daemon/request/request.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/directory_claim.h"
#include "daemon/state/foreign.h"
#include "daemon/state/restore_note.h"

namespace kymo::daemon {

// What the steps of a restore know and find out. Threads and ownership: those of Request.
struct RestoreContext : Request {
  RestoreContext(const Parts& all, const v1::RestoreRequest& request, const ScopeTree* timed,
                 std::shared_ptr<RequestProgress> shown, Handover& to_caller)
      : Request(all, store::RunKind::restore, timed, std::move(shown), to_caller), asked(request) {
    counts = !request.rehearse();
  }

  const v1::RestoreRequest& asked;
  const Deadline deadline{progress.cancellation(), asked.deadline_ns()};
  std::string directory;
  DirectoryClaim claim;
  FileDescriptor lock;         // no other kymod restores it; invalid if there can be no lock
  FileDescriptor images_lock;  // no other kymod deletes its images; the same
  Claims<std::string>::Claim job_claim;  // a job that is being restored is not deleted
  std::string images;
  nlohmann::json record =
      nlohmann::json::object();  // checkpoint.json, which anyone may have written; or empty
  runtime::Kind runtime_kind{};
  std::string container;       // the id of a container
  std::string container_name;  // for messages; empty: not known
  std::string bundle;          // of a runc container
  ImagesSeen in_images;
  bool job_is_new = false;                       // this restore has listed the job
  std::vector<criu::InheritedFile> outputs_now;  // the process gets these instead of those
  std::vector<std::string> outputs_made;         // by this restore
  std::optional<CheckpointDir> to;               // where log and recording go
  std::uint64_t page_bytes = 0;                  // in the images
  std::uint64_t memory_bytes = 0;                // of the processes; 0: not known
  std::vector<std::string> seen_before;          // what may make it fail; an error names it
  RestoreNote note;
  runtime::RestoreOutcome outcome;
  bool ran_since = false;     // the process, since its dump; or that is not known
  std::uint64_t away_ns = 0;  // since its dump stopped it; 0: not known
};

}  // namespace kymo::daemon
