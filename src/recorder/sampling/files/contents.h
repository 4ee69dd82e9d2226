#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kymo/result.h"

namespace kymo {

// The contents of the whole file: the number of rows, and the time of the last.
struct Contents {
  std::uint64_t rows = 0;
  std::uint64_t last_ns = 0;
};
// `take` is called with the time of each row. Errors: those of reading.
Result<Contents> contents_of(const std::string& tsv,
                             const std::function<void(std::uint64_t)>& take = nullptr);

}  // namespace kymo
