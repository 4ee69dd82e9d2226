#pragma once

#include <cstddef>
#include <cstdint>

#include "kymo/profiler.h"
#include "kymo/result.h"

namespace kymo {

// Errors: invalid_argument with the option, its value and what is allowed.
Result<void> check_options(const ProfilerOptions& options);

// Errors: resource_exhausted if the ring would take more than max_ring_bytes.
Result<void> check_ring_bytes(const ProfilerOptions& options, std::size_t columns);

// The age at which a slot is handed over: `flush`, or the longest time below it of which what the
// sink wants is a multiple.
std::uint64_t flush_ns(const ProfilerOptions& options);

}  // namespace kymo
