#pragma once

#include <string>
#include <string_view>

namespace kymo::criu {

// Notes the name that the kernel showed for the process of a CRIU that has done its work. Such a name says what the
// process runs even when it is ending, and its program and arguments can no longer be seen. It is the file's name, or,
// if a script or a loader starts CRIU, the name of what that has started, such as "ld-linux-x86-64".
// Threads: any.
void note_name_of_criu(const std::string& name);

// Whether a process of this name is taken for a CRIU: the name was noted, or it begins with "criu".
// Threads: any.
bool is_name_of_criu(std::string_view name);

}  // namespace kymo::criu
