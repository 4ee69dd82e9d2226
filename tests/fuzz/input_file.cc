#include "input_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "targets.h"

namespace kymo::fuzz {

InputFile::InputFile()
    : fd_(::memfd_create("fuzz", MFD_CLOEXEC)),
      path_("/proc/self/fd/" + std::to_string(fd_.get())) {
  require(fd_.valid(), "there is memory for a file");
}

void InputFile::write(std::string_view content, std::size_t size) {
  std::size_t written = 0;
  require(::ftruncate(fd_.get(), 0) == 0 && ::lseek(fd_.get(), 0, SEEK_SET) == 0 &&
              write_all(fd_.get(), content, &written) == 0 &&
              (size <= content.size() || ::ftruncate(fd_.get(), static_cast<off_t>(size)) == 0),
          "there is memory for a file");
}

}  // namespace kymo::fuzz
