#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "kymo/result.h"

namespace kymo::cli {

// What differs between two checkpoints, in two forms.
struct CheckpointPair {
  nlohmann::json json;  // with all differences
  std::string text;     // for a person, with at most as many differences as was asked for
};

// Compares what CRIU has left in two checkpoints. There are two implementations, as of verbs().
// Errors: those of reading them; unimplemented in a kymo without gRPC.
Result<CheckpointPair> compare_checkpoints(const std::string& before, const std::string& after,
                                           std::size_t rows);

}  // namespace kymo::cli
