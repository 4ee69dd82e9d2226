#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "profiler/stacks/output.h"
#include "profiler/stacks/source.h"

// What kymo profile prints of a profile.
namespace kymo::cli {

// What the table says of a profile beside its stacks.
struct Taken {
  stacks::Quantity quantity = stacks::Quantity::cpu;
  std::uint64_t period_ns = 0;
  std::uint64_t duration_ns = 0;
  std::uint64_t cpu_ns = 0;                    // of kymo itself
  std::optional<stacks::SourceCounts> counts;  // a file does not have them
};

// The order of the functions, as `--sort` says: "self", "total", or empty.
stacks::Order order_of(const std::string& sort, stacks::Quantity quantity);

// The sums of a profile, and what is missing in it.
std::string profile_summary(const Taken& profile, const stacks::Hottest& hottest);

// A table of the first functions; empty if there are none.
std::string profile_table(stacks::Quantity quantity, const stacks::Hottest& hottest,
                          std::size_t rows);

// Both, as JSON. The names of values end in their unit: "self_ns", "self_bytes".
nlohmann::ordered_json profile_json(const Taken& profile, const stacks::Hottest& hottest,
                                    std::size_t rows);

}  // namespace kymo::cli
