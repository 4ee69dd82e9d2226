#include "checkpoint/runtimes/shared/restore_lock.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdint>

#include "base/fnv.h"

namespace kymo::runtime {
namespace {

// Where the byte of a name is. All versions of kymod must find the same byte. 62 bits, as an offset must not be negative, nor
// the end of its range.
off_t byte_of(const std::string& name) {
  return static_cast<off_t>(fnv1a(name) >> 2U);
}

const std::string kImages = "images in ";

// Locks the bytes of all names or none. `why`: the error if the lock of a name is held.
template <class Why>
Result<FileDescriptor> lock_all(const std::vector<std::string>& names, short type,
                                const std::string& file, const Why& why) {
  FileDescriptor locks(
      ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!locks.valid()) return locks;
  for (const std::string& name : names) {
    struct flock byte {};
    byte.l_type = type;
    byte.l_whence = SEEK_SET;
    byte.l_start = byte_of(name);
    byte.l_len = 1;
    if (::fcntl(locks.get(), F_OFD_SETLK, &byte) == 0) continue;
    if (errno != EAGAIN && errno != EACCES) return FileDescriptor();
    return Error{Code::failed_precondition, why(name)};
  }
  return locks;
}

}  // namespace

Result<FileDescriptor> lock_for_restore(const std::vector<std::string>& names,
                                        const std::string& file) {
  return lock_all(names, F_WRLCK, file, [](const std::string& name) {
    return "a dump or restore of " + name +
           " is under way, here or by another kymod: wait for that to end";
  });
}

Result<FileDescriptor> lock_images(const std::set<std::string>& directories, ImageUse use,
                                   const std::string& file) {
  std::vector<std::string> names;
  for (const std::string& directory : directories) names.push_back(kImages + directory);
  const bool reads = use == ImageUse::read;
  return lock_all(names, reads ? F_RDLCK : F_WRLCK, file, [&](const std::string& name) {
    return std::string("another kymod ") + (reads ? "deletes " : "restores or deletes ") +
           name.substr(kImages.size()) + ": wait for that to end";
  });
}

}  // namespace kymo::runtime
