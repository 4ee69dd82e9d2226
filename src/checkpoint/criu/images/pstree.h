#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// One process of a checkpoint.
struct ImageProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::vector<pid_t> threads;  // all of them, the main one included
};

// Whether a checkpoint with this root has a pid namespace of its own. The pids in the images are then those in that
// namespace. CRIU dumps one only with its first process as the root, and no other process that it dumps has the pid 1.
inline bool is_first_of_pid_namespace(pid_t root) {
  return root == 1;
}

// Reads the processes of a checkpoint from its `pstree.img`, the root first.
// Errors: those of read_image() and image_messages().
Result<std::vector<ImageProcess>> read_pstree(const std::string& path);
Result<std::vector<ImageProcess>> parse_pstree(std::span<const std::byte> image,
                                               std::string_view name);

}  // namespace kymo::criu
