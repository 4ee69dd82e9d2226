#pragma once

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs.h"

namespace kymo::test {

// The columns of a recording that change at least `times` times.
inline std::vector<std::string> columns_that_move(const std::string& recording, int times) {
  std::vector<std::string> moving;
  for (const auto& [name, values] : read_recording(recording)) {
    int changes = 0;
    for (std::size_t i = 1; i < values.size(); ++i) changes += values[i] == values[i - 1] ? 0 : 1;
    if (name != "Time (ns)" && changes >= times) moving.push_back(name);
  }
  return moving;
}

// Twenty, or fewer if the request was so short that kymod read the columns less than 400 times.
// Some columns change only once in ten readings.
inline int moves_of(const nlohmann::json& metadata) {
  return std::min(20, metadata["about"]["inside"]["readings"].get<int>() / 20);
}

// Prints how many columns change 20 times or more, for docs/phases.md.
inline void tell_moving(const std::string& what, const std::string& recording,
                        const nlohmann::json& metadata) {
  std::cout << what << ": " << columns_that_move(recording, 20).size()
            << " columns change 20 times or more, in " << metadata["about"]["inside"]["readings"]
            << " readings" << std::endl;
}

}  // namespace kymo::test
