#include "base/proc/memory_to_dump.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/proc/process.h"

namespace kymo::probe {
namespace {

constexpr std::uint64_t kKibibyte = 1024;

// The value of a line "KEY:   N kB" of /proc/PID/status in bytes; 0 if there is no such line.
std::uint64_t bytes_of(std::string_view status, std::string_view line_begin) {
  const std::size_t at = status.find(line_begin);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = status.substr(at + line_begin.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  std::uint64_t kibibytes = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kibibytes);
  return kibibytes * kKibibyte;
}

}  // namespace

std::uint64_t available_memory() {
  const Result<std::string> text = read_file("/proc/meminfo");
  return text ? bytes_of(*text, "\nMemAvailable:") : 0;
}

std::uint64_t memory_to_dump(std::span<const std::string_view> statuses, std::uint64_t objects) {
  std::uint64_t own = 0;
  std::uint64_t shared = objects;
  for (const std::string_view status : statuses) {
    own += bytes_of(status, "\nRssAnon:") + bytes_of(status, "\nVmSwap:");
    shared = std::max(shared, bytes_of(status, "\nRssShmem:"));
  }
  return own + shared;
}

std::uint64_t memory_to_dump(pid_t pid, const std::string& root) {
  std::vector<std::string> texts;
  for (const pid_t member : process_tree(pid, root)) {
    Result<std::string> status = read_file(root + "/" + std::to_string(member) + "/status");
    if (status) texts.push_back(std::move(status).value());
  }
  const std::vector<std::string_view> statuses(texts.begin(), texts.end());
  return memory_to_dump(std::span<const std::string_view>(statuses));
}

}  // namespace kymo::probe
