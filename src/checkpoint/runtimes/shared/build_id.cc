#include "checkpoint/runtimes/shared/build_id.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace kymo::runtime {
namespace {

constexpr std::size_t kMaxHeaders = 128;  // a program has about 13
constexpr std::size_t kMaxNotes = std::size_t{64}
                                  << 10;  // bytes of one note segment; usually below 200

// At most `size` bytes of the file; fewer at its end.
Result<std::string> read_at(int fd, const std::string& path, std::uint64_t offset,
                            std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t got = 0;
  while (got < size) {
    const ssize_t now =
        ::pread(fd, bytes.data() + got, size - got, static_cast<off_t>(offset + got));
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return system_error("read " + path, errno);
    if (now == 0) break;
    got += static_cast<std::size_t>(now);
  }
  bytes.resize(got);
  return bytes;
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

// The build id among these notes. A note has a header of three words, a name and its content, each of
// the last two filled up to whole words.
std::string id_in(std::string_view notes) {
  const auto filled = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
  Elf64_Nhdr header{};  // the same in 32 bits
  while (notes.size() >= sizeof header) {
    std::memcpy(&header, notes.data(), sizeof header);
    notes.remove_prefix(sizeof header);
    const std::size_t name = filled(header.n_namesz);
    const std::size_t content = filled(header.n_descsz);
    if (name > notes.size() || content > notes.size() - name) return {};
    if (header.n_type == NT_GNU_BUILD_ID && notes.starts_with(std::string_view("GNU\0", 4))) {
      return hexadecimal(notes.substr(name, header.n_descsz));
    }
    notes.remove_prefix(name + content);
  }
  return {};
}

template <class Header, class Segment>
Result<std::string> id_of_elf(int fd, const std::string& path, std::string_view start) {
  Header header{};
  if (start.size() < sizeof header) return std::string();
  std::memcpy(&header, start.data(), sizeof header);
  if (header.e_phentsize != sizeof(Segment)) return std::string();
  const std::size_t count = std::min<std::size_t>(header.e_phnum, kMaxHeaders);
  const Result<std::string> table = read_at(fd, path, header.e_phoff, count * sizeof(Segment));
  if (!table) return table.error();
  for (std::size_t at = 0; at + sizeof(Segment) <= table->size(); at += sizeof(Segment)) {
    Segment segment{};
    std::memcpy(&segment, table->data() + at, sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    const std::size_t size = std::min<std::uint64_t>(segment.p_filesz, kMaxNotes);
    const Result<std::string> notes = read_at(fd, path, segment.p_offset, size);
    if (!notes) return notes.error();
    std::string id = id_in(*notes);
    if (!id.empty()) return id;
  }
  return std::string();
}

}  // namespace

Result<std::string> build_id_of(const std::string& path) {
  const Result<FileDescriptor> file = open_regular(path);
  if (!file) return file.error();
  const Result<std::string> start = read_at(file->get(), path, 0, sizeof(Elf64_Ehdr));
  if (!start) return start.error();
  if (start->size() < EI_NIDENT || !start->starts_with(ELFMAG)) return std::string();
  return (*start)[EI_CLASS] == ELFCLASS32
             ? id_of_elf<Elf32_Ehdr, Elf32_Phdr>(file->get(), path, *start)
             : id_of_elf<Elf64_Ehdr, Elf64_Phdr>(file->get(), path, *start);
}

}  // namespace kymo::runtime
