#pragma once

#include <fcntl.h>

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

// What to do if `path` could not be created because of `errno_value`, to be added to a message.
// Empty if there is nothing to say.
std::string advice_on_creating(const std::string& path, int errno_value);
// The same for a file that may be there already. It says so if the disk has space, but no inode for a new file (ENOSPC).
// `path` need not exist. May wait for the disk.
std::string advice_on_full_disk(const std::string& path, int errno_value);

// Creates `path`, which must not exist, and opens it for appending only. CRIU restores a file that
// is open in this way even if its size has changed since the dump. The size of other files must not
// have changed.
Result<FileDescriptor> create_append_only(const std::string& path);

// Opens a regular file that somebody else may have made. Never waits for the other end of a pipe,
// nor for a device. `flags` and `mode`: as for open(2).
// Errors: invalid_argument: it is something else; those of open(2).
Result<FileDescriptor> open_regular(const std::string& path, int flags = 0, unsigned mode = 0);
// The same for a file that was opened in another way, with kOpenForeign. `path` is for messages.
Result<FileDescriptor> only_regular(FileDescriptor fd, const std::string& path);
// The flags with which a path must be opened that somebody else may have put something in.
inline constexpr int kOpenForeign = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Reads a small regular file. It can also read /proc, where read(2) can fail after open(2) has
// succeeded (ESRCH if the process is gone). A C++ stream would throw there.
// Errors: those of opening and reading, data_loss if the file has more than `most` bytes.
Result<std::string> read_file(const std::string& path, std::size_t most = std::size_t{64} << 20U);
// Reads an open file to its end. `path` is for messages.
Result<std::string> read_all(int fd, const std::string& path, std::size_t most);

// Creates `path` for reading and writing. An old file of this name is removed and never opened, so
// that a link which another user has put there is not followed.
// Errors: those of open(2). EEXIST: the old file could not be removed, or another process has made
//         it again.
Result<FileDescriptor> create_anew(const std::string& path, unsigned mode);

// Writes all of `data`, and continues after short writes and EINTR. Returns 0 or errno. Sets
// `written` to the number of bytes written, also after an error.
int write_all(int fd, std::string_view data, std::size_t* written);

// Replaces `path` by a file with this content. A reader sees either the old or the new file
// completely. If several writers replace it at the same time, the last one wins. The file is not
// synced: it survives the end of this process, but perhaps not a power failure. A process that is
// killed may leave a file PATH.new-PID-N, which does no harm.
Result<void> replace_file(const std::string& path, std::string_view content);

// Makes a folder and the missing folders above it. The umask can only reduce their mode 0755, so
// that other users cannot write into them. Returns 0 if the folder exists at the end, else errno.
// A caller may ignore the result if it then creates a file in the folder, which fails as well.
int make_folders(const std::string& path);

// Lets this process open as many files as the system allows it. Programs that it starts can, too.
void allow_many_files();

}  // namespace kymo
