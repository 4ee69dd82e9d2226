#include "runtime/scratch.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/patience.h"
#include "runtime/aftermath.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

bool is_writable_memory(const char* folder) {
  struct statfs about {};
  return ::statfs(folder, &about) == 0 && about.f_type == TMPFS_MAGIC &&
         ::access(folder, W_OK | X_OK) == 0;
}

// The folder of all scratch directories of this user.
std::string scratch_base() {
  for (const char* const folder : {"/run", "/dev/shm"}) {
    if (is_writable_memory(folder)) {
      return std::string(folder) + "/kymod-" + std::to_string(::geteuid());
    }
  }
  return {};
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
    if (!failed) fs::remove(entry->path(), failed);
  }
  fs::remove(from, error);  // stays if a file stays
}

// Makes the directory with mode 0700, and the folder above it.
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

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::string scratch_path(const std::string& name) {
  static const std::string kBase = scratch_base();
  return kBase.empty() ? "" : kBase + "/" + name;
}

Result<DumpOutcome> in_scratch(const DumpSpec& spec,
                               const std::function<Result<DumpOutcome>(const DumpSpec&)>& dump) {
  if (spec.scratch_dir.empty()) return dump(spec);
  if (Result<void> made = make_scratch(spec.scratch_dir); !made) {
    Result<DumpOutcome> outcome = dump(spec);
    if (outcome) {
      outcome->warnings.push_back("CRIU's log could not be written in memory: " +
                                  made.error().message);
    }
    return outcome;
  }
  DumpSpec there = spec;
  there.work_dir = spec.scratch_dir;
  Result<DumpOutcome> outcome = dump(there);
  const bool silent = is_being_cleared(spec.images_dir) || (outcome && outcome->unconfirmed);
  keep_scratch(spec, silent ? std::chrono::milliseconds(0) : kDiskPatience);
  const auto rename = [&](std::string& text) {
    replace_all(text, spec.scratch_dir, spec.work_dir);
  };
  if (!outcome) {
    Error error = outcome.error();
    rename(error.message);
    return error;
  }
  if (outcome->unconfirmed) rename(outcome->unconfirmed->message);
  for (std::string& warning : outcome->warnings) rename(warning);
  return outcome;
}

std::vector<std::string> in_work_dirs(const DumpSpec& spec, const std::string& name) {
  std::vector<std::string> paths;
  for (const std::string& folder : {spec.scratch_dir, spec.work_dir}) {
    if (!folder.empty()) paths.push_back(folder + name);
  }
  return paths;
}

void keep_scratch(const DumpSpec& spec, std::chrono::milliseconds patience) {
  if (spec.scratch_dir.empty() || spec.work_dir.empty()) return;
  static_cast<void>(within(patience, [from = spec.scratch_dir, to = spec.work_dir] {
    move_all(from, to);
    return true;
  }));
}

}  // namespace kymo::runtime
