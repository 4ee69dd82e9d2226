#pragma once

#include <cstdint>
#include <vector>

#include "kymo/sink.h"
#include "sampling/ring_memory.h"

namespace kymo {

// The rows of a slot that are not in the output yet.
struct LeftSlot {
  std::uint64_t sequence = 0;
  Rows rows;
};

// The slots of a ring, left behind by a killed recorder, whose rows its output lacks, in the order
// of their rows (invariant 6 of sampling/ring.h). Rows point into `memory`.
std::vector<LeftSlot> left_slots(const RingMemory& memory);

}  // namespace kymo
