#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace kymo::probe {

// About how many bytes of memory a dump of the process and its descendants writes: the anonymous
// memory of each, resident or swapped out (copies that processes share are in each one's image),
// and the shared memory of the one that has most of it (what processes share of that is written
// once). Of mapped files the pages that were not written are in no image. 0: it is gone.
//
// Cost: a small file of /proc a process; page tables are not walked.
std::uint64_t memory_to_dump(pid_t pid, const std::string& root = "/proc");

}  // namespace kymo::probe
