#include "base/text_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace kymo {
namespace {

constexpr std::size_t kCompressedBytes = 128 * 1024;
constexpr std::size_t kMagicBytes = 4;

// Whether it is a pipe that some process made for itself, such as a shell's `<(...)`. Of a pipe
// with a name, nobody knows who holds the other end, and for how long.
bool is_unnamed_pipe(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC;
}

// Waits until a pipe that is still empty has data or a writer has closed it. The pipe was opened
// with O_NONBLOCK, and a confined process cannot clear that flag (confine/filter.h).
void wait_for_writer(int fd) {
  pollfd pipe{fd, POLLIN, 0};
  static_cast<void>(::poll(&pipe, 1, -1));
}

}  // namespace

Result<TextFile> TextFile::open(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | kOpenForeign));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return system_error("open recording " + path, errno);
  }
  if (S_ISDIR(status.st_mode)) {
    return Error{Code::invalid_argument, "open recording " + path + ": it is a directory"};
  }
  if (!S_ISREG(status.st_mode) && !is_unnamed_pipe(fd.get())) {
    return Error{
        Code::invalid_argument,
        "open recording " + path + ": it is neither a regular file nor a pipe of the shell"};
  }
  return over(std::move(fd), path);
}

Result<TextFile> TextFile::open_regular(const std::string& path) {
  Result<FileDescriptor> fd = kymo::open_regular(path);
  return fd ? over(*std::move(fd), path) : fd.error();
}

Result<TextFile> TextFile::over(FileDescriptor fd, const std::string& path, std::uint64_t most) {
  TextFile file(path, std::move(fd), most);
  if (Result<void> sniffed = file.detect_compression(); !sniffed) {
    return sniffed.error();
  }
  return file;
}

// Reads the first bytes to see whether the file is compressed. They are kept for read(), because a
// pipe cannot be read again.
Result<void> TextFile::detect_compression() {
  compressed_.resize(kMagicBytes);
  const Result<std::size_t> begin = read_file(compressed_.data(), compressed_.size());
  if (!begin) {
    return begin.error();
  }
  filled_ = *begin;
  if (!FrameReader::begins_frame({compressed_.data(), filled_})) {
    return {};
  }
  if (!has_zstd()) {
    return no_zstd("read " + path_);
  }
  Result<FrameReader> frames = FrameReader::make();
  if (!frames) {
    return frames.error();
  }
  frames_.emplace(*std::move(frames));
  compressed_.resize(kCompressedBytes);
  return {};
}

Result<std::size_t> TextFile::read(char* out, std::size_t size) {
  if (frames_) {
    return read_frames(out, size);
  }
  const std::size_t kept = std::min(size, filled_ - used_);
  std::memcpy(out, compressed_.data() + used_, kept);
  used_ += kept;
  Result<std::size_t> rest = read_file(out + kept, size - kept);
  if (!rest) {
    return rest.error();
  }
  return kept + *rest;
}

std::optional<int> TextFile::seekable() const {
  struct stat status {};
  if (frames_ || ::fstat(fd_.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return fd_.get();
}

Result<void> TextFile::seek(std::uint64_t offset) {
  used_ = filled_ = 0;
  if (::lseek(fd_.get(), static_cast<off_t>(offset), SEEK_SET) >= 0) return {};
  return system_error("read " + path_, errno);
}

Result<std::size_t> TextFile::read_file(char* out, std::size_t size) {
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, unread_));
  std::size_t filled = 0;
  while (filled < size) {
    const ssize_t n = ::read(fd_.get(), out + filled, size - filled);
    if (n > 0) {
      filled += static_cast<std::size_t>(n);
      unread_ -= static_cast<std::uint64_t>(n);
    } else if (n == 0) {
      break;
    } else if (errno == EAGAIN) {
      wait_for_writer(fd_.get());
    } else if (errno != EINTR) {
      return system_error("read " + path_, errno);
    }
  }
  return filled;
}

Result<std::size_t> TextFile::read_frames(char* out, std::size_t size) {
  std::size_t produced = 0;
  while (produced < size && damage_.empty()) {
    if (used_ == filled_ && !at_end_) {
      const Result<std::size_t> more = read_file(compressed_.data(), compressed_.size());
      if (!more) {
        return more.error();
      }
      decompressed_from_ += filled_;
      used_ = 0;
      filled_ = *more;
      at_end_ = *more < compressed_.size();
    }
    const std::string_view in(compressed_.data() + used_, filled_ - used_);
    const Result<FrameReader::Step> step = frames_->read(in, out + produced, size - produced);
    if (!step) {
      damage_ = "damaged: the compressed data cannot be read from about byte " +
                std::to_string(decompressed_from_ + used_) + " of the file on (" +
                step.error().message + ")";
      break;
    }
    used_ += step->used;
    produced += step->produced;
    if (at_end_ && used_ == filled_ && step->produced == 0) {
      if (!frames_->between_frames()) {
        damage_ = "cut short: the file ends in the middle of a compressed frame";
      }
      break;
    }
  }
  return produced;
}

}  // namespace kymo
