#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "verbs.h"

namespace kymo::cli {

// Runs `look`, the part of a verb that reads files of unknown origin, in a process without rights
// (confine/run.h). It can only print, use the open files that it is given, and read these files and
// folders, those beside them, and /proc. `look` sets the verb's exit code in the context.
void look_confined(Context& context, const std::vector<std::string>& paths,
                   const std::function<void()>& look, const std::vector<int>& descriptors = {});

// Like look_confined(), for a verb that also makes texts, such as the content of a page. Returns
// `count` texts. One that was not made is empty.
std::vector<std::string> make_confined(
    Context& context, const std::vector<std::string>& paths, std::size_t count,
    const std::function<void(std::vector<std::string>& texts)>& make,
    const std::vector<int>& descriptors = {});

// The paths, and the recordings there with their companion files. The companions of a link may be
// elsewhere.
std::vector<std::string> with_recordings(const std::vector<std::string>& paths);

}  // namespace kymo::cli
