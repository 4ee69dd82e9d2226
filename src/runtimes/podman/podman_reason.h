#pragma once

#include <cstdint>
#include <string>

namespace kymo::runtime {

// The reason that podman gave: the last line of its errors without "Error: ". If podman's message does not say what
// to do, and it is known, that follows.
// Threads: any.
std::string podman_reason(const std::string& errors);

// A time of the first container, by the output of podman's --print-stats, such as "runtime_checkpoint_duration". 0: it says
// none.
std::uint64_t runtime_time_ns(const std::string& output, const char* name);

}  // namespace kymo::runtime
