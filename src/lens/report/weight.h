#pragma once

#include <cstdint>
#include <string>

#include "profiler/stacks/profile.h"
#include "profiler/stacks/quantity.h"

// The weights of stacks as text.
namespace kymo::report {

// "12.3 ms", "1.20 MiB", "1,234".
std::string value_text(stacks::Quantity quantity, std::uint64_t value);

// The sum of a profile: "12.3 ms of CPU time in 12 samples of 10 s". A duration of 0, or a
// value of 0 beside samples, is not known.
std::string weight_sentence(stacks::Quantity quantity, const stacks::Weight& sum,
                            std::uint64_t duration_ns);

}  // namespace kymo::report
