#include "checkpoint/criu/images/whole_tar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/file.h"

namespace kymo::criu {
namespace {

constexpr std::uint64_t kBlock = 512;
using Block = std::array<char, kBlock>;

// The fields of a header, of POSIX and of GNU.
constexpr std::size_t kSizeAt = 124;
constexpr std::size_t kSizeLength = 12;
constexpr std::size_t kSumAt = 148;
constexpr std::size_t kSumLength = 8;
constexpr std::size_t kTypeAt = 156;

std::uint64_t octal(std::string_view text) {
  return std::strtoull(std::string(text).c_str(), nullptr, 8);
}

std::string_view field(const Block& block, std::size_t at, std::size_t length) {
  return std::string_view(block.data(), block.size()).substr(at, length);
}

bool is_header(const Block& block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool of_sum = i >= kSumAt && i < kSumAt + kSumLength;
    sum += of_sum ? std::uint64_t{' '} : static_cast<unsigned char>(block[i]);
  }
  return sum == octal(field(block, kSumAt, kSumLength));
}

// Files of 8 GiB and more have a binary size with the highest bit set.
std::uint64_t size_in(const Block& block) {
  const std::string_view size = field(block, kSizeAt, kSizeLength);
  if ((static_cast<unsigned char>(size[0]) & 0x80U) == 0) return octal(size);
  std::uint64_t bytes = 0;
  for (const char one : size.substr(kSizeLength - sizeof bytes)) {
    bytes = bytes << 8U | static_cast<unsigned char>(one);
  }
  return bytes;
}

// The size of the next file, if the extended header in this block tells it ("20 size=8589934592"). Else 0.
std::uint64_t extended_size(const Block& block) {
  constexpr std::string_view kSize = " size=";
  const std::string_view text(block.data(), block.size());
  const std::size_t at = text.find(kSize);
  if (at == std::string_view::npos) return 0;
  return std::strtoull(std::string(text.substr(at + kSize.size())).c_str(), nullptr, 10);
}

}  // namespace

TarSeen look_at_tar(const std::string& path) {
  TarSeen seen;
  const Result<FileDescriptor> file = open_regular(path);
  struct stat info {};
  if (!file || ::fstat(file->get(), &info) != 0) {
    seen.fault =
        path + ": it cannot be read: " + (file ? system_error("", errno) : file.error()).message;
    return seen;
  }
  const auto length = static_cast<std::uint64_t>(info.st_size);
  const auto cut = [&] {
    seen.fault = path + " is cut off: it has " + std::to_string(length) + " bytes and no end";
    return seen;
  };
  Block block{};
  std::uint64_t told = 0;  // 0: the header itself tells the size
  for (std::uint64_t at = 0; at < length;) {
    const ssize_t got = ::pread(file->get(), block.data(), kBlock, static_cast<off_t>(at));
    if (got != static_cast<ssize_t>(kBlock)) return cut();
    if (std::all_of(block.begin(), block.end(), [](char one) { return one == 0; })) return seen;
    if (!is_header(block)) {
      seen.fault = path + " is damaged at byte " + std::to_string(at);
      return seen;
    }
    const char type = block[kTypeAt];
    const bool is_extension = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    const std::uint64_t size = is_extension || told == 0 ? size_in(block) : told;
    if (size > length) return cut();
    if (type == 'x' &&
        ::pread(file->get(), block.data(), kBlock, static_cast<off_t>(at + kBlock)) > 0) {
      told = extended_size(block);
    } else if (!is_extension) {
      told = 0;
      seen.file_bytes += size;
    }
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  return cut();
}

std::uint64_t shared_memory_bytes(const std::string& work_dir) {
  std::error_code error;
  const std::uintmax_t bytes =
      std::filesystem::file_size(work_dir + "/" + kSharedMemoryArchive, error);
  return error ? 0 : bytes;
}

std::string fault_of_shared_memory(const std::string& checkpoint) {
  const std::string path = checkpoint + "/work/" + kSharedMemoryArchive;
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 && errno == ENOENT) return {};
  const std::string fault = look_at_tar(path).fault;
  if (fault.empty()) return {};
  return fault +
         ": the files of the container's /dev/shm are lost, and a restore brings back the rest of "
         "it";
}

}  // namespace kymo::criu
