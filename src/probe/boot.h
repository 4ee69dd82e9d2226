#pragma once

#include <string>

namespace kymo::probe {

// The kernel's id of the present boot, which is the same in all containers. With it, the pid and the start time, a
// process is identified for good. Empty if it cannot be read.
std::string boot_id();

// Whether something that was noted together with the id of its boot is of an earlier one. Its processes are gone then,
// whatever has their pids and start times now. False if either id is not known.
bool is_of_earlier_boot(const std::string& noted);

}  // namespace kymo::probe
