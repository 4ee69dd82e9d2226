#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo {

// One mapping of a process: a line of /proc/PID/maps.
struct Mapping {
  std::uint64_t begin = 0;  // first address
  std::uint64_t end = 0;    // first address after the mapping
  bool executable = false;
  std::string name;  // a file, or a name such as [vdso]; empty: anonymous memory

  [[nodiscard]] bool has(std::uint64_t place) const { return place >= begin && place < end; }
};

// Returns all mappings of a process, in the order of their addresses. Tests pass another folder as
// `root`.
// Errors: those of read_file().
Result<std::vector<Mapping>> mappings_of(pid_t pid, const std::string& root = "/proc");

// A file that a process has mapped as shared.
struct SharedMapping {
  dev_t device = 0;
  ino_t inode = 0;
  std::string path;  // as the process sees it
};

// Calls `each` for every shared mapping of a file of process `pid`, until `each` returns true.
// Returns false if it never did, or if the process is gone or belongs to another user. Tests pass
// another folder as `root`.
bool any_shared_mapping(pid_t pid, const std::function<bool(const SharedMapping&)>& each,
                        const std::string& root = "/proc");

// Whether the process has a shared mapping of exactly this file. Some file systems (overlays) show
// another device in the list of mappings than stat(2) shows. Then the path must be the same.
bool process_maps(pid_t pid, const std::string& path);

}  // namespace kymo
