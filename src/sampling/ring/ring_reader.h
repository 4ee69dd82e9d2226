#pragma once

#include <cstdint>
#include <vector>

#include "kymo/sink.h"
#include "sampling/ring/ring_memory.h"

namespace kymo {

// The rows of a slot that are not in the output yet.
struct LeftSlot {
  std::uint64_t sequence = 0;
  Rows rows;
};

// The slots whose rows the output lacks, in a ring that a killed recorder left behind. They are in
// the order of their rows (invariant 5 of sampling/ring/ring.h). The rows point into `memory`.
std::vector<LeftSlot> left_slots(const RingMemory& memory);

// The newest committed rows of a ring, oldest first, one after the other (`stride` words each), at
// most `most` rows. Rows that the output has accepted are included, as long as their slots were not
// used again. It works on a ring in use: it takes no lock and disturbs nothing.
// Cost: copies the rows. A slot that is used again meanwhile is skipped.
std::vector<std::uint64_t> peek_rows(const RingMemory& memory, std::size_t most);

}  // namespace kymo
