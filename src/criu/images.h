#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// An image file's head says what it holds.
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

// Most images of a kind that we read take some hundred bytes. The largest are pagemaps: a dozen
// bytes for each run of pages, so this is room for five million runs.
inline constexpr std::size_t kLargestImage = std::size_t{64} << 20;

// What fills the largest image: a run of pages takes sixteen bytes with its size.
inline constexpr std::size_t kMostMessages = kLargestImage / 16;

// The file that an image of a folder is kept in: NAME, or compressed NAME.zst or NAME.lz4; empty
// where there is none.
std::string stored_path(const std::string& path);

// Reads one of CRIU's small images whole, unpacked where it is kept so. Errors: not_found and the
// system's, naming the path; out_of_range for one larger than kLargestImage.
Result<std::vector<std::byte>> read_image(const std::string& path);

// The messages of an image, each `u32 size` and that many bytes, little-endian. They point into
// `image`. Errors name `name`, the offset and what is wrong: invalid_argument: not such an image;
// data_loss: it is cut short; out_of_range: there are more than kMostMessages.
Result<std::vector<std::span<const std::byte>>> image_messages(std::span<const std::byte> image,
                                                               const ImageKind& kind,
                                                               std::string_view name);

// Whether a protobuf message has more fields than this. Parsed, each may take a hundred times the
// two bytes that it takes here. A look at the bytes; damage ends it.
bool has_more_fields(std::span<const std::byte> message, std::size_t most);

// Reads a protobuf message without protobuf's own complaints on stderr; false: it is none of this
// type.
template <class Message>
bool parse_message(std::span<const std::byte> bytes, Message& message) {
  return message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) &&
         message.IsInitialized();
}

}  // namespace kymo::criu
