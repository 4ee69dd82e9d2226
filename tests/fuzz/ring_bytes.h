#pragma once

#include <string>

#include "targets.h"

namespace kymo::fuzz {

struct RingBytes {
  std::string ring;
  std::string rest;  // the bytes after the ring
};

// Makes a small ring of the bytes: the header gets values that fit, the rest stays. A valid ring is
// not changed.
RingBytes mend_ring(Bytes data);

}  // namespace kymo::fuzz
