#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kymo::criu {

// The most faults that are reported for one checkpoint. Damaged images can have a fault for each of
// their bytes.
inline constexpr std::size_t kMaxFaults = 100;

// Adds a fault, which is one line. If there are kMaxFaults already, it adds "and more" once.
inline void add_fault(std::vector<std::string>& faults, std::string fault) {
  if (faults.size() < kMaxFaults) {
    faults.push_back(std::move(fault));
  } else if (faults.size() == kMaxFaults) {
    faults.emplace_back("and more");
  }
}

}  // namespace kymo::criu
