#include "support/real_criu.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace kymo::test {
namespace {

std::string look() {
  if (geteuid() != 0) {
    return "checkpoints need root, and this is uid " + std::to_string(geteuid());
  }
  const std::string command = "'" + criu_path() + "' check 2>&1";
  FILE* pipe = popen(command.c_str(), "r");  // NOLINT(cert-env33-c): a test's own command
  if (pipe == nullptr) {
    return "cannot start a shell";
  }
  std::string said;
  for (std::array<char, 256> buffer{}; fgets(buffer.data(), buffer.size(), pipe) != nullptr;) {
    said = buffer.data();
  }
  return pclose(pipe) == 0 ? "" : "'" + criu_path() + " check' fails: " + said;
}

}  // namespace

std::string criu_path() {
  if (const char* given = std::getenv("KYMO_TEST_CRIU")) {
    return given;
  }
  const std::string installed = std::string(KYMO_SOURCE_DIR) + "/.deps/bin/criu";
  return access(installed.c_str(), X_OK) == 0 ? installed : "criu";
}

const std::string& why_no_criu() {
  static const std::string kWhy = look();
  return kWhy;
}

}  // namespace kymo::test
