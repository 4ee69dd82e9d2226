#include "criu/log.h"

#include <deque>
#include <fstream>
#include <string_view>

namespace kymo::criu {
namespace {

constexpr std::streamoff kTail = 256 * 1024;
constexpr std::size_t kLines = 3;

// Said in every log, or by every failure: they explain nothing.
constexpr std::string_view kNoise[] = {
    "rlimit: Can't setup RLIMIT_NOFILE for self",
    "Dumping FAILED",
    "Restoring FAILED",
};

// At most the last kTail bytes; not good() where there are none.
std::ifstream open_at_tail(const std::string& log_path) {
  std::ifstream log(log_path, std::ios::binary);
  log.seekg(0, std::ios::end);
  const std::streamoff size = log.tellg();
  if (log && size >= 0) {
    log.seekg(size > kTail ? size - kTail : 0);
  }
  return log;
}

}  // namespace

bool is_noise(std::string_view line) {
  for (const std::string_view noise : kNoise) {
    if (line.find(noise) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

std::string last_errors(const std::string& log_path) {
  std::ifstream log = open_at_tail(log_path);
  std::deque<std::string> errors;
  for (std::string line; std::getline(log, line);) {
    const std::size_t at = line.find("Error (");
    if (at == std::string::npos || is_noise(line)) {
      continue;
    }
    errors.push_back(line.substr(at));
    if (errors.size() > kLines) {
      errors.pop_front();
    }
  }
  std::string joined;
  for (const std::string& line : errors) {
    joined += (joined.empty() ? "" : "; ") + line;
  }
  return joined;
}

}  // namespace kymo::criu
