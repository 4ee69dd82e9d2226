#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/parts.h"
#include "runtime/runtime.h"
#include "runtimes/table.h"
#include "store/store.h"

namespace kymo::daemon {

// What a request is about, found.
struct Target {
  runtime::Kind kind = runtime::Kind::process;
  runtime::ProcessId process;  // a container's: its first
  std::string name;            // of the program, or of the container
  std::vector<std::string> command;
  std::string container;  // its id; empty for a process
  std::string bundle;     // of a runc container
  bool frozen = false;    // as a container
  bool read_only_root = false;
  std::optional<store::Job> job;

  // "process 12", "runc container web"
  [[nodiscard]] std::string text() const;
};

// Finds the process, the job or the container that `asked` names; `verb` begins an error's line.
Result<Target> find_target(const Parts& parts, const std::string& verb, const v1::Target& asked);

// What a dump is asked for.
v1::Target target_of(const v1::DumpRequest& request);

// Makes a job of what runs already. Errors: failed_precondition: it is one.
Result<store::Job> adopt(const Parts& parts, const v1::AdoptRequest& request);

// The CRIUs from which one is chosen for a runtime: kymod's own, or the one that it starts whatever
// it is told. Errors: that one cannot be seen.
Result<runtime::CriuChoice> crius_of(const Parts& parts, runtime::Kind kind);

runtime::CheckpointOptions to_options(const v1::CheckpointOptions& options);

}  // namespace kymo::daemon
