// Checks of what the processes have mapped.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <optional>

#include "preflight/checks.h"
#include "preflight/devices.h"

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

constexpr std::array kMemoryChecks{Check{"uprobes", look_at_uprobes},
                                   Check{"shared memory", look_at_shared_memory},
                                   Check{"mapped objects", look_at_mapped_objects},
                                   Check{"mapped devices", look_at_mapped_devices}};

}  // namespace

std::span<const Check> memory_checks() {
  return kMemoryChecks;
}

}  // namespace kymo::preflight
