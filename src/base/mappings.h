#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo {

// What a process has mapped, as a line of /proc/PID/maps says it.
struct Mapping {
  std::uint64_t begin = 0;  // addresses, up to but without `end`
  std::uint64_t end = 0;
  bool executable = false;
  std::string name;  // of a file, or as [vdso]; empty: memory of its own

  [[nodiscard]] bool has(std::uint64_t place) const { return place >= begin && place < end; }
};

// All of them, in the order of their addresses. Errors: those of read_file(). `root` stands in for
// /proc in tests.
Result<std::vector<Mapping>> mappings_of(pid_t pid, const std::string& root = "/proc");

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
