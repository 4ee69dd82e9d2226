#pragma once

#include <string>

namespace kymo::probe {

// The kernel's id of the present boot, which is the same in all containers. With it, the pid and the start time, a
// process is identified for good. Empty if it cannot be read.
std::string boot_id();

}  // namespace kymo::probe
