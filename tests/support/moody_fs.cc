// A file system for tests that behaves as it is told. It shows DIRECTORY at MOUNTPOINT. The file
// DIRECTORY.mood has the mood:
//   "well": works as usual.
//   "stalls": writes wait until the mood changes.
//   "fails": writes fail with EIO.
//   "is-over-quota", "is-read-only": they fail with EDQUOT, or with EROFS.
//   "is-silent": all calls wait, reads too.
//   "stalls-at-pages": only writes of memory images wait.
//   "stalls-at-sync": only fsync(2) waits.
//   "forgets": only fsync(2) fails.
//   "lists-a-removed-file": the first list of a folder named recordings has a file that is gone.
// The paths that were synced are listed in DIRECTORY.synced, one per line. DIRECTORY.held exists once
// a write of memory images has begun to wait.
//
//   kymo-test-moody-fs DIRECTORY MOUNTPOINT      (stays in the foreground; fusermount3 -u ends it)

#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace {

std::string g_directory;

std::string inner(const char* path) {
  return g_directory + path;
}

std::string mood() {
  std::string word;
  std::ifstream(g_directory + ".mood") >> word;
  return word;
}

int answer(long result) {
  return result < 0 ? -errno : static_cast<int>(result);
}

void wait_while_silent() {
  while (mood() == "is-silent") ::usleep(5000);
}

// Waits if the mood says so. Returns 0, or the error with which the write must fail.
int suffer() {
  for (std::string now = mood(); now == "stalls" || now == "is-silent"; now = mood()) {
    ::usleep(5000);
  }
  const std::string now = mood();
  return now == "fails"           ? -EIO
         : now == "is-over-quota" ? -EDQUOT
         : now == "is-read-only"  ? -EROFS
                                  : 0;
}

int get_attributes(const char* path, struct stat* status, fuse_file_info*) {
  wait_while_silent();
  return answer(::lstat(inner(path).c_str(), status));
}

int open_file(const char* path, fuse_file_info* info) {
  wait_while_silent();
  // The kernel gives the offset of each write, also of an append. So O_APPEND must not be used.
  const int fd = ::open(inner(path).c_str(), info->flags & ~O_APPEND);
  info->fh = static_cast<std::uint64_t>(fd);
  return fd < 0 ? -errno : 0;
}

int create_file(const char* path, mode_t mode, fuse_file_info* info) {
  if (const int error = suffer(); error != 0) {
    return error;
  }
  const int fd = ::open(inner(path).c_str(), (info->flags & ~O_APPEND) | O_CREAT, mode);
  info->fh = static_cast<std::uint64_t>(fd);
  return fd < 0 ? -errno : 0;
}

// Makes the socket on which an image streamer listens.
int make_node(const char* path, mode_t mode, dev_t device) {
  if (const int error = suffer(); error != 0) {
    return error;
  }
  return answer(::mknod(inner(path).c_str(), mode, device));
}

int read_file(const char*, char* data, size_t size, off_t at, fuse_file_info* info) {
  wait_while_silent();
  return answer(::pread(static_cast<int>(info->fh), data, size, at));
}

int write_file(const char* path, const char* data, size_t size, off_t at, fuse_file_info* info) {
  const bool pages = std::string_view(path).find("/pages-") != std::string_view::npos;
  while (pages && mood() == "stalls-at-pages") {
    std::ofstream(g_directory + ".held") << path;
    ::usleep(5000);
  }
  if (const int error = suffer(); error != 0) {
    return error;
  }
  return answer(::pwrite(static_cast<int>(info->fh), data, size, at));
}

int truncate_file(const char* path, off_t size, fuse_file_info*) {
  if (const int error = suffer(); error != 0) {
    return error;
  }
  return answer(::truncate(inner(path).c_str(), size));
}

int sync_file(const char* path, int, fuse_file_info* info) {
  for (std::string now = mood(); now == "is-silent" || now == "stalls-at-sync"; now = mood()) {
    ::usleep(5000);
  }
  if (mood() == "forgets") {
    return -EIO;
  }
  std::ofstream(g_directory + ".synced", std::ios::app) << path << "\n";
  return info == nullptr ? 0 : answer(::fsync(static_cast<int>(info->fh)));
}

