#include "checkpoint/criu/drive/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/beneath.h"
#include "base/patience.h"
#include "checkpoint/failures/explain.h"

namespace kymo::criu {
namespace {

constexpr off_t kTail = 256 * 1024;
constexpr std::size_t kLines = 3;
constexpr std::string_view kNoSpace = "No space left on device";

// Every run, or every failed run, writes these lines. They explain nothing.
constexpr std::string_view kNoise[] = {
    "rlimit: Can't setup RLIMIT_NOFILE for self",
    "Dumping FAILED",
    "Restoring FAILED",
};

bool is_noise(std::string_view line) {
  for (const std::string_view noise : kNoise) {
    if (line.find(noise) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

struct LogEnd {
  std::string text;        // the last kTail bytes
  bool disk_full = false;  // nothing can be written to its disk
};

// Returns nothing if the log cannot be read, or if it is no regular file.
std::optional<LogEnd> end_of_log(const std::string& log_path) {
  const Result<FileDescriptor> log = open_no_link(log_path, O_RDONLY);
  struct stat info {};
  if (!log || ::fstat(log->get(), &info) != 0) return std::nullopt;
  LogEnd end;
  end.text.resize(static_cast<std::size_t>(std::min(info.st_size, kTail)));
  std::size_t filled = 0;
  while (filled < end.text.size()) {
    const off_t at = info.st_size - static_cast<off_t>(end.text.size() - filled);
    const ssize_t n = ::pread(log->get(), end.text.data() + filled, end.text.size() - filled, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    filled += static_cast<std::size_t>(n);
  }
  end.text.resize(filled);
  struct statvfs disk {};
  end.disk_full = ::fstatvfs(log->get(), &disk) == 0 && disk.f_bavail == 0;
  return end;
}

// The TEXT of "Error (FILE:LINE): TEXT". CRIU often reports the same failure from several places.
std::string_view text_of(std::string_view error) {
  const std::size_t place_end = error.find("): ");
  return place_end == std::string_view::npos ? error : error.substr(place_end + 3);
}

// Whether the log is empty or ends in the middle of a line, and its disk has no space left.
bool is_cut_by_full_disk(const LogEnd& end) {
  return end.disk_full && !end.text.ends_with('\n');
}

std::string read_last_errors(const std::string& log_path) {
  const std::optional<LogEnd> end = end_of_log(log_path);
  if (!end) return {};
  std::istringstream log(end->text);
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
  if (joined.find(kNoSpace) == std::string::npos && is_cut_by_full_disk(*end)) {
    joined += (joined.empty() ? "" : "; ") + std::string(kNoSpace);
  }
  return joined;
}

std::string read_cause(const std::string& log_path, const std::string& full_disk,
                       bool out_of_memory) {
  const std::optional<LogEnd> end = end_of_log(log_path);
  failures::Root root = end ? failures::root_of_log(log_path) : failures::Root();
  root.full_disk = full_disk;
  root.out_of_memory = out_of_memory;
  if (full_disk.empty() && root.finished && !root.failed) return {};  // what failed was not CRIU
  const bool says_full = root.line.find(kNoSpace) != std::string::npos;
  if (full_disk.empty() && end && !says_full && is_cut_by_full_disk(*end)) root.line = kNoSpace;
  if (root.line.empty() && full_disk.empty() && !out_of_memory) return {};
  return failures::one_line(failures::explain(root));
}

}  // namespace

std::string last_errors(const std::string& log_path) {
  return within(kDiskPatience, [log_path] { return read_last_errors(log_path); }).value_or("");
}

std::string cause_in(const std::string& log_path, const std::string& full_disk,
                     bool out_of_memory) {
  const auto cause = within(kDiskPatience, [log_path, full_disk, out_of_memory] {
    return read_cause(log_path, full_disk, out_of_memory);
  });
  return cause.value_or("");
}

}  // namespace kymo::criu
