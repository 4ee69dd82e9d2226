#pragma once

#include <string>
#include <utility>

namespace kymo::test {

// Returns the output of a shell command, and whether it succeeded.
std::pair<std::string, bool> shell(const std::string& command);

}  // namespace kymo::test
