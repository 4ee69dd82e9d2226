#include "checkpoint/criu/images/tar_file.h"

#include <sys/stat.h>

#include <cstddef>

namespace kymo::criu {

std::string said_by(archive* a, const char* otherwise) {
  const char* said = archive_error_string(a);
  return said != nullptr ? said : otherwise;
}

Result<Archive> open_archive_file(const std::string& path, int fd, ArchiveFormat format) {
  constexpr std::size_t kReadAtOnce = std::size_t{256} << 10;
  Archive a(archive_read_new());
  if (a == nullptr) {
    return Error{Code::resource_exhausted, "cannot read " + path + ": out of memory"};
  }
  archive_read_support_filter_gzip(a.get());
  archive_read_support_filter_zstd(a.get());
  archive_read_support_filter_xz(a.get());
  archive_read_support_filter_bzip2(a.get());
  if (format == ArchiveFormat::tar) {
    archive_read_support_format_tar(a.get());
  } else {
    archive_read_support_format_raw(a.get());
  }
  if (archive_read_open_fd(a.get(), fd, kReadAtOnce) != ARCHIVE_OK) {
    struct stat status {};
    const bool empty = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
    return Error{Code::invalid_argument,
                 "cannot read " + path +
                     (empty ? ": the file is empty"
                            : ": it is neither a folder nor a tar archive (" +
                                  said_by(a.get(), "unknown format") + ")")};
  }
  return a;
}

}  // namespace kymo::criu
