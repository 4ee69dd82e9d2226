#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::runtime {

// Refuses a container with a terminal of runc or containerd ("terminal": true in its config.json,
// `spec`). Its dump would succeed, but runc restores it only for a caller that takes the other end
// of the terminal and keeps it, which kymod does not do.
// Errors: failed_precondition, one line that begins with `tried`. A spec that is no JSON passes.
Result<void> refuse_terminal(const std::string& tried, std::string_view spec);

struct OciMount {
  std::string destination;  // with a slash at the end
  std::string source;       // a path of this machine; empty: there is none
};

// Returns the root of a container and then the mounts of its specification (config.json), in their order. Relative paths
// are those of `bundle`. Empty if `spec` is no JSON.
std::vector<OciMount> mounts_of(const std::string& bundle, std::string_view spec);

// Refuses a bind mount whose source is a symbolic link. runc follows it when it starts the container, but CRIU 4.2 does
// not in a restore ("Failed to move_mount ...: Invalid argument"). Docker has such a mount for `docker run --init` if
// docker-init is a link, as on Debian.
// Errors: failed_precondition, one line that begins with `tried`. A source that is missing passes: runc names it.
Result<void> refuse_linked_sources(const std::string& tried, const std::string& bundle,
                                   std::string_view spec);
// The same of the config.json in this bundle, which may be missing.
Result<void> refuse_linked_sources(const std::string& tried, const std::string& bundle);

}  // namespace kymo::runtime
