#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace kymo::report {

// Shows the member `about` of a recording's metadata to a person: plain values on a line `about`,
// each list and object on a line of its own. Values are scaled by the unit in their key's name
// (`frozen_time_us`). Returns an empty string if `about` is not an object.
//
// Errors: none, with any content: `about` may come from an untrusted source.
std::string about_lines(const nlohmann::json& about, std::size_t label_width,
                        std::size_t line_width);

// "LABEL       a, b, c\n", broken between items at `line_width`. Only a single item that is too
// long makes a longer line.
std::string wrapped_list(const std::string& label, const std::vector<std::string>& items,
                         std::size_t label_width, std::size_t line_width);

}  // namespace kymo::report
