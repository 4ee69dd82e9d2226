#include "criu/log.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <string_view>

#include "base/patience.h"

namespace kymo::criu {
namespace {

constexpr std::streamoff kTail = 256 * 1024;
constexpr std::size_t kLines = 3;
constexpr std::string_view kNoSpace = "No space left on device";

// Every run, or every failed run, writes these lines. They explain nothing.
constexpr std::string_view kNoise[] = {
    "rlimit: Can't setup RLIMIT_NOFILE for self",
    "Dumping FAILED",
    "Restoring FAILED",
};

// Opens the log at its last kTail bytes. The stream is not good() if this fails.
std::ifstream open_at_tail(const std::string& log_path) {
  std::ifstream log(log_path, std::ios::binary);
  log.seekg(0, std::ios::end);
  const std::streamoff size = log.tellg();
  if (log && size >= 0) {
    log.seekg(size > kTail ? size - kTail : 0);
  }
  return log;
}

// The TEXT of "Error (FILE:LINE): TEXT". CRIU often reports the same failure from several places.
std::string_view text_of(std::string_view error) {
  const std::size_t place_end = error.find("): ");
  return place_end == std::string_view::npos ? error : error.substr(place_end + 3);
}

// Whether the log is empty or ends in the middle of a line, and its disk has no space left.
bool is_cut_by_full_disk(const std::string& log_path) {
  std::ifstream log(log_path, std::ios::binary | std::ios::ate);
  if (!log) return false;
  if (log.tellg() > 0) {
    log.seekg(-1, std::ios::end);
    if (log.get() == '\n') return false;
  }
  struct statvfs disk {};
  return statvfs(log_path.c_str(), &disk) == 0 && disk.f_bavail == 0;
}

std::string read_last_errors(const std::string& log_path) {
  std::ifstream log = open_at_tail(log_path);
  std::deque<std::string> errors;
  for (std::string line; std::getline(log, line);) {
    const std::size_t at = line.find("Error (");
    if (at == std::string::npos || is_noise(line)) {
      continue;
    }
    const std::string error = line.substr(at);
    const auto same = std::find_if(errors.begin(), errors.end(), [&](const std::string& earlier) {
      return text_of(earlier) == text_of(error);
    });
    if (same != errors.end()) errors.erase(same);
    errors.push_back(error);
    if (errors.size() > kLines) {
      errors.pop_front();
    }
  }
  std::string joined;
  for (const std::string& line : errors) {
    joined += (joined.empty() ? "" : "; ") + line;
  }
  if (joined.find(kNoSpace) == std::string::npos && is_cut_by_full_disk(log_path)) {
    joined += (joined.empty() ? "" : "; ") + std::string(kNoSpace);
  }
  return joined;
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
  return within(kDiskPatience, [log_path] { return read_last_errors(log_path); }).value_or("");
}

}  // namespace kymo::criu
