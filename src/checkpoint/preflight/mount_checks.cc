// Checks of mounts, and of files by the mounts that they are on.
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/mounts.h"
#include "checkpoint/preflight/checks.h"
#include "checkpoint/preflight/devices.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

// A line of /proc/PID/mountinfo (proc(5)).
struct Mount {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  std::uint64_t device = 0;  // as the kernel numbers it: major << 20 | minor
  std::string root;          // the folder of the file system that is mounted
  std::string point;
  std::string type;
  std::uint64_t shared = 0;  // the peer group that it sends to; 0: none
  std::uint64_t master = 0;  // the peer group that it receives from; 0: none
};

// The words of a line: id, parent, MAJOR:MINOR, root, mount point, options, optional ones up to
// "-", type, source, options.
Mount mount_of(const std::vector<std::string_view>& words) {
  constexpr std::size_t kParent = 1;
  constexpr std::size_t kDevice = 2;
  constexpr std::size_t kRoot = 3;
  constexpr std::size_t kPoint = 4;
  constexpr std::size_t kOptional = 6;
  Mount mount;
  if (words.size() <= kOptional) return mount;
  mount.id = number_at(words[0]);
  mount.parent = number_at(words[kParent]);
  const std::string_view device = words[kDevice];
  const std::size_t colon = std::min(device.find(':'), device.size() - 1);
  mount.device = number_at(device) << 20U | number_at(device.substr(colon + 1));
  mount.root = unescaped(std::string(words[kRoot]));
  mount.point = unescaped(std::string(words[kPoint]));
  std::size_t at = kOptional;
  for (; at < words.size() && words[at] != "-"; ++at) {
    if (words[at].starts_with("shared:")) mount.shared = number_at(words[at].substr(7));
    if (words[at].starts_with("master:")) mount.master = number_at(words[at].substr(7));
  }
  if (at + 1 < words.size()) mount.type = words[at + 1];
  return mount;
}

// Empty if the list cannot be read.
std::vector<Mount> mounts_of(const Tree& tree, const Member& member) {
  std::vector<Mount> mounts;
  const Result<std::string> text = read_file(tree.folder_of(member) + "/mountinfo");
  if (!text) return mounts;
  for (std::string_view rest = *text; !rest.empty();) {
    mounts.push_back(mount_of(words_of(take_line(rest))));
  }
  return mounts;
}

// The mounts of each mount namespace of the tree.
std::map<std::string, std::vector<Mount>> mounts_of(const Tree& tree) {
  std::map<std::string, std::vector<Mount>> all;
  for (const Member& member : tree.members) {
    const std::string& name = member.namespaces.of(Kind::mnt);
    if (!name.empty() && !all.contains(name)) all[name] = mounts_of(tree, member);
  }
  return all;
}

// Whether CRIU looks for the mount of the file.
bool needs_mount(const OpenFile& file) {
  const bool kind = S_ISREG(file.mode) || S_ISDIR(file.mode) ||
                    (S_ISCHR(file.mode) && file.major == kMemoryMajor);
  return kind && file.has_path() && !is_memory(file.link);
}

// Whether it is a POSIX message queue (mq_overview(7)), which has no mount that programs see.
bool is_message_queue(const std::string& path) {
  constexpr long kMqueue = 0x19800202;  // MQUEUE_MAGIC of ipc/mqueue.c
  struct statfs seen {};
  return ::statfs(path.c_str(), &seen) == 0 && seen.f_type == kMqueue;
}

void look_at_lost_mounts(const Tree& tree, const Options& /*options*/, Findings& found) {
  std::set<std::uint64_t> known;
  for (const auto& [name, mounts] : mounts_of(tree)) {
    if (mounts.empty()) return;
    for (const Mount& mount : mounts) known.insert(mount.id);
  }
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      const std::uint64_t mount = number_of(file.info, "mnt_id");
      if (!needs_mount(file) || mount == 0 || known.contains(mount)) continue;
      if (is_message_queue(tree.folder_of(member) + "/fd/" + std::to_string(file.fd))) {
        found.add(Grade::refuses, "mount-lookup", place_of(member, file),
                  "a POSIX message queue is open, which CRIU cannot save",
                  "Let the program close it before the dump (mq_close), and open it again "
                  "afterwards.");
        continue;
      }
      // A process in a chroot does not see the mounts outside of it.
      found.add(member.root == "/" ? Grade::refuses : Grade::warns, "mount-lookup",
                place_of(member, file));
    }
  }
}

// Whether `path` is `folder`, or is in it.
bool is_below(const std::string& path, const std::string& folder) {
  if (!path.starts_with(folder)) return false;
  return path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/';
}

