#include "checkpoint/runtimes/shared/scratch.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "checkpoint/runtimes/shared/memory_images.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

bool is_writable_memory(const char* folder) {
  struct statfs about {};
  return ::statfs(folder, &about) == 0 && about.f_type == TMPFS_MAGIC &&
         ::access(folder, W_OK | X_OK) == 0;
}

void move_all(const fs::path& from, const fs::path& to) {
  std::error_code error;
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code failed;
    if (!entry->is_regular_file(failed)) {
      fs::remove(entry->path(), failed);  // the socket of an image streamer that was killed
      continue;
    }
    fs::copy_file(entry->path(), to / entry->path().filename(),
                  fs::copy_options::overwrite_existing, failed);
    if (!failed || failed == std::errc::no_such_file_or_directory) {
      fs::remove(entry->path(), failed);
    }
  }
  fs::remove(from, error);  // stays if a file stays
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  if (from.empty()) return;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// Makes the directories in memory and returns the spec of a dump that uses them. Adds to `trouble` what
// could not be made.
DumpSpec make_places(const DumpSpec& spec, std::vector<std::string>& trouble) {
  DumpSpec there = spec;
  if (!spec.scratch_dir.empty()) {
    if (const Result<void> made = make_scratch(spec.scratch_dir); made) {
      there.work_dir = spec.scratch_dir;
      there.final_work_dir = spec.work_dir;
    } else {
      trouble.push_back("CRIU's log could not be written in memory: " + made.error().message);
    }
  }
  if (!spec.memory_images.empty()) {
    if (const Result<void> made = make_memory_images(spec.memory_images); made) {
      there.images_dir = spec.memory_images;
      there.held = nullptr;
    } else {
      trouble.push_back("the images could not be written in memory: " + made.error().message);
    }
  }
  return there;
}

// Files that are in memory now are named by their later paths.
void name_later_paths(const DumpSpec& spec, std::string& text) {
  replace_all(text, spec.scratch_dir, spec.work_dir);
  replace_all(text, spec.memory_images, spec.images_dir);
}

}  // namespace

const std::vector<std::string>& scratch_bases() {
  static const std::vector<std::string> kBases = [] {
    std::vector<std::string> bases;
    for (const char* const folder : {"/run", "/dev/shm"}) {
      if (!is_writable_memory(folder)) continue;
      bases.push_back(std::string(folder) + "/kymod-" + std::to_string(::geteuid()));
    }
    return bases;
  }();
  return kBases;
}

Result<void> make_scratch(const std::string& path) {
  const std::string base = fs::path(path).parent_path();
  struct stat info {};
  if (::mkdir(base.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error("make the folder " + base, errno);
  }
  if (::lstat(base.c_str(), &info) != 0) return system_error("look at " + base, errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) {
    return Error{Code::permission_denied, base + " is not a folder of this user: remove it"};
  }
  if (::mkdir(path.c_str(), 0700) != 0) return system_error("make the folder " + path, errno);
  return {};
}

std::string scratch_path(const std::string& name) {
  return scratch_bases().empty() ? "" : scratch_bases().front() + "/" + name;
}

std::vector<std::string> scratch_names() {
  std::set<std::string> names;
  for (const std::string& base : scratch_bases()) {
    std::error_code error;
    for (fs::directory_iterator entry(base, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename();
      names.insert(name.starts_with(kImagesPrefix) ? name.substr(kImagesPrefix.size()) : name);
    }
  }
  return {names.begin(), names.end()};
}

Result<DumpOutcome> in_scratch(const DumpSpec& spec,
                               const std::function<Result<DumpOutcome>(const DumpSpec&)>& dump) {
  std::vector<std::string> trouble;
  Result<DumpOutcome> outcome = dump(make_places(spec, trouble));
  if (!outcome) {
    Error error = outcome.error();
    name_later_paths(spec, error.message);
    return error;
  }
  if (outcome->failure) name_later_paths(spec, outcome->failure->error.message);
  for (std::string& warning : outcome->warnings) name_later_paths(spec, warning);
  outcome->warnings.insert(outcome->warnings.end(), trouble.begin(), trouble.end());
  return outcome;
}

DumpSpec as_dumped(const DumpSpec& spec) {
  DumpSpec there = spec;
  if (!spec.memory_images.empty()) there.images_dir = spec.memory_images;
  return there;
}

std::vector<std::string> in_work_dirs(const DumpSpec& spec, const std::string& name) {
  std::vector<std::string> paths;
  for (const std::string& folder : {spec.scratch_dir, spec.work_dir}) {
    if (!folder.empty()) paths.push_back(folder + name);
  }
  return paths;
}

bool is_part_in_scratch(const DumpSpec& spec) {
  std::error_code error;
  return !spec.scratch_dir.empty() && fs::exists(spec.scratch_dir + kSharedMemory, error);
}

void keep_scratch(const std::string& scratch_dir, const std::string& work_dir) {
  move_all(scratch_dir, work_dir);
}

void drop_scratch(const std::string& name) {
  const std::string path = scratch_path(name);
  if (name.empty() || path.empty()) return;
  std::error_code error;
  fs::remove_all(path, error);
}

}  // namespace kymo::runtime
