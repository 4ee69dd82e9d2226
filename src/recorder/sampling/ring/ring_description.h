#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "recorder/sampling/ring/ring_memory.h"

namespace kymo {

// The description in a ring file (describe_ring() of sampling/files/metadata.h), checked.
struct RingDescription {  // NOLINT(bugprone-exception-escape): moving its json does not throw
  struct Column {
    std::string name;
    bool counter = true;
    std::string unit;
  };
  std::shared_ptr<const nlohmann::json> recording;  // an object, as in NAME.meta.json
  std::vector<Column> columns;                      // as many as a row has values
  std::string output;                               // empty: the recorder wrote no file
};

// Reads the description of a ring. Errors: invalid_argument if it is damaged; the message names
// `path`.
Result<RingDescription> describe(const RingMemory& ring, const std::string& path);

}  // namespace kymo
