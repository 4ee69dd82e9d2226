#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace kymo {

// A file that a process has mapped to share with others.
struct SharedMapping {
  dev_t device = 0;
  ino_t inode = 0;
  std::string path;  // as the process sees it
};

// Calls `each` for every mapping of a file that process `pid` shares, until it returns true. False
// where none did, or the process is gone or another user's. `root` stands in for /proc in tests.
bool any_shared_mapping(pid_t pid, const std::function<bool(const SharedMapping&)>& each,
                        const std::string& root = "/proc");

// Whether the process has this very file mapped. Some file systems (overlays) show another device
// in the list of mappings than stat(2) does: there the path must be the same.
bool process_maps(pid_t pid, const std::string& path);

}  // namespace kymo
