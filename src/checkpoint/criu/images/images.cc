#include "checkpoint/criu/images/images.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/beneath.h"
#include "checkpoint/criu/images/image_codec.h"

namespace kymo::criu {
namespace {

constexpr std::size_t kWord = 4;

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < kWord; ++i) {
    word |= std::to_integer<std::uint32_t>(bytes[offset + i]) << (8 * i);
  }
  return word;
}

std::string hex(std::uint32_t word) {
  char text[9];
  const auto end = std::to_chars(text, text + sizeof text, word, 16).ptr;
  return "0x" + std::string(text, end);
}

Error truncated(std::string_view name, std::size_t offset, std::size_t wanted, std::size_t left) {
  return Error{Code::data_loss, "cannot read " + std::string(name) + ": it is cut short at byte " +
                                    std::to_string(offset) + ", where " + std::to_string(wanted) +
                                    " bytes should follow and " + std::to_string(left) + " do"};
}

// The offset of the first message: after one magic word (old versions) or two.
Result<std::size_t> head_size(std::span<const std::byte> image, const ImageKind& kind,
                              std::string_view name) {
  if (image.size() < kWord) {
    return truncated(name, 0, kWord, image.size());
  }
  const std::uint32_t first = word_at(image, 0);
  if (first == kind.magic) {
    return kWord;
  }
  if (first == kind.family) {
    if (image.size() < 2 * kWord) {
      return truncated(name, kWord, kWord, image.size() - kWord);
    }
    if (word_at(image, kWord) == kind.magic) {
      return 2 * kWord;
    }
  }
  const std::uint32_t found = first == kind.family ? word_at(image, kWord) : first;
  return Error{Code::invalid_argument, "cannot read " + std::string(name) + ": it is not a CRIU " +
                                           std::string(kind.name) + " image: it begins with " +
                                           hex(found) + " and not " + hex(kind.magic)};
}

}  // namespace

namespace {

// Reads a small file without unpacking it. Does not follow a link in its place.
Result<std::vector<std::byte>> read_small_file(const std::string& path) {
  const Result<FileDescriptor> opened = open_no_link(path, O_RDONLY);
  if (!opened) {
    const int error = opened.error().errno_value;
    return error == ELOOP || error == 0 ? opened.error()
                                        : system_error("cannot read " + path, error);
  }
  const int fd = opened->get();
  std::vector<std::byte> bytes;
  Error error;
  struct stat st {};
  if (fstat(fd, &st) != 0) {
    error = system_error("cannot read " + path, errno);
  } else if (static_cast<std::uint64_t>(st.st_size) > kMaxImage) {
    error = {Code::out_of_range, "cannot read " + path + ": " + std::to_string(st.st_size) +
                                     " bytes are more than a CRIU image of this kind has"};
  } else {
    bytes.resize(static_cast<std::size_t>(st.st_size));
    std::size_t filled = 0;
    while (filled < bytes.size()) {
      const ssize_t n = read(fd, bytes.data() + filled, bytes.size() - filled);
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n < 0) {
        error = system_error("cannot read " + path, errno);
      }
      if (n <= 0) {
        break;
      }
      filled += static_cast<std::size_t>(n);
    }
    bytes.resize(filled);
  }
  if (!error.message.empty()) {
    return error;
  }
  return bytes;
}

}  // namespace

std::vector<std::string> stored_names(const std::string& path) {
  std::vector<std::string> names;
  for (const Compression compression : {Compression::none, Compression::zstd, Compression::lz4}) {
    names.push_back(path + std::string(suffix_of(compression)));
  }
  return names;
}

std::string stored_path(const std::string& path) {
  for (std::string& stored : stored_names(path)) {
    if (access(stored.c_str(), F_OK) == 0) {
      return std::move(stored);
    }
  }
  return {};
}

Result<std::vector<std::byte>> read_image(const std::string& path) {
  std::string stored = stored_path(path);
  if (stored.empty()) {
    stored = path;  // the read fails and reports this path
  }
  Result<std::vector<std::byte>> bytes = read_small_file(stored);
  std::string_view name = stored;
  const Compression compression = take_suffix(name);
  if (!bytes || compression == Compression::none) {
    return bytes;
  }
  return decode_all(compression, *bytes, kMaxImage, stored);
}

Result<std::vector<std::span<const std::byte>>> image_messages(std::span<const std::byte> image,
                                                               const ImageKind& kind,
                                                               std::string_view name) {
  Result<std::size_t> head = head_size(image, kind, name);
  if (!head) {
    return head.error();
  }
  std::vector<std::span<const std::byte>> messages;
  std::size_t offset = *head;
  while (offset < image.size()) {
    if (image.size() - offset < kWord) {
      return truncated(name, offset, kWord, image.size() - offset);
    }
    const std::size_t size = word_at(image, offset);
    offset += kWord;
    if (size > image.size() - offset) {
      return truncated(name, offset, size, image.size() - offset);
    }
    if (messages.size() == kMaxMessages) {
      return Error{Code::out_of_range, "cannot read " + std::string(name) + ": more than " +
                                           std::to_string(kMaxMessages) +
                                           " entries are more than a CRIU image has"};
    }
    messages.push_back(image.subspan(offset, size));
    offset += size;
  }
  return messages;
}

bool has_more_fields(std::span<const std::byte> message, std::size_t most) {
  google::protobuf::io::CodedInputStream in(
      static_cast<const std::uint8_t*>(static_cast<const void*>(message.data())),
      static_cast<int>(message.size()));
  for (std::size_t fields = 0; fields <= most; ++fields) {
    const std::uint32_t tag = in.ReadTag();
    if (tag == 0 || !google::protobuf::internal::WireFormatLite::SkipField(&in, tag)) {
      return false;
    }
  }
  return true;
}

}  // namespace kymo::criu
