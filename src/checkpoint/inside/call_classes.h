#pragma once

#include <array>
#include <cstdint>

#include "checkpoint/inside/bpf_wire.h"

namespace kymo::inside {

// A class of system calls, by what CRIU does with them.
struct CallClass {
  const char* name;   // in names of columns
  const char* shown;  // in texts: "calls that ..."
  kymo_off off;       // why a thread waits that waits in such a call, and not for a disk
};

// In the order of kymo_call.
extern const std::array<CallClass, KYMO_CALLS> kCallClasses;

// The names of kymo_off, in its order, in names of columns.
extern const std::array<const char*, KYMO_OFFS> kOffNames;

// The class of each system call of x86-64 by its number, perhaps with KYMO_HAS_BYTES.
std::array<std::uint8_t, KYMO_CALL_NUMBERS> call_classes();

}  // namespace kymo::inside
