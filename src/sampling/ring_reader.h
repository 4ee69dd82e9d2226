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

// The newest committed rows of a ring, oldest first, one after the other (`stride` words each), at
// most `most`; those that the output has accepted included, as long as their slots were not used
// again. For a ring in use: takes no lock and disturbs nobody.
// Cost: copies the rows; a slot that is used again meanwhile is passed over.
std::vector<std::uint64_t> peek_rows(const RingMemory& memory, std::size_t most);

}  // namespace kymo
