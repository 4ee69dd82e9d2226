#include "support/real_criu.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace kymo::test {
namespace {

// The last line that `CRIU VERB` prints, and whether it succeeded.
std::pair<std::string, bool> say(const std::string& criu, const std::string& verb) {
  const std::string command = "'" + criu + "' " + verb + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");  // NOLINT(cert-env33-c): a test's own command
  if (pipe == nullptr) {
    return {"cannot start a shell", false};
  }
  std::string said;
  for (std::array<char, 256> buffer{}; fgets(buffer.data(), buffer.size(), pipe) != nullptr;) {
    said = buffer.data();
  }
  return {said, pclose(pipe) == 0};
}

std::string why_it_fails(const std::string& criu) {
  if (geteuid() != 0) {
    return "checkpoints need root, and this is uid " + std::to_string(geteuid());
  }
  const auto [said, good] = say(criu, "check");
  return good ? "" : "'" + criu + " check' fails: " + said;
}

std::string look_at_fallback() {
  std::string why = why_it_fails(criu_fallback_path());
  const std::string version = say(criu_fallback_path(), "--version").first;
  if (why.empty() && version.find(" 3.") == std::string::npos &&
      version.find(" 4.0") == std::string::npos && version.find(" 4.1") == std::string::npos) {
    why = criu_fallback_path() + " is no CRIU before 4.2: " + version;
  }
  return why;
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
  static const std::string kWhy = why_it_fails(criu_path());
  return kWhy;
}

std::string criu_fallback_path() {
  if (const char* given = std::getenv("KYMO_TEST_CRIU_FALLBACK")) {
    return given;
  }
  return std::string(KYMO_SOURCE_DIR) + "/.deps/fallback/criu";
}

const std::string& why_no_fallback() {
  static const std::string kWhy = look_at_fallback();
  return kWhy;
}

bool has_criu_code(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find("CRIUMFD") != std::string::npos;
}

}  // namespace kymo::test
