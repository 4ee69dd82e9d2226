#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

// What a container's specification (config.json of the Open Container Initiative) says. Functions that find no JSON in it
// find nothing.
namespace kymo::preflight {

// Refuses a container with a terminal of runc or containerd ("terminal": true in its config.json,
// `spec`). Its dump would succeed, but runc restores it only for a caller that takes the other end
// of the terminal and keeps it, which kymod does not do.
// Errors: failed_precondition, one line that begins with `tried`. A spec that is no JSON passes.
Result<void> refuse_terminal(const std::string& tried, std::string_view spec);

struct OciMount {
  std::string destination;  // with a slash at the end
  std::string source;       // a path of this machine; empty: there is none
};

// The source of a mount of a specification, if it is a bind mount: a path of this machine. Empty: it is none. A relative
// path is one of `bundle`.
std::string bind_source(const std::string& bundle, const nlohmann::json& mount);

// Returns the root of a container and then the mounts of its specification, in their order. Relative paths are those of
// `bundle`.
std::vector<OciMount> mounts_of(const std::string& bundle, std::string_view spec);

// Something of this machine that the specification names. A restore looks for it again.
struct HostName {
  std::string kind;  // "root", "mount", "hook" or "namespace"
  std::string path;
  std::string of;  // of a mount: where it is in the container; of a hook or a namespace: its type
  std::string holder{};  // of a namespace: holder_of() when it was listed
};

// Which process it is that a namespace's path names ("/proc/PID/ns/net", or a link to it): text to compare. Neither the
// pid nor the inode of a namespace says it, because others get both later. Empty: the path is of another kind, or names
// process 1, which stays.
std::string holder_of(const std::string& path);

// Returns the root, the sources of bind mounts, the hooks that run in a restore, and the namespaces that are joined by
// their paths.
std::vector<HostName> host_names_of(const std::string& bundle, std::string_view spec);
// The same of the config.json in this bundle. Empty if there is none, or if it cannot be read.
std::vector<HostName> host_names_in(const std::string& bundle);

}  // namespace kymo::preflight
