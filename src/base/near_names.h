#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kymo {

// Returns the candidates that the user may have meant by `name`, the nearest first, at most `most`.
// These are candidates at a Levenshtein distance of at most a third of the length of `name` (at
// least 1), and, if `name` has three characters or more, candidates that contain it.
std::vector<std::string> near_names(std::string_view name,
                                    const std::vector<std::string>& candidates,
                                    std::size_t most = 5);

// Returns "; did you mean a, b or c?", or an empty text if no candidate is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace kymo
