#pragma once

#include <string>

#include "base/process_identity.h"

namespace kymo::probe {

// With it, the pid and the start time, a process is identified for good.
using kymo::boot_id;

// Whether something that was noted together with the id of its boot is of an earlier one. Its processes are gone then,
// whatever has their pids and start times now. False if either id is not known.
bool is_of_earlier_boot(const std::string& noted);

}  // namespace kymo::probe
