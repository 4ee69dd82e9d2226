#include "checkpoint/criu/drive/scratch_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

constexpr int kTries = 10;
constexpr std::string_view kUnique = "-XXXXXX";

fs::path temporary_files() {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  return error ? fs::path("/tmp") : folder;
}

// Opens and locks the folder. Returns nothing if it belongs to another user, is in use or is gone.
FileDescriptor take(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat held = {};
  struct stat named = {};
  const bool ours = fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 &&
                    ::fstat(fd.get(), &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
                    held.st_dev == named.st_dev && held.st_ino == named.st_ino &&
                    held.st_uid == ::geteuid();
  return ours ? std::move(fd) : FileDescriptor();
}

void remove_leftovers(const fs::path& folder, const std::string& purpose) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(purpose + "-") && name.size() == purpose.size() + kUnique.size()) {
      found.push_back(it->path().string());
    }
  }
  for (const std::string& path : found) {
    if (const FileDescriptor dead = take(path); dead.valid()) fs::remove_all(path, error);
  }
}

}  // namespace

Result<ScratchFolder> ScratchFolder::create(const std::string& purpose) {
  const fs::path folder = temporary_files();
  remove_leftovers(folder, purpose);
  for (int tries = 0; tries < kTries; ++tries) {
    std::string path = (folder / (purpose + std::string(kUnique))).string();
    if (::mkdtemp(path.data()) == nullptr) {
      return system_error("cannot make a temporary folder " + path, errno);
    }
    // Before the lock, another process may take the folder for a leftover and remove it: try again.
    if (FileDescriptor fd = take(path); fd.valid()) return ScratchFolder(path, std::move(fd));
  }
  return Error{Code::unavailable, "cannot keep a temporary folder in " + folder.string()};
}

ScratchFolder::~ScratchFolder() {
  if (!fd_.valid()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace kymo::criu
