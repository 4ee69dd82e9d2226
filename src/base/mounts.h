#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo {

// A word of mountinfo without its escapes, such as "\040" for a space (proc(5)).
std::string unescaped(const std::string& word);

// Detaches every mount of this mount namespace whose mount point begins with `prefix`, the newest
// first. Pass "FOLDER/" for all mounts below a folder. A mount that cannot be detached stays.
// Errors: the list of mounts cannot be read.
// Cost:   one read of /proc/self/mountinfo.
Result<void> detach_mounts(std::string_view prefix);

// The mount points of this mount namespace whose path ends with `ending`, in the order of
// mountinfo. Empty if the list cannot be read.
std::vector<std::string> mount_points_that_end(std::string_view ending);

// The id of the mount through which a file was opened, as in mountinfo. Empty if /proc does not say
// it. Asks no file system.
std::string mount_of(int fd);

// The user whose program serves a file system in user space (FUSE). It can give each file any
// owner, mode and content at any time. Nothing for another file system.
std::optional<uid_t> fuse_user(const std::string& mount_id);

// The disk on which a file of this path lies or would lie, by the type and the source of its mount,
// such as "ext4 /dev/sda1". It is the same after a reboot. Empty if it is not known.
// Cost: opens the nearest folder that exists, whose disk may not answer; reads mountinfo.
std::string disk_of(const std::string& path);

}  // namespace kymo
