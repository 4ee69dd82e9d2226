#pragma once

#include <string>

#include "targets.h"

namespace kymo::fuzz {

struct RingBytes {
  std::string ring;
  std::string rest;  // the bytes behind it
};

// The bytes as a ring whose header fits them, small, the rest of it as they say; a ring is left as
// it is.
RingBytes mend_ring(Bytes data);

}  // namespace kymo::fuzz
