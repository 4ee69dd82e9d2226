#pragma once

#include <string>
#include <vector>

#include "refusals.h"
#include "verbs.h"

namespace kymo::cli {

// The directory of the checkpoint that a user names. A name with a slash, or of a file, is a
// path. Otherwise, if kymod answers, it is the directory of the checkpoint with this id, or of the
// last complete checkpoint of the job with this name: a folder of the same name, which somebody else
// may have made here, never takes their place. A name that kymod does not know is a path.
// Throws CLI::ValidationError if the job has no complete checkpoint, or if the name is empty.
std::string checkpoint_named(const Context& context, const std::string& name);

struct NewestDump {
  std::string directory;  // empty: none, and `refused` is not empty
  std::string complete;   // of a job whose newest dump failed: its last complete checkpoint, if any
  std::vector<Refusal> refused{};  // of a job: newest_refusals()
};

// The same, but of a job it is the newest dump that has ended, also one that failed.
// Throws CLI::ValidationError if there is none, and no request was refused.
NewestDump newest_dump_named(const Context& context, const std::string& name);

}  // namespace kymo::cli
