#include "support/shell.h"

#include <array>
#include <cstdio>

namespace kymo::test {

std::pair<std::string, bool> shell(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");  // NOLINT(cert-env33-c): a test's own command
  if (pipe == nullptr) return {"", false};
  std::string said;
  std::array<char, 4096> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) said += buffer.data();
  return {said, pclose(pipe) == 0};
}

}  // namespace kymo::test
