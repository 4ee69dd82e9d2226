#pragma once

#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::cli {

// A kind of target of a verb: `kymo VERB process PID|JOB`, `kymo VERB runc ID`, ...
struct TargetKind {
  v1::Runtime runtime;
  std::string name;   // the name of the subcommand and of the runtime
  std::string what;   // the help text
  std::string shown;  // the form of the target, such as PID|JOB
  std::string help;   // what the target is
};

// One for each runtime of the API, plain processes first.
const std::vector<TargetKind>& target_kinds();

// The target that `text` names. For a process, digits alone are a pid: a job cannot have such a
// name.
v1::Target target_of(const TargetKind& kind, const std::string& text);

}  // namespace kymo::cli
