#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "checkpoint/runtimes/shared/dump_lock.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "checkpoint/runtimes/table.h"
#include "daemon/database/store.h"
#include "daemon/request/parts.h"

namespace kymo::daemon {

// The process or container that a request names. The name of a process is that of its program.
struct Target : runtime::Container {
  runtime::Kind kind{};
  std::optional<store::Job> job;

  // For example "process 12" or "runc container web".
  [[nodiscard]] std::string text() const;
};

// Finds the process, the job or the container that `asked` names; `verb` begins an error's line.
Result<Target> find_target(const Parts& parts, const std::string& verb, const v1::Target& asked);

// The target that a dump request names.
v1::Target target_of(const v1::DumpRequest& request);

// Locks the process of the target, so that no other request and no other kymod dumps it or repairs something in it.
// Waits half a second for kymod to find out what an earlier dump has left. A process that is gone or that may not be
// opened is not locked: the caller finds that out later.
// A container is also locked against its restore, which goes on for a moment after its process runs.
// Errors: failed_precondition: it is being dumped or restored; resource_exhausted: no descriptor is free.
Result<runtime::DumpLock> lock_target(const Parts& parts, const std::string& verb,
                                      const Target& target);

// The name under which runtime::lock_for_restore() locks a container.
std::string lock_name_of(const Parts& parts, runtime::Kind kind, const std::string& container);

// Makes a job of a process or container that runs already.
// Errors: failed_precondition: it is a job already.
Result<store::Job> adopt(const Parts& parts, const v1::AdoptRequest& request);

// The CRIU programs from which one is chosen for a runtime: those of kymod, or, if the runtime
// always starts a certain one, that one only.
// Errors: that CRIU is not found or does not start.
Result<runtime::CriuChoice> crius_of(const Parts& parts, runtime::Kind kind);

runtime::CheckpointOptions to_options(const v1::CheckpointOptions& from);

// The options of a restore: those that were asked for, and those of the dump that its restore needs as well, by its
// record: connections, sessions, file locks, external unix sockets, cgroups, and the root of a mount namespace.
runtime::CheckpointOptions restore_options(runtime::CheckpointOptions asked,
                                           const nlohmann::json& record, runtime::Kind kind);

}  // namespace kymo::daemon
