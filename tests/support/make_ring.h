#pragma once

#include <memory>

#include "recorder/sampling/ring/ring.h"

namespace kymo {

// Makes a ring in private memory.
inline std::unique_ptr<Ring> make_ring(std::size_t slots, std::size_t rows, std::size_t columns) {
  return std::make_unique<Ring>(RingMemory::create_private({slots, rows, columns + 1}).value());
}

}  // namespace kymo
