// Checks of what the processes have mapped.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/file.h"
#include "checkpoint/preflight/checks.h"
#include "checkpoint/preflight/devices.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

void look_at_uprobes(const Tree& tree, const Options& options, Findings& found) {
  if (options.allow_uprobes) return;
  for (const Member& member : tree.members) {
    for (const Mapping& mapping : member.mappings) {
      if (mapping.name != "[uprobes]") continue;
      found.add(Grade::warns, "uprobes", place_of(member, mapping),
                "somebody put probes into the code of the process, which CRIU 4.2 and later do not "
                "dump");
    }
  }
}

void look_at_shared_memory(const Tree& tree, const Options& /*options*/, Findings& found) {
  if (tree.first().namespaces.of(Kind::ipc).empty() || tree.has_own(Kind::ipc)) return;
  for (const Member& member : tree.members) {
    for (const Mapping& mapping : member.mappings) {
      if (!mapping.name.starts_with("/SYSV")) continue;
      found.add(Grade::refuses, "sysv-shm", place_of(member, mapping));
    }
  }
}

// A mapping of an object without a path: a ring of io_uring or of perf, a BPF map.
void look_at_mapped_objects(const Tree& tree, const Options& /*options*/, Findings& found) {
  for (const Member& member : tree.members) {
    for (const Mapping& mapping : member.mappings) {
      if (!mapping.name.starts_with("anon_inode:")) continue;
      found.add(Grade::refuses, "mapping-unsupported", place_of(member, mapping));
    }
  }
}

// The device that is mapped. Nothing if it is no device, or if it is not known. The mapping itself
// is asked, which only root may. Otherwise its path is looked up.
std::optional<dev_t> mapped_device(const Tree& tree, const Member& member, const Mapping& mapping) {
  if (!mapping.name.starts_with("/dev/") || mapping.name.starts_with("/dev/shm/")) return {};
  const std::string folder = tree.folder_of(member);
  for (const std::string& path :
       {folder + "/map_files/" + range_of(mapping), folder + "/root" + mapping.name}) {
    struct statx seen {};
    if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &seen) != 0) continue;
    if (!S_ISCHR(seen.stx_mode)) return {};
    return makedev(seen.stx_rdev_major, seen.stx_rdev_minor);
  }
  return {};
}

void look_at_mapped_devices(const Tree& tree, const Options& /*options*/, Findings& found) {
  for (const Member& member : tree.members) {
    for (const Mapping& mapping : member.mappings) {
      const std::optional<dev_t> device = mapped_device(tree, member, mapping);
      if (!device) continue;
      if (is_gpu(major(*device))) {
        found.add(Grade::warns, "gpu-device", place_of(member, mapping));
      } else if (*device != kZeroDevice) {
        found.add(Grade::refuses, "mapping-unsupported", place_of(member, mapping));
      }
    }
  }
}

// Calls `each` with the path at which the kernel shows an open or mapped file of memory, and the place of it. Of a run of
// mappings of one file, only the first.
template <class Each>
void for_each_memory_file(const Tree& tree, const Each& each) {
  for (const Member& member : tree.members) {
    const std::string folder = tree.folder_of(member);
    for (const OpenFile& file : member.files) {
      if (is_memory(file.link)) {
        each(folder + "/fd/" + std::to_string(file.fd), file.link, place_of(member, file));
      }
    }
    std::string_view last;
    for (const Mapping& mapping : member.mappings) {
      if (!is_memory(mapping.name) || mapping.name == last) continue;
      last = mapping.name;
      each(folder + "/map_files/" + range_of(mapping), mapping.name, place_of(member, mapping));
    }
  }
}

void look_at_secret_memory(const Tree& tree, const Options& /*options*/, Findings& found) {
  for_each_memory_file(tree, [&](const std::string& /*path*/, std::string_view name, Place place) {
    if (name.starts_with("/secretmem"))
      found.add(Grade::refuses, "secret-memory", std::move(place));
  });
}

// CRIU tells a file in huge pages by its device, and finds out which that is by taking one such page, unless an earlier CRIU
// has left the number in /run/criu.kdat.
void look_at_huge_pages(const Tree& tree, const Options& /*options*/, Findings& found) {
  for_each_memory_file(tree, [&](const std::string& path, std::string_view /*name*/, Place place) {
    struct statfs seen {};
    if (::statfs(path.c_str(), &seen) != 0 || seen.f_type != HUGETLBFS_MAGIC) return;
    const auto bytes = static_cast<std::uint64_t>(seen.f_bsize);
    if (free_huge_pages(bytes) != 0) return;
    place.object += ", in pages of " + std::to_string(bytes >> 10U) + " KiB";
    found.add(Grade::warns, "huge-pages", std::move(place));
  });
}

constexpr std::array kMemoryChecks{Check{"uprobes", look_at_uprobes},
                                   Check{"shared memory", look_at_shared_memory},
                                   Check{"mapped objects", look_at_mapped_objects},
                                   Check{"mapped devices", look_at_mapped_devices},
                                   Check{"secret memory", look_at_secret_memory},
                                   Check{"huge pages", look_at_huge_pages}};

}  // namespace

std::uint64_t free_huge_pages(std::uint64_t bytes) {
  const std::string folder =
      "/sys/kernel/mm/hugepages/hugepages-" + std::to_string(bytes >> 10U) + "kB/";
  const auto number = [&folder](const char* name) {
    const Result<std::string> text = read_file(folder + name);
    return text ? number_at(*text) : 0;
  };
  const auto rest = [](std::uint64_t of, std::uint64_t used) { return of - std::min(of, used); };
  return rest(number("free_hugepages"), number("resv_hugepages")) +
         rest(number("nr_overcommit_hugepages"), number("surplus_hugepages"));
}

std::span<const Check> memory_checks() {
  return kMemoryChecks;
}

}  // namespace kymo::preflight
