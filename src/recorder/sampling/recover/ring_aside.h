#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo {

// Makes room for a new ring at `ring_path`. A ring that a killed recorder left there is renamed to
// RING.left-<n>, where n is the first free number, whoever owns the ring. Returns the new name;
// empty if nothing is there. Only the header and the lock of the ring are looked at.
// Errors: failed_precondition (in use), and those of a file that is not a complete ring.
Result<std::string> move_ring_aside(const std::string& ring_path);

}  // namespace kymo
