#pragma once

#include <string>
#include <vector>

#include "refusals.h"
#include "verbs.h"

namespace kymo::cli {

struct NewestDump {
  std::string directory;  // empty: none, and `refused` is not empty
  std::string complete;   // of a job whose newest dump failed: its last complete checkpoint, if any
  std::vector<Refusal> refused{};  // of a job: newest_refusals()
};

// As checkpoint_named(), but of a job it is the newest dump that has ended, also one that failed.
// Throws CLI::ValidationError if there is none, and no request was refused.
NewestDump newest_dump_named(const Context& context, const std::string& name);

}  // namespace kymo::cli
