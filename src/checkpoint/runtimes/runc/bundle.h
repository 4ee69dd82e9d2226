#pragma once

#include <string>

#include "checkpoint/criu/repair/ghosts.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Checks that the path of a bundle is absolute and that it has a config.json.
// Errors: one line that begins with `tried`.
Result<void> check_bundle(const std::string& tried, const std::string& bundle);

// Checks before a dump what a restore from the bundle would refuse. Changes nothing. A bundle that
// cannot be read passes: a restore may name another.
// Errors: one line that begins with `tried`.
Result<void> check_restorable(const std::string& tried, const std::string& bundle);

struct BundleRoot {
  bool read_only = false;
  std::string made;  // a line about the folder that was made in the root; empty: none was made
};

// Prepares the root of the container for a restore, and returns what config.json says about it.
// CRIU changes to the root with pivot_root(2), which needs a folder in the new root for the old
// one. CRIU uses `tmp`, or makes a folder, which it cannot do in a read-only root. So this function
// makes an empty `tmp` in a read-only root that has none. The folder stays, as the mount points do
// that runc makes. Follows no link in the path of the root, as runc.
// Errors: permission_denied: the root is a link or lies behind one; the folder cannot be made.
Result<BundleRoot> prepare_root(const std::string& tried, const std::string& bundle);

// Where the paths of a container of this bundle are on this machine: in its root, or in the source
// of a bind mount. What is in its other mounts, such as a tmpfs, ends with the container.
criu::PlaceOfGhost places_in_bundle(const std::string& bundle);

}  // namespace kymo::runtime
