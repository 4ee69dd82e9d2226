// Checks of open files that have a path: deleted files, devices, files on mounts that are not
// there, and files that may grow after the dump.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/failures/catalogue.h"
#include "checkpoint/preflight/checks.h"
#include "checkpoint/preflight/devices.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

std::string kibibytes(std::uint64_t bytes) {
  return std::to_string(bytes / 1024) + " KiB";
}

bool is_ghost(const OpenFile& file) {
  return S_ISREG(file.mode) && file.links == 0 && file.deleted() && !is_memory(file.link);
}

// Memory that processes may share: CRIU saves all of it, whoever has touched it.
bool is_shared_object(const OpenFile& file) {
  return S_ISREG(file.mode) && file.deleted() && is_memory(file.link);
}

// Calls look(place, file) for each such file that the tree uses.
template <class Look>
void for_each_file(const Tree& tree, bool (*is_such)(const OpenFile&), Look look) {
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      if (is_such(file)) look(place_of(member, file), file);
    }
    for (const DeletedMapping& deleted : member.deleted) {
      if (is_such(deleted.file)) look(place_of(member, deleted.mapping), deleted.file);
    }
  }
}

// One limit must be enough for all of them, so they are one finding. A mapping may be of a library that was replaced
// while the program ran, for example.
void look_at_big_deleted_files(const Tree& tree, const Options& options, Findings& found) {
  std::vector<Place> places;
  std::uint64_t largest = 0;
  for_each_file(tree, is_ghost, [&](Place place, const OpenFile& file) {
    if (file.disk_bytes <= options.ghost_limit_bytes) return;
    place.object += ", " + kibibytes(file.disk_bytes);
    places.push_back(std::move(place));
    largest = std::max(largest, file.disk_bytes);
  });
  const std::string remedy = failures::remedy_for(failures::entry_of("ghost-big"), largest);
  for (Place& place : places) {
    found.add(Grade::refuses, "ghost-big", std::move(place),
              "a deleted file that is still in use is larger than CRIU copies (" +
                  kibibytes(options.ghost_limit_bytes) + ")",
              remedy);
  }
}

// The name of a file may end with " (deleted)".
bool is_there(const Tree& tree, const Member& member, const OpenFile& file) {
  struct stat seen {};
  return ::lstat((tree.folder_of(member) + "/root" + file.link).c_str(), &seen) == 0;
}

void look_at_other_names(const Tree& tree, const Options& options, Findings& found) {
  if (options.link_remap) return;
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      if (S_ISREG(file.mode) && file.links > 0 && file.deleted() && !is_memory(file.link) &&
          !is_there(tree, member, file)) {
        // Some container runtimes give this option to CRIU by themselves.
        found.add(options.container ? Grade::warns : Grade::refuses, "link-remap",
                  place_of(member, file));
      }
    }
  }
}

std::string device_text(const OpenFile& file, char separator) {
  return std::to_string(file.major) + separator + std::to_string(file.minor);
}

void look_at_device(const Tree& tree, const Options& options, const Member& member,
                    const OpenFile& file, Findings& found) {
  Place place = place_of(member, file);
  place.object += ", device " + device_text(file, ':');
  if (S_ISCHR(file.mode) && file.major == kMiscMajor && file.minor == kTunMinor) {
    if (!tree.first().namespaces.of(Kind::net).empty() && !tree.has_own(Kind::net)) {
      found.add(Grade::refuses, "tun", std::move(place));
    }
  } else if (is_gpu(file.major)) {
    found.add(Grade::warns, "gpu-device", std::move(place));
  } else if (file.major == kMiscMajor && file.minor == kAutofsMinor) {
    return;  // CRIU dumps it with the mount that it belongs to
  } else if (!is_external(options, "dev[" + device_text(file, '/') + "]")) {
    found.add(Grade::refuses, "fd-unsupported", std::move(place),
              "a device is open that CRIU cannot save");
  }
}

void look_at_devices(const Tree& tree, const Options& options, Findings& found) {
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      const bool supported =
          S_ISCHR(file.mode) && (file.major == kMemoryMajor || is_terminal(file.major));
      if (!file.has_path() || supported) continue;
      if (S_ISCHR(file.mode) || S_ISBLK(file.mode)) {
        look_at_device(tree, options, member, file, found);
      }
    }
  }
}

// CRIU does not save the size of a file that is only appended to and never read.
bool has_size_saved(const OpenFile& file) {
  const std::uint64_t flags = number_of(file.info, "flags", 8);
  return (flags & O_ACCMODE) != O_WRONLY || (flags & O_APPEND) == 0;
}

bool may_grow(const OpenFile& file) {
  if (!S_ISREG(file.mode) || file.links == 0 || file.deleted() || is_memory(file.link))
    return false;
  if (file.link.starts_with("/proc/") || file.link.starts_with("/sys/")) return false;
  return (number_of(file.info, "flags", 8) & O_ACCMODE) != O_RDONLY && has_size_saved(file);
}

void look_at_growing_files(const Tree& tree, const Options& options, Findings& found) {
  if (!options.leave_running) return;
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      if (!may_grow(file)) continue;
      found.add(
          Grade::warns, "file-size", place_of(member, file),
          "a file is open for writing, and CRIU restores this dump only as long as the file has "
          "its present size",
          "Keep a copy of the file as it is now, or cut it to this size before a restore "
          "(truncate -s SIZE FILE). CRIU accepts another size if a program opens the file "
          "only for appending (O_WRONLY | O_APPEND, >> in a shell).");
    }
  }
}

constexpr std::array kFileChecks{Check{"big deleted files", look_at_big_deleted_files},
                                 Check{"other names", look_at_other_names},
                                 Check{"devices", look_at_devices},
                                 Check{"growing files", look_at_growing_files}};

std::uint64_t bytes_of(const Tree& tree, bool (*is_such)(const OpenFile&)) {
  std::set<std::array<std::uint64_t, 3>> seen;
  std::uint64_t bytes = 0;
  for_each_file(tree, is_such, [&](const Place&, const OpenFile& file) {
    if (seen.insert(file.id).second) bytes += file.disk_bytes;
  });
  return bytes;
}

}  // namespace

std::uint64_t deleted_bytes_of(const Tree& tree) {
  return bytes_of(tree, is_ghost);
}

std::uint64_t shared_objects_bytes_of(const Tree& tree) {
  return bytes_of(tree, is_shared_object);
}

std::span<const Check> file_checks() {
  return kFileChecks;
}

}  // namespace kymo::preflight
