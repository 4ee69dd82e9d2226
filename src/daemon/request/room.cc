#include "daemon/request/room.h"

#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/file.h"
#include "base/json_text.h"
#include "base/patience.h"
#include "probe/proc_file.h"
#include "report/human.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// Of linux/magic.h, which has not all of them. The file systems that are known to store every byte as it is.
constexpr std::uint64_t kTmpfs = 0x01021994;
constexpr std::array<std::uint64_t, 4> kPlain{0xef53 /* ext4 */, 0x58465342 /* XFS */,
                                              0x794c7630 /* overlay */, kTmpfs};
constexpr double kShareWithoutCompression = 0.9;
constexpr double kShareOfEarlier = 0.5;
// zstd at level 1 makes 6,788 bytes of 200 MB of zeros, which are 0.00003 of them.
constexpr double kLeastShare = 0.00003;

struct DiskRoom {
  std::uint64_t bytes = 0;
  bool plain = false;   // the file system stores every byte as it is
  bool memory = false;  // the memory is the bound, not the size of the file system
};

std::uint64_t free_memory() {
  constexpr std::uint64_t kKiB = 1024;
  const Result<std::string> text = read_file("/proc/meminfo");
  if (!text) return UINT64_MAX;
  return (probe::value_of(*text, "MemAvailable") + probe::value_of(*text, "SwapFree")) * kKiB;
}

// Nothing if the file system does not say: some network file systems do not know their size.
std::optional<DiskRoom> room_at(const std::string& directory) {
  fs::path nearest(directory);
  std::error_code error;
  while (!fs::exists(nearest, error) && nearest.has_relative_path()) {
    nearest = nearest.parent_path();
  }
  struct statfs about {};
  if (::statfs(nearest.c_str(), &about) != 0 || about.f_blocks == 0) return std::nullopt;
  // root may also use the blocks that are reserved for it.
  const std::uint64_t blocks = ::geteuid() == 0 ? about.f_bfree : about.f_bavail;
  const auto type = static_cast<std::uint64_t>(about.f_type);
  DiskRoom room;
  room.bytes =
      blocks * static_cast<std::uint64_t>(about.f_frsize != 0 ? about.f_frsize : about.f_bsize);
  room.plain = std::find(kPlain.begin(), kPlain.end(), type) != kPlain.end();
  if (type == kTmpfs) {
    const std::uint64_t memory = free_memory();
    room.memory = memory < room.bytes;
    room.bytes = std::min(room.bytes, memory);
  }
  return room;
}

double share_of(const PlannedImages& planned, const DiskRoom& room) {
  if (!planned.compressed && room.plain) return kShareWithoutCompression;
  const bool known = planned.compressed && planned.least_share > 0;
  return known ? planned.least_share * kShareOfEarlier : kLeastShare;
}

}  // namespace

double least_share_of(const std::vector<store::Run>& earlier, std::string_view compression) {
  constexpr double kPageBytes = 4096;
  const std::string wanted = "stream " + std::string(compression);
  double least = 0;
  for (const store::Run& run : earlier) {
    if (!run.error.empty() || run.conditions.find(wanted) == std::string::npos) continue;
    const nlohmann::json stats = parse_json(run.stats_json);
    const auto pages = stats.is_object() ? stats.find("pages_written") : stats.end();
    if (pages == stats.end() || !pages->is_number_unsigned() || *pages == 0) continue;
    const double share = static_cast<double>(run.image_bytes) / (pages->get<double>() * kPageBytes);
    if (least == 0 || share < least) least = share;
  }
  return least;
}

Result<void> check_room(const std::string& directory, const PlannedImages& planned) {
  const auto asked = within(kDiskPatience, [directory] { return room_at(directory); });
  if (!asked || !*asked) return {};
  const DiskRoom& room = **asked;
  const double share = share_of(planned, room);
  const auto least = static_cast<std::uint64_t>(static_cast<double>(planned.memory_bytes) * share);
  if (least <= room.bytes) return {};
  const bool plain = !planned.compressed && room.plain;
  std::string text = "there is no room for its images: ";
  if (plain) {
    text += "about " + report::bytes(planned.memory_bytes);
  } else {
    text += "at least " + report::bytes(least) + ", even if they are compressed,";
  }
  text += " are needed in " + directory;
  text += room.memory ? ", and the machine has " : ", and its disk has ";
  text += report::bytes(room.bytes);
  text += room.memory ? " of memory free" : " free";
  text += ": free space, or name another directory with --dir";
  if (plain && planned.can_compress) text += ", or compress the images (--compression zstd)";
  return Error{Code::resource_exhausted, text + ". Pass --force to try it all the same"};
}

}  // namespace kymo::daemon
