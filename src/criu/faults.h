#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kymo::criu {

// What is told of one checkpoint: damaged images can have a fault for each of their bytes.
inline constexpr std::size_t kMostFaults = 100;

// Adds a fault, a line; beyond kMostFaults only, once, that there are more.
inline void add_fault(std::vector<std::string>& faults, std::string fault) {
  if (faults.size() < kMostFaults) {
    faults.push_back(std::move(fault));
  } else if (faults.size() == kMostFaults) {
    faults.emplace_back("and more");
  }
}

}  // namespace kymo::criu
