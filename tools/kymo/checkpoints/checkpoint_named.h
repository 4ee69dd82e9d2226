#pragma once

#include <string>

#include "verbs.h"

namespace kymo::cli {

// The directory of the checkpoint that a user names. A name with a slash, or with a dot and of a file
// (a.tsv, dump.log), is a path. Otherwise, if kymod answers, it is the directory of the checkpoint with this id, or
// of the last complete checkpoint of the job with this name: a folder or file of the same name, which somebody else
// may have made here, never takes their place. A name that kymod does not know is a path.
// Throws CLI::ValidationError if the job has no complete checkpoint, or if the name is empty.
std::string checkpoint_named(const Context& context, const std::string& name);

// The same to read: if this user may not read the directory, a copy of it without images (checkpoint_copy.h).
std::string checkpoint_to_read(const Context& context, const std::string& name);

// The directory of the newest dump of a job, also of one that failed, or what else the name means in
// checkpoint_named(), to read its recordings. A regular file of that name is that file.
// Throws CLI::ValidationError as newest_dump_named(), and if the only requests for the job were refused.
std::string recordings_named(const Context& context, const std::string& name);

}  // namespace kymo::cli
