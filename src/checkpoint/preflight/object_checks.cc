// Checks of open kernel objects: pipes, pidfds, watches, and other files without a path.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "checkpoint/preflight/checks.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

constexpr std::string_view kObject = "anon_inode:";

// What CRIU saves of the objects that are named "anon_inode:NAME".
enum class Support : std::uint8_t { yes, no, unknown };

// Objects with a check of their own count as supported.
Support support_of(std::string_view name) {
  constexpr std::array<std::string_view, 11> kSaved{
      "[eventfd]",  "[eventpoll]", "[timerfd]", "[signalfd]", "inotify",  "[fanotify]",
      "[io_uring]", "[pidfd]",     "bpf-map",   "bpf-prog",   "[inotify]"};
  constexpr std::array<std::string_view, 9> kNever{
      "[userfaultfd]",      "[perf_event]",   "[fscontext]",
      "[landlock-ruleset]", "seccomp notify", "kvm-vm",
      "kvm-vcpu",           "bpf_link",       "btf"};
  if (std::find(kSaved.begin(), kSaved.end(), name) != kSaved.end()) return Support::yes;
  const bool never = std::any_of(kNever.begin(), kNever.end(), [name](std::string_view known) {
    return name.starts_with(known);
  });
  return never ? Support::no : Support::unknown;
}

void look_at_object(const Tree& tree, const Member& member, const OpenFile& file, Findings& found) {
  const std::string_view link = file.link;
  const std::string_view name = link.substr(kObject.size());
  if (name == "[io_uring]") {
    found.add(Grade::refuses, "io-uring-fd", place_of(member, file), "a process uses io_uring");
  } else if (name == "[pidfd]") {
    const auto pid = static_cast<pid_t>(number_of(file.info, "Pid"));
    if (pid <= 0 || !tree.is_outside(pid)) return;
    Place place = place_of(member, file);
    place.object = "pidfd of process " + std::to_string(pid);
    found.add(Grade::refuses, "pidfd", std::move(place));
  } else if (name == "bpf-prog") {
    found.add(Grade::refuses, "bpf", place_of(member, file), "a process has a BPF program open");
  } else if (name == "bpf-map") {
    // CRIU saves types 1 and 2, hash and array.
    const std::uint64_t type = number_of(file.info, "map_type");
    const bool never = type != 1 && type != 2;
    found.add(never ? Grade::refuses : Grade::warns, "bpf", place_of(member, file),
              never ? "a process has a BPF map open that is neither a hash nor an array"
                    : "a process has a BPF map open, which only a CRIU with libbpf can save");
  } else if (const Support support = support_of(name); support != Support::yes) {
    found.add(support == Support::no ? Grade::refuses : Grade::warns, "fd-unsupported",
              place_of(member, file),
              support == Support::no ? "an open file is of a kind that CRIU cannot save"
                                     : "an open file is of a kind that CRIU probably cannot save");
  }
}

void look_at_objects(const Tree& tree, const Options& /*options*/, Findings& found) {
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      if (file.link.starts_with(kObject)) look_at_object(tree, member, file, found);
    }
  }
}

// /proc does not show whether the pipe holds data.
void look_at_packet_pipes(const Tree& tree, const Options& /*options*/, Findings& found) {
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      const bool packets = (number_of(file.info, "flags", 8) & O_DIRECT) != 0;
      if (!file.link.starts_with("pipe:") || !packets) continue;
      found.add(Grade::warns, "pipe-packet", place_of(member, file),
                "a pipe is in packet mode, which CRIU does not dump if it holds data");
    }
  }
}

// Calls `each` with the number behind KEY of each line of fdinfo that begins with it.
template <class Each>
void for_each_line(std::string_view info, std::string_view key, const Each& each) {
  while (!info.empty()) {
    const std::string_view line = info.substr(0, info.find('\n'));
    info.remove_prefix(std::min(line.size() + 1, info.size()));
    if (line.starts_with(key)) each(line);
  }
}

// The descriptors and the inodes that the tree has open.
struct OpenNow {
  std::set<std::uint64_t> descriptors;
  std::set<std::uint64_t> inodes;
  bool all_seen = true;
};

OpenNow open_in(const Tree& tree) {
  OpenNow open;
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      open.descriptors.insert(static_cast<std::uint64_t>(file.fd));
      open.inodes.insert(file.inode != 0 ? file.inode : number_of(file.info, "ino"));
    }
    open.all_seen &= member.files.size() < kMaxFiles;
  }
  return open;
}

// The hexadecimal number behind " ino:" of a line of the fdinfo of an epoll set.
std::uint64_t inode_in(std::string_view line) {
  constexpr std::string_view kInode = " ino:";
  const std::size_t at = line.find(kInode);
  return at == std::string_view::npos ? 0 : number_of(line.substr(at + 1), "ino", 16);
}

// CRIU finds a watched file also under another descriptor.
void look_at_epoll_sets(const Tree& tree, const Options& /*options*/, Findings& found) {
  const OpenNow open = open_in(tree);
  if (!open.all_seen) return;
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      if (file.link != "anon_inode:[eventpoll]") continue;
      for_each_line(file.info, "tfd:", [&](std::string_view line) {
        const std::uint64_t target = number_of(line, "tfd");
        if (open.descriptors.contains(target) || open.inodes.contains(inode_in(line))) return;
        Place place = place_of(member, file);
        place.object = "watches descriptor " + std::to_string(target);
        found.add(Grade::warns, "epoll", std::move(place));
      });
    }
  }
}

// kymod tells CRIU to save the locks of each plain process.
void look_at_file_locks(const Tree& tree, const Options& options, Findings& found) {
  if (!options.container || options.file_locks) return;
  for (const Member& member : tree.members) {
    for (const OpenFile& file : member.files) {
      bool locked = false;
      for_each_line(file.info, "lock:", [&](std::string_view /*line*/) { locked = true; });
      if (locked) found.add(Grade::refuses, "file-locks", place_of(member, file));
    }
  }
}

constexpr std::array kObjectChecks{
    Check{"objects", look_at_objects}, Check{"packet pipes", look_at_packet_pipes},
    Check{"epoll sets", look_at_epoll_sets}, Check{"file locks", look_at_file_locks}};

}  // namespace

std::span<const Check> object_checks() {
  return kObjectChecks;
}

}  // namespace kymo::preflight
