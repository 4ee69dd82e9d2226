#include "base/file_follower.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.h"

namespace kymo {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20U;

Error of_output(const Error& error) {
  return {error.code, "read the job's output: " + error.message, error.errno_value};
}

}  // namespace

Result<void> FileFollower::begin_with(std::uint64_t lines) {
  const Result<FileDescriptor> opened = open_regular(path_);
  if (!opened) return of_output(opened.error());
  const FileDescriptor& file = *opened;
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return system_error("read the job's output " + path_, errno);
  std::uint64_t end = static_cast<std::uint64_t>(info.st_size);
  at_ = end;
  std::array<char, 65536> piece{};
  // Search backwards for the line feed before the last `lines` lines.
  for (std::uint64_t feeds = 0; end > 0 && lines > 0;) {
    const std::uint64_t begin = end - std::min<std::uint64_t>(end, piece.size());
    const ssize_t got = pread(file.get(), piece.data(), end - begin, static_cast<off_t>(begin));
    if (got <= 0) return system_error("read the job's output " + path_, got < 0 ? errno : EIO);
    for (auto i = static_cast<std::uint64_t>(got); i-- > 0;) {
      const bool last = begin + i + 1 == static_cast<std::uint64_t>(info.st_size);
      if (piece.at(i) != '\n' || last || ++feeds < lines) continue;
      at_ = begin + i + 1;
      return {};
    }
    end = at_ = begin;
  }
  return {};
}

Result<std::string> FileFollower::next() {
  const Result<FileDescriptor> opened = open_regular(path_);
  if (!opened && opened.error().errno_value == ENOENT) return std::string();
  if (!opened) return of_output(opened.error());
  const FileDescriptor& file = *opened;
  const bool jumped = skip_removed_part(file.get());
  std::string piece(kPiece, '\0');
  ssize_t got = -1;
  do {
    got = pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(at_));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return system_error("read the job's output " + path_, errno);
  piece.resize(static_cast<std::size_t>(got));
  at_ += static_cast<std::uint64_t>(got);
  // A hole ends at the end of a block, so the discarded bytes before that are zeros: remove them.
  if (jumped) piece.erase(0, piece.find_first_not_of('\0'));
  return piece;
}

// kymod limits a job's output (--job-output-bytes): it makes the oldest part a hole, or empties the
// file if the file system does not support holes.
bool FileFollower::skip_removed_part(int file) {
  struct stat info {};
  if (fstat(file, &info) != 0) return false;
  if (static_cast<std::uint64_t>(info.st_size) < at_) at_ = 0;
  const off_t data = lseek(file, static_cast<off_t>(at_), SEEK_DATA);
  if (data <= static_cast<off_t>(at_)) return false;
  at_ = static_cast<std::uint64_t>(data);
  return true;
}

}  // namespace kymo
