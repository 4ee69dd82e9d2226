#include "daemon/state/history_owner.h"

#include <algorithm>
#include <cstddef>

namespace kymo::daemon {
namespace {

constexpr std::size_t kMaxCommandLength = 1000;

}  // namespace

std::string owner_of_job(const std::string& name) {
  return std::string(kJobOwner) + name;
}

std::string owner_of_container(runtime::Kind kind, const std::string& name) {
  return std::string(runtime::name_of(kind)) + ":" + name;
}

std::string owner_of_program(const std::vector<std::string>& command, const std::string& name) {
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
  if (line.empty()) line = name;
  line.resize(std::min(line.size(), kMaxCommandLength));
  return std::string(kProgramOwner) + line;
}

}  // namespace kymo::daemon
