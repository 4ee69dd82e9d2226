#include "lens/analysis/find_recordings.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "lens/analysis/recording.h"
#include "lens/analysis/tsv_reader.h"

namespace kymo::analysis {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGapsEnding = ".gaps.tsv";
constexpr std::string_view kMetadataEnding = ".meta.json";

// The NAME of a companion file. Empty for any other file.
std::string companion_stem(const std::string& path) {
  for (const std::string_view ending : {kGapsEnding, kMetadataEnding}) {
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  }
  return {};
}

Error refuse_companion(const std::string& path) {
  std::error_code ignored;
  std::string recording = companion_stem(path) + std::string(kPlainEnding);
  const std::string compressed = companion_stem(path) + std::string(kCompressedEnding);
  if (!fs::exists(recording, ignored) && fs::exists(compressed, ignored)) recording = compressed;
  return Error{Code::invalid_argument,
               "read " + path + ": it is the " +
                   (path.ends_with(kGapsEnding) ? "list of gaps" : "metadata") + " of " +
                   recording + ", not a recording; give " + recording};
}

Result<std::vector<std::string>> list_folder(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (is_recording_name(name) && !is_companion(name) && it->is_regular_file(ignored)) {
      found.push_back(it->path().string());
    }
  }
  if (error) {
    return system_error("look for recordings in " + folder.string(), error.value());
  }
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return ::strverscmp(recording_stem(a).c_str(), recording_stem(b).c_str()) < 0;
  });
  return found;
}

std::string names_in(const std::vector<std::string>& recordings) {
  std::string names;
  for (const std::string& path : recordings) {
    names += (names.empty() ? "" : ", ") + fs::path(recording_stem(path)).filename().string();
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> find_recordings(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return system_error("look for a recording at " + path, ENOENT);
  }
  if (error) {
    return system_error("look for a recording at " + path, error.value());
  }
  if (!fs::is_directory(status)) {
    if (is_companion(path)) return refuse_companion(path);
    return std::vector<std::string>{path};
  }
  for (const fs::path& folder : {fs::path(path) / "recordings", fs::path(path)}) {
    if (!fs::is_directory(folder, error)) {
      continue;
    }
    auto found = list_folder(folder);
    if (!found || !found->empty()) {
      return found;
    }
  }
  return Error{Code::not_found, "look for recordings in " + path +
                                    ": no .tsv file there or in its folder recordings; give a "
                                    "recording or the directory of a checkpoint"};
}

bool is_companion(const std::string& path) {
  return !companion_stem(path).empty();
}

std::vector<std::string> without_companions(const std::vector<std::string>& paths) {
  std::set<std::string> stems;
  for (const std::string& path : paths) {
    if (is_recording_name(path) && !is_companion(path)) stems.insert(recording_stem(path));
  }
  // The first part of a recording may have been removed, and its companions not.
  const auto has_recording = [&](const std::string& stem) {
    const auto part = stems.lower_bound(stem + ".");
    return stems.contains(stem) || (part != stems.end() && part->starts_with(stem + "."));
  };
  std::vector<std::string> kept;
  for (const std::string& path : paths) {
    if (!is_companion(path) || !has_recording(companion_stem(path))) kept.push_back(path);
  }
  return kept;
}

Result<std::vector<std::string>> find_all_recordings(const std::vector<std::string>& paths) {
  std::vector<std::string> all;
  for (const std::string& path : without_companions(paths)) {
    auto found = find_recordings(path);
    if (!found) return found.error();
    all.insert(all.end(), found->begin(), found->end());
  }
  return all;
}

Result<std::vector<std::string>> recordings_to_compare(const std::string& path,
                                                       const std::string& name) {
  auto found = find_recordings(path);
  if (!found) return found.error();
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    // The file is read more than once, and opening a pipe would block.
    if (!fs::is_regular_file(path, ignored)) {
      return Error{Code::invalid_argument,
                   "compare " + path + ": it is neither a folder nor a regular file"};
    }
    if (auto opened = TsvReader::open(path); !opened) return opened.error();
    return found;
  }
  if (!fs::is_directory(fs::path(path) / "recordings", ignored)) return found;
  const std::string wanted = name.empty()              ? "dump"
                             : is_recording_name(name) ? recording_stem(name)
                                                       : name;
  for (const std::string& recording : *found) {
    if (fs::path(recording_stem(recording)).filename() == wanted) {
      return std::vector<std::string>{recording};
    }
  }
  if (name.empty()) return std::vector<std::string>{found->front()};
  return Error{Code::not_found, "look for the recording " + name + " in " + path +
                                    ": there is no such recording, only " + names_in(*found)};
}

}  // namespace kymo::analysis
