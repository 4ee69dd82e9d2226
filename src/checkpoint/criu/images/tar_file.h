#pragma once

#include <archive.h>

#include <memory>
#include <string>

#include "kymo/result.h"

namespace kymo::criu {

struct CloseArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};
using Archive = std::unique_ptr<archive, CloseArchive>;

// What an archive is read as: a tar archive, or the one file that is left when it is decompressed.
enum class ArchiveFormat : unsigned char { tar, raw };

// Begins to read an archive, compressed or not. `path` is for messages.
// Errors: invalid_argument if it is not such a file; resource_exhausted.
Result<Archive> open_archive_file(const std::string& path, int fd, ArchiveFormat format);

// What libarchive said of its last error, or `otherwise`.
std::string said_by(archive* a, const char* otherwise);

}  // namespace kymo::criu
