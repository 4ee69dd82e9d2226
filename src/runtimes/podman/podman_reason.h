#pragma once

#include <string>

namespace kymo::runtime {

// The reason that podman gave: the last line of its errors without "Error: ". If podman's message does not say what
// to do, and it is known, that follows.
// Threads: any.
std::string podman_reason(const std::string& errors);

}  // namespace kymo::runtime
