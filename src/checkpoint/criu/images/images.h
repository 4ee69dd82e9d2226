#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// The two words at the beginning of an image file. They say what it holds.
struct ImageKind {
  std::uint32_t family;  // first word: images, or service files such as statistics
  std::uint32_t magic;   // second word
  std::string_view name;
};

inline constexpr ImageKind kStatsImage{0x55105940, 0x57093306, "statistics"};
inline constexpr ImageKind kPstreeImage{0x54564319, 0x50273030, "process tree"};
inline constexpr ImageKind kCoreImage{0x54564319, 0x55053847, "core"};
inline constexpr ImageKind kPagemapImage{0x54564319, 0x56084025, "pagemap"};
inline constexpr ImageKind kMmImage{0x54564319, 0x57492820, "memory map"};
inline constexpr ImageKind kFilesImage{0x54564319, 0x56303138, "files"};
inline constexpr ImageKind kRegularFilesImage{0x54564319, 0x50363636, "regular files"};
inline constexpr ImageKind kInetSocketsImage{0x54564319, 0x56443851, "internet sockets"};
inline constexpr ImageKind kIdsImage{0x54564319, 0x54432030, "ids"};
inline constexpr ImageKind kFdinfoImage{0x54564319, 0x56213732, "file descriptors"};
inline constexpr ImageKind kFsImage{0x54564319, 0x51403912, "directories"};
inline constexpr ImageKind kMemoryFilesImage{0x54564319, 0x48453499, "files in memory"};
inline constexpr ImageKind kFileLocksImage{0x54564319, 0x54323616, "file locks"};
inline constexpr ImageKind kMountsImage{0x54564319, 0x55563928, "mounts"};
inline constexpr ImageKind kRemapImage{0x54564319, 0x59133954, "deleted files"};

// The largest image that is read. Most images of the kinds that we read have some hundred bytes.
// The largest are pagemaps. They have a dozen bytes for each run of pages, so this is room for five
// million runs.
inline constexpr std::size_t kMaxImage = std::size_t{64} << 20;

// The most messages of one image. The largest image has room for this many runs of pages: a run
// takes sixteen bytes with its size.
inline constexpr std::size_t kMaxMessages = kMaxImage / 16;

// The names under which the image `path` may be stored: itself, and compressed.
std::vector<std::string> stored_names(const std::string& path);

// Returns the file in which the image `path` is stored: `path` itself, or compressed with the
// suffix .zst or .lz4. Empty if there is none.
std::string stored_path(const std::string& path);

// Reads one of CRIU's small images whole, and unpacks it if it is stored compressed.
// Errors: not_found and the system's, with the path; out_of_range if it is larger than
//         kMaxImage.
Result<std::vector<std::byte>> read_image(const std::string& path);

// Returns the messages of an image, as parts of `image`. In the image, each message is a `u32 size`
// (little-endian) and that many bytes.
// Errors: show `name`, the offset and the cause. invalid_argument if it is not an image of this
//         kind; data_loss if it is cut short; out_of_range if it has more than kMaxMessages.
Result<std::vector<std::span<const std::byte>>> image_messages(std::span<const std::byte> image,
                                                               const ImageKind& kind,
                                                               std::string_view name);

// Whether a protobuf message has more than `most` fields. Check this before parsing: a parsed field
// can take a hundred times the two bytes that it takes in the message. The function only scans the
// bytes, and stops at a damaged field.
bool has_more_fields(std::span<const std::byte> message, std::size_t most);

// Reads a protobuf message. Protobuf itself prints no error to stderr. Returns false if the bytes
// are not a message of this type.
template <class Message>
bool parse_message(std::span<const std::byte> bytes, Message& message) {
  return message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) &&
         message.IsInitialized();
}

}  // namespace kymo::criu
