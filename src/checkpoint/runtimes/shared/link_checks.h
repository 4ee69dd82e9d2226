#pragma once

#include <string>

namespace kymo::runtime {

// The first part of this absolute path that is a symbolic link which neither root nor this user has made. Empty: none, or
// the path does not exist.
//
// A dump has the paths of files without symbolic links, so a link in one of them was made later. CRIU opens the files of a
// restored process with all rights: whoever puts a link in the place of a file of his own process would get another file
// with that.
// Threads: any. The owner of a folder can still change it after this check.
// Cost:    a system call for each part of the path.
std::string link_of_another_user(const std::string& path);

}  // namespace kymo::runtime
