#include "base/sync.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace kymo {

Result<void> sync_path(const std::string& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | kOpenForeign));
  if (!fd.valid() || ::fsync(fd.get()) != 0) {
    return system_error("write " + path + " to its disk", errno);
  }
  return {};
}

}  // namespace kymo
