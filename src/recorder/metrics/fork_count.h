#pragma once

#include <cstdint>

namespace kymo {

// How often this process and its ancestors have forked to become it: another number than in the
// parent, whose threads this process does not have. (A child of vfork() or of the bare system call
// has the parent's.)
//
// Threads: any.
// Cost:    one load.
std::uint64_t fork_count() noexcept;

}  // namespace kymo
