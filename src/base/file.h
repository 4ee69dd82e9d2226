#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kymo/result.h"

namespace kymo {

// An open file descriptor, closed when it goes out of scope.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// Creates `path`, which must not exist, for appending only: CRIU restores a file so opened whatever
// its size has become since the dump (a file opened otherwise must have kept its size).
Result<FileDescriptor> create_append_only(const std::string& path);

// The whole of a small file, also of /proc, where reading may fail once opening has not: with ESRCH
// when the process is gone. (Streams' buffers throw there.) Errors: those of opening and reading;
// data_loss for a file of more than `most` bytes.
Result<std::string> read_file(const std::string& path, std::size_t most = std::size_t{64} << 20U);

// Creates `path` for writing and reading. What had the name is removed first and never opened: no
// link that somebody put there leads elsewhere. Errors: those of open(2); EEXIST: somebody made the
// name again, or we may not remove it.
Result<FileDescriptor> create_anew(const std::string& path, unsigned mode);

// Writes all of `data`, going on after short writes and EINTR. On an error `written` tells how much
// got through. Returns 0 or errno.
int write_all(int fd, std::string_view data, std::size_t* written);

// Replaces `path` by a file with this content, so that a reader sees the old or the new one, whole,
// also where several writers replace it at once: the last one's stays. Not synced: the promise
// covers a killed process, not a power failure. A killed process may leave PATH.new-PID-N behind,
// which is in nobody's way.
Result<void> replace_file(const std::string& path, std::string_view content);

// Makes a folder and those above it that are not there, of mode 0755 or less, whatever the umask:
// others must not write into them. Returns 0 where the folder is there in the end, or errno; who
// makes something in it next may leave it to that to fail.
int make_folders(const std::string& path);

}  // namespace kymo
