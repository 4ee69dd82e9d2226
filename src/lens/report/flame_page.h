#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "kymo/result.h"
#include "profiler/stacks/frame_tree.h"

namespace kymo::report {

// Adds a tree as the scripts of the pages read it: the members kind, unit, what,
// counted, scale, modules, functions and tree.
void add_tree(const stacks::FrameTree& tree, nlohmann::ordered_json& json);

// The data of a page with a flame graph, for flame_page(). `about` is what `kymo profile --json`
// says, and a `title`.
std::string flame_data(nlohmann::ordered_json about, const stacks::FrameTree& tree);

// Makes the page of such data, which may come from a process without rights.
// Errors: unimplemented if the pages are not built in; data_loss: it is no such data.
Result<std::string> flame_page(std::string_view data);

}  // namespace kymo::report
