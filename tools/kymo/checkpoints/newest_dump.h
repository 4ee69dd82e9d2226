#pragma once

#include <string>

#include "refusals.h"
#include "verbs.h"

namespace kymo::cli {

struct NewestDump {
  std::string directory;  // empty: none, and `runs.refused` is not empty
  std::string complete;   // of a job whose newest dump failed: its last complete checkpoint, if any
  NewestRuns runs{};      // of a job
  bool chosen = false;    // a job was named, and this is its newest dump
};

// As checkpoint_named(), but of a job it is the newest dump that has ended, also one that failed.
// Throws CLI::ValidationError if there is none, and no request was refused.
NewestDump newest_dump_named(const Context& context, const std::string& name);

}  // namespace kymo::cli
