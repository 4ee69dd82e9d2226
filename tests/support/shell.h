#pragma once

#include <string>
#include <utility>

namespace kymo::test {

// What a shell command prints, and whether it succeeded.
std::pair<std::string, bool> shell(const std::string& command);

}  // namespace kymo::test