// Whether another mount covers all of this one: it is mounted over it, or over a folder above it.
// CRIU decides so, too.
bool is_covered(const Mount& mount, const std::vector<Mount>& mounts) {
  const auto any = [&](const auto& covers) {
    return std::any_of(mounts.begin(), mounts.end(), covers);
  };
  if (any([&](const Mount& other) {
        return other.parent == mount.id && other.id != mount.id && other.point == mount.point;
      })) {
    return true;
  }
  const Mount* at = &mount;
  for (std::size_t steps = 0; steps < mounts.size(); ++steps) {  // a damaged list may have a circle
    const auto parent = std::find_if(mounts.begin(), mounts.end(), [&](const Mount& other) {
      return other.id == at->parent && other.id != at->id;
    });
    if (parent == mounts.end()) return false;
    if (any([&](const Mount& other) {
          return other.parent == parent->id && other.id != at->id && other.id != parent->id &&
                 is_below(at->point, other.point);
        })) {
      return true;
    }
    at = &*parent;
  }
  return false;
}

void look_at_covered_mounts(const Tree& tree, const Options& options, Findings& found) {
  const std::map<std::string, std::vector<Mount>> all = mounts_of(tree);
  std::map<std::uint64_t, bool> covered;  // by the id of the mount, which is unique on the machine
  for (const Member& member : tree.members) {
    const auto mounts = all.find(member.namespaces.of(Kind::mnt));
    if (mounts == all.end()) continue;
    for (const OpenFile& file : member.files) {
      const std::uint64_t id = number_of(file.info, "mnt_id");
      if (!needs_mount(file) || id == 0) continue;
      const auto [known, is_new] = covered.try_emplace(id, false);
      if (is_new) {
        const auto mount = std::find_if(mounts->second.begin(), mounts->second.end(),
                                        [&](const Mount& each) { return each.id == id; });
        known->second = mount != mounts->second.end() && is_covered(*mount, mounts->second);
      }
      if (!known->second) continue;
      // A runtime may give a file of its container to CRIU in another way.
      found.add(options.container ? Grade::warns : Grade::refuses, "overmounted",
                place_of(member, file));
    }
  }
}

// CRIU reopens a watched file by its handle. These file systems do not find it again, or only
// sometimes.
bool loses_handles(std::string_view type) {
  constexpr std::array<std::string_view, 8> kTypes{"overlay", "proc",    "sysfs",   "cgroup",
                                                   "cgroup2", "debugfs", "tracefs", "btrfs"};
  return type.starts_with("fuse") || std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

// The type of the file system that a line of fdinfo such as "inotify wd:1 ino:3 sdev:17" names.
std::string watched_type(std::string_view line, const std::vector<Mount>& mounts) {
  constexpr std::string_view kDevice = " sdev:";
  const std::size_t at = line.find(kDevice);
  if (at == std::string_view::npos) return {};
  const std::uint64_t device = number_at(line.substr(at + kDevice.size()), 16);
  const auto mount = std::find_if(mounts.begin(), mounts.end(),
                                  [&](const Mount& each) { return each.device == device; });
  return mount == mounts.end() ? "" : mount->type;
}

void look_at_watches(const Tree& tree, const Options& /*options*/, Findings& found) {
  std::map<std::string, std::vector<Mount>> all;
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      const bool watches =
          file.link == "anon_inode:inotify" || file.link == "anon_inode:[fanotify]";
      if (!watches) continue;
      if (all.empty()) all = mounts_of(tree);
      std::set<std::string> types;
      for (std::string_view rest = file.info; !rest.empty();) {
        const std::string type =
            watched_type(take_line(rest), all[member.namespaces.of(Kind::mnt)]);
        if (loses_handles(type)) types.insert(type);
      }
      for (const std::string& type : types) {
        found.add(Grade::warns, "fsnotify", place_of(member, file),
                  "a process watches a file on " + type + ", where CRIU may not find its path");
      }
    }
  }
}

// The runtime of a container tells CRIU of its root, of its bind mounts, which are in `options`, and of its cgroups.
void look_at_sharing(const Tree& tree, const Options& options, Findings& found) {
  if (!tree.has_own(Kind::mnt)) return;
  const std::vector<Mount> mounts = mounts_of(tree, tree.first());
  for (const Mount& mount : mounts) {
    const bool inside = std::any_of(mounts.begin(), mounts.end(), [&](const Mount& other) {
      return other.shared == mount.master;
    });
    const bool of_runtime =
        options.container && (mount.point == "/" || mount.type.starts_with("cgroup"));
    const bool external = of_runtime || is_external(options, "mnt[" + mount.point + "]");
    if (mount.master == 0 || inside || external) continue;
    found.add(Grade::warns, "mnt-sharing", place_of(tree.first(), mount.point));
  }
}

// A part of a file system whose root is not mounted: a folder of the machine, or a namespace in a file. A container
// has such mounts from its runtime, which tells CRIU of them.
void look_at_roots(const Tree& tree, const Options& options, Findings& found) {
  if (options.container || !tree.has_own(Kind::mnt)) return;
  const std::vector<Mount> mounts = mounts_of(tree, tree.first());
  for (const Mount& mount : mounts) {
    const bool whole = std::any_of(mounts.begin(), mounts.end(), [&](const Mount& other) {
      return other.device == mount.device && other.root == "/";
    });
    const bool external = is_external(options, "mnt[" + mount.point + "]");
    if (whole || external || mount.point == "/") continue;
    found.add(Grade::warns, "mnt-root", place_of(tree.first(), mount.point));
  }
}

