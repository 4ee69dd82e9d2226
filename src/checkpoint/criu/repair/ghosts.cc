#include "checkpoint/criu/repair/ghosts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <utility>

#include "base/beneath.h"
#include "base/patience.h"

namespace kymo::criu {
namespace {

// CRIU writes these lines: "(00.012) Opening ghost file 0x1 for tmp/name", and, if it made the
// ghost in a folder above because that of the file is gone, also "(00.013) Remap rpath is
// tmp/name.cr.1.ghost". The paths begin at the root of the processes.
constexpr std::string_view kOpening = " Opening ghost file 0x";
constexpr std::string_view kFor = " for ";
constexpr std::string_view kMade = " Remap rpath is ";
constexpr std::string_view kGhost = ".ghost";
constexpr std::string_view kBeforeId = ".cr.";

bool is_id(std::string_view text) {
  std::uint32_t id = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, id, 16);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

// Processes choose the names of their files, so such a name can look like a line of the log.
bool is_name_of_ghost(std::string_view path) {
  if (!path.ends_with(kGhost)) return false;
  path.remove_suffix(kGhost.size());
  const std::size_t before = path.rfind(kBeforeId);
  return before != std::string_view::npos && is_id(path.substr(before + kBeforeId.size()));
}

std::string ghost_of(std::string_view line) {
  if (const std::size_t made = line.find(kMade); made != std::string_view::npos) {
    const std::string_view path = line.substr(made + kMade.size());
    return is_name_of_ghost(path) ? "/" + std::string(path) : "";
  }
  const std::size_t opening = line.find(kOpening);
  if (opening == std::string_view::npos) return {};
  const std::string_view rest = line.substr(opening + kOpening.size());
  const std::size_t end = rest.find(kFor);
  if (end == std::string_view::npos || !is_id(rest.substr(0, end))) return {};
  std::string path("/");
  path += rest.substr(end + kFor.size());
  path += kBeforeId;
  path += rest.substr(0, end);
  return path += kGhost;
}

// File systems round the times of files, some of them to two seconds. To allow for that is safe: if
// a file of this name had been there before the restore, the restore would have failed.
constexpr std::int64_t kRoundedBy = 2'000'000'000;

// Whether the file was made since then. If its file system does not say when, its last change
// counts: CRIU changes owner and times of a ghost when it makes it.
bool is_made_since(int folder, const std::string& name, std::int64_t since_unix_ns) {
  struct statx about {};
  constexpr unsigned kAsked = STATX_TYPE | STATX_BTIME | STATX_CTIME;
  if (::statx(folder, name.c_str(), AT_SYMLINK_NOFOLLOW, kAsked, &about) != 0) return false;
  if (S_ISDIR(about.stx_mode)) return false;
  const statx_timestamp& made =
      (about.stx_mask & STATX_BTIME) != 0 ? about.stx_btime : about.stx_ctime;
  return made.tv_sec * 1'000'000'000 + made.tv_nsec >= since_unix_ns - kRoundedBy;
}

void remove_ghost(const GhostFile& ghost, std::int64_t since_unix_ns) {
  const std::filesystem::path path(ghost.name);
  const Result<FileDescriptor> folder =
      open_beneath(ghost.folder, path.parent_path() / ".", O_RDONLY | O_DIRECTORY);
  if (!folder) return;
  const std::string name = path.filename();
  if (is_made_since(folder->get(), name, since_unix_ns)) ::unlinkat(folder->get(), name.c_str(), 0);
}

}  // namespace

std::vector<std::string> ghosts_in(std::string_view log) {
  std::set<std::string> found;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    if (std::string path = ghost_of(log.substr(0, end)); !path.empty()) {
      found.insert(std::move(path));
    }
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return {found.begin(), found.end()};
}

std::optional<GhostFile> ghost_of_this_machine(const std::string& path) {
  return GhostFile{"/", path.substr(path.find_first_not_of('/'))};
}

void remove_leftover_ghosts(const std::string& log_path, std::int64_t since_unix_ns,
                            const PlaceOfGhost& place_of) {
  static_cast<void>(within(kDiskPatience, [log_path, since_unix_ns, place_of] {
    const Result<std::string> log = read_no_link(log_path, std::size_t{1} << 30U);
    if (!log) return false;
    for (const std::string& path : ghosts_in(*log)) {
      if (const std::optional<GhostFile> ghost = place_of(path))
        remove_ghost(*ghost, since_unix_ns);
    }
    return true;
  }));
}

}  // namespace kymo::criu
