#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace kymo::report {

// What a recording's metadata say it is about, for people: plain values on a line `about`, lists
// and objects on lines of their own, values scaled by the unit in their key's name
// (`frozen_time_us`). Whatever is in `about`, which anybody may have written: empty for no object,
// never fails.
std::string about_lines(const nlohmann::json& about, std::size_t label_width,
                        std::size_t line_width);

// "LABEL       a, b, c\n", broken between items so that no line is longer than it has to be.
std::string wrapped_list(const std::string& label, const std::vector<std::string>& items,
                         std::size_t label_width, std::size_t line_width);

}  // namespace kymo::report