// A mounted folder or file of the machine that was removed, or replaced by another of its name, as editors and restarted
// services do. It is dumped. But a restore of a container needs the source, and CRIU then fails to make the removed file
// again, because there is one of its name.
void look_at_removed_sources(const Tree& tree, const Options& options, Findings& found) {
  constexpr std::string_view kRemoved = "//deleted";  // the kernel's mark (d_path())
  if (!tree.has_own(Kind::mnt)) return;
  for (const Mount& mount : mounts_of(tree, tree.first())) {
    if (!mount.root.ends_with(kRemoved)) continue;
    const std::string source = mount.root.substr(0, mount.root.size() - kRemoved.size());
    found.add(options.container ? Grade::refuses : Grade::warns, "mnt-removed",
              place_of(tree.first(), source + " mounted at " + mount.point));
  }
}

// The root of a namespace is in no other of its mounts. What was mounted over it is.
bool is_root(const Mount& mount, const std::vector<Mount>& mounts) {
  return std::none_of(mounts.begin(), mounts.end(), [&](const Mount& other) {
    return other.id == mount.parent && other.id != mount.id;
  });
}

std::string external_remedy(const std::string& point) {
  return "Pass --external mnt[" + point + "]:NAME to the dump and --external mnt[NAME]:" + point +
         " to the restore, or unmount it in the mount namespace of the process.";
}

// The options of these file systems name folders (lowerdir=). CRIU mounts them again with the same options, and the
// kernel then looks the folders up in the root of the machine. It does not mount what the restore is given: the root and
// the external mounts.
void look_at_overlays(const Tree& tree, const Options& options, Findings& found) {
  if (!tree.has_own(Kind::mnt)) return;
  const std::map<std::string, std::vector<Mount>> all = mounts_of(tree);
  const std::vector<Mount>& first = all.at(tree.first().namespaces.of(Kind::mnt));
  const auto root = std::find_if(first.begin(), first.end(),
                                 [&](const Mount& mount) { return is_root(mount, first); });
  for (const auto& [name, mounts] : all) {
    if (name == tree.own.of(Kind::mnt)) continue;
    for (const Mount& mount : mounts) {
      const bool names_folders = mount.type == "overlay" || mount.type == "aufs";
      const bool given = (root != first.end() && mount.device == root->device) ||
                         is_external(options, "mnt[" + mount.point + "]");
      if (!names_folders || given) continue;
      found.add(Grade::refuses, "mnt-overlay",
                place_of(tree.first(), mount.type + " mounted at " + mount.point), {},
                options.container ? "" : external_remedy(mount.point));
    }
  }
}

// CRIU makes these anew. Of any other, it can neither save nor find the contents.
bool is_made_anew(std::string_view type) {
  // criu/filesystems.c of CRIU 4.2
  constexpr std::array<std::string_view, 19> kTypes{
      "proc",   "sysfs",   "devtmpfs", "binfmt_misc", "tmpfs",   "devpts", "simfs",
      "pstore", "mqueue",  "debugfs",  "tracefs",     "fusectl", "cgroup", "cgroup2",
      "aufs",   "overlay", "autofs",   "securityfs",  "btrfs"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

// Disks and other file systems that are mounted as a whole. The file system of the root is there at the restore.
void look_at_file_systems(const Tree& tree, const Options& options, Findings& found) {
  if (options.container || !tree.has_own(Kind::mnt)) return;
  const bool by_device = std::any_of(
      options.external.begin(), options.external.end(), [](const std::string& external) {
        return external.starts_with("mnt[]") || external.starts_with("dev[");
      });
  const std::vector<Mount> mounts = mounts_of(tree, tree.first());
  const auto root = std::find_if(mounts.begin(), mounts.end(),
                                 [](const Mount& mount) { return mount.point == "/"; });
  if (by_device || root == mounts.end()) return;
  for (const Mount& mount : mounts) {
    if (mount.root != "/" || mount.device == root->device || is_made_anew(mount.type) ||
        is_external(options, "mnt[" + mount.point + "]")) {
      continue;
    }
    found.add(Grade::refuses, "fs-unsupported",
              place_of(tree.first(), mount.type + " mounted at " + mount.point), {},
              external_remedy(mount.point));
  }
}

void look_at_chroot(const Tree& tree, const Options& /*options*/, Findings& found) {
  if (!tree.has_own(Kind::mnt) || tree.first().root.empty() || tree.first().root == "/") return;
  found.add(Grade::warns, "mnt-chroot", place_of(tree.first(), "root " + tree.first().root));
}

constexpr std::array kMountChecks{Check{"lost mounts", look_at_lost_mounts},
                                  Check{"covered mounts", look_at_covered_mounts},
                                  Check{"watches", look_at_watches},
                                  Check{"sharing", look_at_sharing},
                                  Check{"roots", look_at_roots},
                                  Check{"removed sources", look_at_removed_sources},
                                  Check{"overlays", look_at_overlays},
                                  Check{"file systems", look_at_file_systems},
                                  Check{"chroot", look_at_chroot}};

}  // namespace

std::span<const Check> mount_checks() {
  return kMountChecks;
}

}  // namespace kymo::preflight
