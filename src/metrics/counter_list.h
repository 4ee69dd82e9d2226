#pragma once

#include <cstdint>
#include <vector>

#include "kymo/metric.h"

// What counters the process has, for its counter file (kymo/counter_file.h).
namespace kymo::detail {

// A counter metric has got cells, which held `base_sums`; it has given them up.
// Threads: any; takes a mutex.
void list_counter(const Metric& metric, std::uint32_t first_cell,
                  const std::vector<std::uint64_t>& base_sums);
void withdraw_counter(std::uint32_t first_cell);

}  // namespace kymo::detail
