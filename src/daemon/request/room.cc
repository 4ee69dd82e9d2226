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
#include "base/proc/proc_file.h"
#include "lens/report/human.h"

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
// A checkpoint of the smallest process has about 20 files and folders.
constexpr std::uint64_t kLeastInodes = 10;

struct DiskRoom {
  std::uint64_t bytes = 0;
  bool plain = false;                 // the file system stores every byte as it is
  bool memory = false;                // the memory is the bound, not the size of the file system
  std::uint64_t inodes = UINT64_MAX;  // free ones; the maximum: as many as are needed
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
  if (about.f_files != 0) room.inodes = about.f_ffree;
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

// Without the option that excludes it: else the next dump would be refused for that, and the one after it for this.
std::string zstd_remedy(const PlannedImages& planned) {
  if (planned.uncompressed_by.empty()) return "--compression zstd";
  return "--compression zstd, without " + planned.uncompressed_by;
}

// Of a dump's statistics. 0: it is not known.
std::uint64_t pages_in(const store::Run& run, const char* name) {
  const nlohmann::json stats = parse_json(run.stats_json);
  const auto pages = stats.is_object() ? stats.find(name) : stats.end();
  return pages != stats.end() && pages->is_number_unsigned() ? pages->get<std::uint64_t>() : 0;
}

}  // namespace

std::uint64_t written_by(const store::Run& run) {
  if (run.written_bytes != 0) return run.written_bytes;
  // An older kymod has stored it. Images without compression are a little larger than their pages.
  constexpr std::uint64_t kPageBytes = 4096;
  const std::uint64_t pages = pages_in(run, "pages_written") + pages_in(run, "shpages_written");
  return std::max(run.image_bytes, pages * kPageBytes);
}

double least_share_of(const std::vector<store::Run>& earlier, std::string_view compression) {
  const std::string wanted = "stream " + std::string(compression);
  double least = 0;
  for (const store::Run& run : earlier) {
    if (!run.error.empty() || run.conditions.find(wanted) == std::string::npos) continue;
    if (pages_in(run, "pages_written") == 0) continue;
    const double share =
        static_cast<double>(run.image_bytes) / static_cast<double>(written_by(run));
    if (least == 0 || share < least) least = share;
  }
  return least;
}

std::vector<store::Run> alike(std::vector<store::Run> earlier, const std::string& disk,
                              std::uint64_t written_bytes) {
  const auto differs = [&](const store::Run& run) {
    const std::uint64_t its = written_by(run);
    return run.disk != disk || its > 2 * written_bytes || written_bytes > 2 * its;
  };
  std::erase_if(earlier, differs);
  return earlier;
}

std::uint64_t standstill_of(const std::vector<store::Run>& earlier, std::string_view compression) {
  const std::string wanted = "stream " + std::string(compression);
  std::vector<std::uint64_t> all;
  for (const store::Run& run : earlier) {
    if (!run.error.empty() || run.stood_still_ns == 0) continue;
    const bool streamed = run.conditions.find("stream ") != std::string::npos;
    const bool fits =
        compression.empty() ? !streamed : run.conditions.find(wanted) != std::string::npos;
    if (fits) all.push_back(run.stood_still_ns);
  }
  if (all.empty()) return 0;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

PlannedImages plan_images(store::Store& store, std::string_view owner, std::uint64_t bytes,
                          std::string_view compression) {
  constexpr std::size_t kEarlier = 50;
  PlannedImages planned{.bytes = bytes, .compressed = !compression.empty()};
  const auto earlier = store.runs(owner, store::RunKind::dump, kEarlier);
  if (earlier)
    planned.least_share = least_share_of(*earlier, planned.compressed ? compression : "zstd");
  return planned;
}

std::optional<NoRoom> find_no_room(const std::string& directory, const PlannedImages& planned) {
  const auto asked = within(kDiskPatience, [directory] { return room_at(directory); });
  if (!asked || !*asked) return std::nullopt;
  const DiskRoom& room = **asked;
  NoRoom none{"", "free space, or name another directory with --dir"};
  if (room.inodes < kLeastInodes) {
    none.figures = "each file in " + directory + " needs an inode, and its disk has " +
                   std::to_string(room.inodes) + " free inodes (df -i)";
    none.remedy = "delete files there, or name another directory with --dir";
    return none;
  }
  const double share = share_of(planned, room);
  const auto least = static_cast<std::uint64_t>(static_cast<double>(planned.bytes) * share);
  if (least <= room.bytes) return std::nullopt;
  const bool plain = !planned.compressed && room.plain;
  if (plain) {
    none.figures = "about " + report::bytes(planned.bytes);
    // What earlier dumps took says that it would not fit either.
    const auto compressed = static_cast<double>(planned.bytes) * planned.least_share;
    if (planned.can_compress && compressed <= static_cast<double>(room.bytes))
      none.remedy += ", or compress the images (" + zstd_remedy(planned) + ")";
  } else {
    none.figures = "at least " + report::bytes(least) + ", even if they are compressed,";
  }
  none.figures += " are needed in " + directory;
  none.figures += room.memory ? ", and the machine has " : ", and its disk has ";
  none.figures += report::bytes(room.bytes);
  none.figures += room.memory ? " of memory free" : " free";
  return none;
}

Result<void> check_room(const std::string& directory, const PlannedImages& planned) {
  const std::optional<NoRoom> none = find_no_room(directory, planned);
  if (!none) return {};
  return Error{Code::resource_exhausted, "there is no room for its images: " + none->figures +
                                             ": " + none->remedy +
                                             ". Pass --force to try it all the same"};
}

}  // namespace kymo::daemon
