#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo::runtime {

// What a restore needs of a bundle of runc's, which `tried` begins an error's line about.
Result<void> check_bundle(const std::string& tried, const std::string& bundle);

struct BundleRoot {
  bool read_only = false;
  std::string made;  // a line about the folder that was made in it; empty: none was
};

// What config.json says of the container's root, made ready for a restore. CRIU changes to it by
// pivot_root(2), for which it needs a folder in it to leave the old root in: `tmp`, or one that it
// makes, which it cannot in a root that is read-only. So there an empty `tmp` is made, and stays as
// runc's mount points do. Errors: it cannot be made.
Result<BundleRoot> prepare_root(const std::string& tried, const std::string& bundle);

}  // namespace kymo::runtime
