#pragma once

#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::cli {

// What a verb can be about: `kymo VERB process PID|JOB`, `kymo VERB runc ID`, ...
struct TargetKind {
  v1::Runtime runtime;
  std::string name;   // of the subcommand: the runtime's
  std::string what;   // for its help
  std::string shown;  // how its target is written
};

// One for each runtime of the API, plain processes first.
const std::vector<TargetKind>& target_kinds();

// What `text` names. Of a process: digits alone are a pid, which no job is named.
v1::Target target_of(const TargetKind& kind, const std::string& text);

}  // namespace kymo::cli
