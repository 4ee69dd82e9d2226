#include <initializer_list>

#include "criu/images.h"
#include "criu/pstree.h"
#include "criu/stats.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

using Image = std::vector<std::byte>;

void append_word(std::uint32_t word, Image& image) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    image.push_back(static_cast<std::byte>(word >> shift & 0xffU));
  }
}

// What most inputs do not have.
Image behind_head(const criu::ImageKind& kind, Bytes data) {
  Image image;
  append_word(kind.family, image);
  append_word(kind.magic, image);
  append_word(static_cast<std::uint32_t>(data.size()), image);
  for (const std::uint8_t byte : data) {
    image.push_back(static_cast<std::byte>(byte));
  }
  return image;
}

void read_image(std::span<const std::byte> image) {
  const auto dump = criu::parse_dump_stats(image, "fuzz");
  const auto restore = criu::parse_restore_stats(image, "fuzz");
  const auto tree = criu::parse_pstree(image, "fuzz");
  require((dump.ok() || !dump.error().message.empty()) &&
              (restore.ok() || !restore.error().message.empty()) &&
              (tree.ok() || !tree.error().message.empty()),
          "an error says something");
  require(!tree.ok() || (!dump.ok() && !restore.ok()), "an image is of one kind");
  if (!tree) {
    return;
  }
  require(!tree->empty(), "a tree has a root");
  for (const criu::ImageProcess& process : *tree) {
    require(process.pid > 0, "a process has a number");
    for (const pid_t thread : process.threads) {
      require(thread > 0, "a thread has a number");
    }
  }
}

}  // namespace

void criu(Bytes data) {
  read_image(std::as_bytes(data));
  for (const criu::ImageKind& kind : {criu::kStatsImage, criu::kPstreeImage}) {
    read_image(behind_head(kind, data));
  }
}

}  // namespace kymo::fuzz
