#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "base/file.h"
#include "kymo/result.h"

// Opens files in a folder that somebody else may have filled, such as a checkpoint. The folder
// itself may be reached through links, because its user named it. `name` is relative to it. No part
// of `name` may be a link or lead out of the folder.
namespace kymo {

// `flags` and `mode`: as for open(2). Never waits for the other end of a pipe.
// Errors: permission_denied: a part of the name is a link; invalid_argument: it is no regular file,
//         and O_DIRECTORY is not among the flags; those of openat2(2).
Result<FileDescriptor> open_beneath(const std::string& folder, const std::string& name, int flags,
                                    mode_t mode = 0);

// Like open_beneath(), for a kernel without openat2(2) (before Linux 5.6) and for processes that
// may not call it.
Result<FileDescriptor> open_beneath_by_parts(const std::string& folder, const std::string& name,
                                             int flags, mode_t mode = 0);

// Reads a small regular file.
// Errors: those of open_beneath() and of reading; invalid_argument: it is no regular file;
//         data_loss: it has more than `most` bytes.
Result<std::string> read_beneath(const std::string& folder, const std::string& name,
                                 std::size_t most = std::size_t{64} << 20U);

// Open or read the file at `path`. A link in place of the file itself is not followed. Links to its
// folder are.
// Errors: those of open_beneath() and read_beneath().
Result<FileDescriptor> open_no_link(const std::string& path, int flags);
Result<std::string> read_no_link(const std::string& path,
                                 std::size_t most = std::size_t{64} << 20U);

}  // namespace kymo
