#pragma once

#include <cstdint>
#include <vector>

#include "kymo/metric.h"

// The list of the counters of the process, for its counter file (kymo/counter_file.h).
namespace kymo::detail {

// Call list_counter() when a counter metric has got cells, which held `base_sums` then. Call
// withdraw_counter() when the metric gives them up.
// Threads: any; both take a mutex.
void list_counter(const Metric& metric, std::uint32_t first_cell,
                  const std::vector<std::uint64_t>& base_sums);
void withdraw_counter(std::uint32_t first_cell);

}  // namespace kymo::detail
