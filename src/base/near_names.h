#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kymo {

// The candidates a person may have meant by `name`: those within a third of its length in edits
// (Levenshtein), and those that contain it; nearest first, at most `most`.
std::vector<std::string> near_names(std::string_view name,
                                    const std::vector<std::string>& candidates,
                                    std::size_t most = 5);

// "; did you mean a, b or c?", or nothing where no candidate is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace kymo