int sync_folder(const char* path, int, fuse_file_info*) {
  return sync_file(path, 0, nullptr);
}

int release_file(const char*, fuse_file_info* info) {
  return answer(::close(static_cast<int>(info->fh)));
}

int remove_file(const char* path) {
  wait_while_silent();
  return answer(::unlink(inner(path).c_str()));
}

int rename_file(const char* from, const char* to, unsigned) {
  if (const int error = suffer(); error != 0) {
    return error;
  }
  return answer(::rename(inner(from).c_str(), inner(to).c_str()));
}

int make_folder(const char* path, mode_t mode) {
  if (const int error = suffer(); error != 0) {
    return error;
  }
  return answer(::mkdir(inner(path).c_str(), mode));
}

int remove_folder(const char* path) {
  wait_while_silent();
  return answer(::rmdir(inner(path).c_str()));
}

int make_link(const char* to, const char* path) {
  return answer(::symlink(to, inner(path).c_str()));
}

int read_link(const char* path, char* to, size_t size) {
  wait_while_silent();
  const long length = ::readlink(inner(path).c_str(), to, size - 1);
  if (length >= 0) {
    to[length] = '\0';
  }
  return answer(std::min(length, 0L));
}

int change_mode(const char* path, mode_t mode, fuse_file_info*) {
  wait_while_silent();
  return answer(::chmod(inner(path).c_str(), mode));
}

int change_owner(const char* path, uid_t user, gid_t group, fuse_file_info*) {
  wait_while_silent();
  return answer(::lchown(inner(path).c_str(), user, group));
}

int change_times(const char* path, const timespec times[2], fuse_file_info*) {
  wait_while_silent();
  return answer(::utimensat(AT_FDCWD, inner(path).c_str(), times, AT_SYMLINK_NOFOLLOW));
}

int list(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*,
         fuse_readdir_flags) {
  wait_while_silent();
  DIR* directory = ::opendir(inner(path).c_str());
  if (directory == nullptr) {
    return -errno;
  }
  while (const dirent* entry = ::readdir(directory)) {
    fill(buffer, entry->d_name, nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  }
  ::closedir(directory);
  static std::atomic<bool> listed = false;
  if (mood() == "lists-a-removed-file" && std::string_view(path).ends_with("/recordings") &&
      !listed.exchange(true)) {
    fill(buffer, ".fuse_hidden1", nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  }
  return 0;
}

// The kernel must not cache anything. Otherwise it would answer from its cache while the disk
// stalls.
void* begin(fuse_conn_info*, fuse_config* config) {
  config->entry_timeout = 0;
  config->attr_timeout = 0;
  config->negative_timeout = 0;
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: kymo-test-moody-fs DIRECTORY MOUNTPOINT\n", stderr);
    return 2;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // a test that crashes must not leave a mount
  g_directory = argv[1];
  fuse_operations operations{};
  operations.init = begin;
  operations.getattr = get_attributes;
  operations.open = open_file;
  operations.create = create_file;
  operations.mknod = make_node;
  operations.read = read_file;
  operations.write = write_file;
  operations.truncate = truncate_file;
  operations.fsync = sync_file;
  operations.fsyncdir = sync_folder;
  operations.release = release_file;
  operations.unlink = remove_file;
  operations.rename = rename_file;
  operations.readdir = list;
  operations.mkdir = make_folder;
  operations.rmdir = remove_folder;
  operations.symlink = make_link;
  operations.readlink = read_link;
  operations.chmod = change_mode;
  operations.chown = change_owner;
  operations.utimens = change_times;
  std::string program = argv[0];
  std::string mountpoint = argv[2];
  std::string foreground = "-f";
  char* arguments[] = {program.data(), foreground.data(), mountpoint.data()};
  return fuse_main(3, arguments, &operations, nullptr);
}
