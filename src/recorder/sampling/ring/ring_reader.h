#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "kymo/sink.h"
#include "recorder/sampling/ring/ring_memory.h"

namespace kymo {

// The rows of a slot that are not in the output yet.
struct LeftSlot {
  std::uint64_t sequence = 0;
  Rows rows;
};

// What a killed recorder left behind: the position before which the output is complete, and the
// slots whose rows it lacks, in the order of their rows (invariant 5 of sampling/ring/ring.h). The
// rows point into the ring.
struct LeftRows {
  OutputPosition accepted;
  std::vector<LeftSlot> slots;
  bool refused = false;  // the output has refused rows, and taken none since
};

// Reads what is left in a ring. Errors: invalid_argument if a word of the headers is damaged, so
// that it is not known which rows are left; the message names `path`.
Result<LeftRows> left_rows(const RingMemory& memory, const std::string& path);

// The newest committed rows of a ring, oldest first, one after the other (`stride` words each), at
// most `most` rows. Rows that the output has accepted are included, as long as their slots were not
// used again. It works on a ring in use: it takes no lock and disturbs nothing.
// Cost: copies the rows. A slot that is used again meanwhile is skipped.
std::vector<std::uint64_t> peek_rows(const RingMemory& memory, std::size_t most);

}  // namespace kymo
