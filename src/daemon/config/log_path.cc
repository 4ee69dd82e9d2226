#include "daemon/config/log_path.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/recording_name.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// The parts of the path that was asked for: its folder, NAME, and .tsv or another ending.
struct LogName {
  std::string folder;  // empty, or with a slash at its end
  std::string stem;
  std::string ending;
};

LogName take_apart(const std::string& asked) {
  const std::size_t folder_end = asked.rfind('/') + 1;  // npos + 1 is 0
  std::size_t stem_end = recording_stem(asked).size();
  if (stem_end == asked.size()) {
    stem_end = std::max(folder_end, std::min(asked.find('.', folder_end), asked.size()));
  }
  return {asked.substr(0, folder_end), asked.substr(folder_end, stem_end - folder_end),
          asked.substr(stem_end)};
}

// Removes `sign` and the number after it from the front of `text`. Returns nothing if `text` does
// not begin with them.
std::optional<std::uint64_t> take_number(std::string_view& text, char sign) {
  std::uint64_t number = 0;
  if (text.size() < 2 || text.front() != sign || text[1] == '0') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// One file of a recording whose path came from the path that was asked for.
struct LogFile {
  std::uint64_t run = 1;   // NAME is 1, NAME-2 is 2
  std::uint64_t part = 0;  // NAME.3 is 3
  bool holds_rows = false;
  std::string path;
};

std::optional<LogFile> as_log_file(const LogName& name, std::string_view file) {
  if (!file.starts_with(name.stem)) return std::nullopt;
  LogFile found;
  found.path = name.folder + std::string(file);
  file.remove_prefix(name.stem.size());
  found.run = take_number(file, '-').value_or(1);
  found.part = take_number(file, '.').value_or(0);
  found.holds_rows = file == name.ending;
  if (found.holds_rows || file == ".gaps.tsv" || file == ".meta.json") return found;
  return std::nullopt;
}

// The files of the recordings of this name, oldest first. If the folder cannot be read, the list is
// empty, and opening the recording fails later.
std::vector<LogFile> log_files(const LogName& name) {
  std::vector<LogFile> found;
  std::error_code error;
  const std::string folder = name.folder.empty() ? "." : name.folder;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename();
    if (std::optional<LogFile> one = as_log_file(name, file)) found.push_back(*std::move(one));
  }
  std::sort(found.begin(), found.end(), [](const LogFile& a, const LogFile& b) {
    return std::tie(a.run, a.part) < std::tie(b.run, b.part);
  });
  return found;
}

}  // namespace

std::string free_log_path(const std::string& asked) {
  const LogName name = take_apart(asked);
  const std::vector<LogFile> there = log_files(name);
  if (there.empty()) return asked;
  return name.folder + name.stem + "-" + std::to_string(there.back().run + 1) + name.ending;
}

std::vector<std::string> earlier_parts(const std::string& asked) {
  std::vector<std::string> parts;
  for (const LogFile& file : log_files(take_apart(asked))) {
    std::error_code error;
    // A file that kymod did not write has no metadata beside it.
    if (file.holds_rows && fs::exists(recording_stem(file.path) + ".meta.json", error)) {
      parts.push_back(file.path);
    }
  }
  return parts;
}

}  // namespace kymo::daemon
