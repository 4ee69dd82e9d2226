#pragma once

#include <string>

#include "daemon/config/config.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Checks a path that a request names, and returns the path to use instead: without `.` and `..`.
// With --allow-directory, links are resolved too, so that the path that was checked is the one that
// is used. The last parts of the path need not exist yet.
//
// Errors: invalid_argument: the path is not absolute, or contains a NUL.
//         permission_denied: the path leads, perhaps through links, out of the state directory and
//         the directories of --allow-directory.
//         The system's error if links cannot be resolved.
//         Each message begins with `tried`.
Result<std::string> allowed_path(const Config& config, const std::string& tried,
                                 const std::string& path);

// Refuses to write to a path at which kymod may look for a file of its own. In the state directory
// only what lies below `checkpoints` and `snapshots` is free for requests. Links are resolved, also
// in the path of the state directory.
// Errors: invalid_argument; the message begins with `tried`.
Result<void> refuse_own_files(const Config& config, const std::string& tried,
                              const std::string& path);

// Refuses a file that kymod is to make where another user could lead it elsewhere (check_place_of()).
// Errors: those of check_place_of(); unavailable: the disk does not answer. The message begins with `tried` and
//         the file.
Result<void> own_place(const std::string& tried, const std::string& file);

// Checks where the files of a folder of images lead. Images may leave out pages that their parent
// has. CRIU looks for the parent in `parent`, a link or a folder, and for the parent of the parent
// in `parent/parent`. So the function follows this chain, and checks each link in each folder.
// Checks nothing without --allow-directory.
//
// Errors: permission_denied: a file or a parent lies outside, as for allowed_path().
//         failed_precondition: there are too many parents, or they form a loop.
//         The system's error if a folder cannot be read.
Result<void> allowed_images(const Config& config, const std::string& tried,
                            const std::string& images);

// Makes a name that somebody else chose safe as one part of a path: visible ASCII characters, no
// `/`, and neither `.` nor `..`.
std::string as_file_name(const std::string& name);

}  // namespace kymo::daemon
