#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kymo::probe {

// Estimates how many bytes of memory a dump of the process and its descendants writes. Returns 0 if
// the process is gone.
//
// It adds up the anonymous memory of each process, resident or swapped out. (Copy-on-write pages
// that processes share are in the image of each.) It adds the shared memory of the process that has
// most of it, because CRIU writes shared memory once. Pages of mapped files that were not written
// to are in no image.
// Cost: reads one small file of /proc for each process; page tables are not walked.
std::uint64_t memory_to_dump(pid_t pid, const std::string& root = "/proc");

// The same from the texts of /proc/PID/status of all processes of the tree. `objects`: the bytes of all
// shared memory that they have, also of pages that none of them has touched yet.
std::uint64_t memory_to_dump(std::span<const std::string_view> statuses, std::uint64_t objects = 0);

// The memory in bytes that programs can still get without swap (MemAvailable). 0: not known.
std::uint64_t available_memory();

}  // namespace kymo::probe
