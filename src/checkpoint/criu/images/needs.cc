#include "checkpoint/criu/images/needs.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/images.pb.h"

namespace kymo::criu {
namespace {

constexpr std::uint32_t kListeningState = 10;  // include/net/tcp_states.h of the kernel

// Bytes that CRIU wrote in words, the lowest byte first.
std::string hexadecimal(const google::protobuf::RepeatedField<std::uint32_t>& words) {
  constexpr std::size_t kMaxWords = 16;  // of the longest hash that linkers use, 64 bytes
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (static_cast<std::size_t>(words.size()) > kMaxWords) return {};
  std::string text;
  for (const std::uint32_t word : words) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      text += kDigits[word >> (shift + 4) & 15U];
      text += kDigits[word >> shift & 15U];
    }
  }
  return text;
}

using ImageMessages = std::vector<std::span<const std::byte>>;

class NeedsReader {
 public:
  explicit NeedsReader(const ImageSet& images) : images_(images) {}

  Needs needs() {
    for (const std::string& name : images_.names()) {
      needs_.own_mounts |= name.starts_with("mountpoints-");
      needs_.own_network |= name.starts_with("netns-") || name.starts_with("netdev-");
    }
    read_deleted();
    for_each_message("files.img", kFilesImage, [&](std::span<const std::byte> message) {
      wire::FileEntry entry;
      if (!parse_message(message, entry)) return;
      if (entry.has_reg()) add(entry.reg());
      if (entry.has_isk()) add(entry.isk());
      if (entry.has_usk()) add(entry.usk());
    });
    // Old versions of CRIU write these two instead.
    for_each_message("reg-files.img", kRegularFilesImage, [&](std::span<const std::byte> message) {
      if (wire::RegFileEntry file; parse_message(message, file)) add(file);
    });
    for_each_message("inetsk.img", kInetSocketsImage, [&](std::span<const std::byte> message) {
      if (wire::InetSkEntry socket; parse_message(message, socket)) add(socket);
    });
    for_each_message("memfd.img", kMemoryFilesImage, [&](std::span<const std::byte> message) {
      if (wire::MemoryFileEntry file; parse_message(message, file)) add(file);
    });
    read_locks();
    read_mounts();
    needs_.changed.assign(changed_.begin(), changed_.end());
    for (auto& [path, file] : files_) needs_.files.push_back(std::move(file));
    return std::move(needs_);
  }

 private:
  // Returns whether the image could be read.
  template <class Each>
  bool for_each_message(const std::string& name, const ImageKind& kind, const Each& each) {
    if (!images_.has(name)) return false;
    const auto bytes = images_.read(name);
    const auto messages =
        bytes ? image_messages(*bytes, kind, name) : Result<ImageMessages>(bytes.error());
    if (!messages) {
      needs_.notes.push_back(messages.error().message);
      return false;
    }
    for (const std::span<const std::byte> message : *messages) each(message);
    return true;
  }

  // The files that CRIU finds by another name than their own, or makes from the images.
  void read_deleted() {
    for_each_message("remap-fpath.img", kRemapImage, [&](std::span<const std::byte> message) {
      wire::RemapFilePathEntry remap;
      if (parse_message(message, remap)) deleted_.insert(remap.orig_id());
    });
  }

  void add(const wire::RegFileEntry& entry) {
    if (!entry.name().starts_with('/')) return;
    if (deleted_.contains(entry.id())) return changes_folder_of(entry.name());
    names_[entry.id()] = entry.name();
    NeededFile& file = files_[entry.name()];
    file.path = entry.name();
    if (entry.has_size()) file.size = entry.size();
    file.mode = entry.mode();
    file.build_id = hexadecimal(entry.build_id());
  }

  void add(const wire::UnixSkEntry& entry) {
    const std::string name = entry.name().substr(0, entry.name().find('\0'));
    if (name.empty()) return;  // none, or an abstract one
    changes_folder_of(name.starts_with('/') ? name : entry.name_dir() + "/" + name);
  }

  void changes_folder_of(const std::string& path) {
    if (path.starts_with('/')) changed_.insert(std::filesystem::path(path).parent_path());
  }

  void add(const wire::MemoryFileEntry& entry) {
    constexpr unsigned kShift = 26;  // MAP_HUGE_SHIFT, MAP_HUGE_MASK
    constexpr unsigned kMask = 63;
    const unsigned bits = entry.hugetlb_flag() >> kShift & kMask;
    if (bits == 0) return;
    const std::uint64_t page = std::uint64_t{1} << bits;
    needs_.huge_pages[page] += entry.size() / page + (entry.size() % page == 0 ? 0 : 1);
  }

  // The ids of the files that a process has open, by descriptor.
  std::map<int, std::uint32_t> open_files_of(int pid) {
    std::map<int, std::uint32_t> files;
    const std::string ids = "ids-" + std::to_string(pid) + ".img";
    for_each_message(ids, kIdsImage, [&](std::span<const std::byte> message) {
      wire::TaskIdsEntry entry;
      if (!parse_message(message, entry)) return;
      const std::string table = "fdinfo-" + std::to_string(entry.files_id()) + ".img";
      for_each_message(table, kFdinfoImage, [&](std::span<const std::byte> descriptor) {
        wire::FdinfoEntry open;
        if (parse_message(descriptor, open)) files[static_cast<int>(open.fd())] = open.id();
      });
    });
    return files;
  }

  // The mount namespace of the first process.
  std::string first_mounts() {
    std::string name;
    bool first = true;
    for_each_message("pstree.img", kPstreeImage, [&](std::span<const std::byte> message) {
      wire::PstreeEntry process;
      if (!std::exchange(first, false) || !parse_message(message, process)) return;
      const std::string ids = "ids-" + std::to_string(process.pid()) + ".img";
      for_each_message(ids, kIdsImage, [&](std::span<const std::byte> own) {
        wire::TaskIdsEntry entry;
        if (!parse_message(own, entry)) return;
        name = "mountpoints-" + std::to_string(entry.mnt_ns_id()) + ".img";
      });
    });
    return name;
  }

  // CRIU does not mount what the restore is given: the root of the first process, and external mounts.
  void read_mounts() {
    std::map<std::string, std::vector<wire::MountEntry>> all;
    for (const std::string& name : images_.names()) {
      if (!name.starts_with("mountpoints-")) continue;
      std::vector<wire::MountEntry>& mounts = all[name];
      bool whole = true;
      const bool read = for_each_message(name, kMountsImage, [&](auto message) {
        whole &= parse_message(message, mounts.emplace_back());
      });
      if (!read || !whole) needs_.misled_mounts.push_back(name + ", which is damaged");
    }
    std::set<std::uint32_t> ids;
    for (const wire::MountEntry& mount : all[first_mounts()]) ids.insert(mount.mnt_id());
    std::optional<std::uint32_t> root;  // its device
    for (const wire::MountEntry& mount : all[first_mounts()]) {
      const std::uint32_t parent = mount.parent_mnt_id();
      if (!ids.contains(parent) || mount.mnt_id() == parent) root = mount.root_dev();
    }
    for (const auto& [name, mounts] : all) {
      for (const wire::MountEntry& mount : mounts) {
        const bool external = mount.ext_mount() || !mount.ext_key().empty();
        if (root != mount.root_dev() && !external) add(mount);
      }
    }
  }

  void add(const wire::MountEntry& mount) {
    constexpr std::uint32_t kAufs = 13;
    constexpr std::uint32_t kOverlay = 17;
    const bool names_folders = mount.fstype() == kAufs || mount.fstype() == kOverlay ||
                               mount.fsname() == "overlay" || mount.fsname() == "aufs";
    if (!names_folders) return;
    needs_.misled_mounts.push_back("overlay mounted at " + mount.mountpoint());
  }

  // Locks of files without a name cannot be held by others.
  void read_locks() {
    constexpr std::uint32_t kPosix = 1;
    constexpr std::uint32_t kFlock = 2;
    std::map<int, std::map<int, std::uint32_t>> open_files;  // by pid
    for_each_message("filelocks.img", kFileLocksImage, [&](std::span<const std::byte> message) {
      wire::FileLockEntry lock;
      if (!parse_message(message, lock) || (lock.flag() != kPosix && lock.flag() != kFlock)) return;
      const auto [files, is_new] = open_files.try_emplace(lock.pid());
      if (is_new) files->second = open_files_of(lock.pid());
      const auto file = files->second.find(lock.fd());
      const auto name = file == files->second.end() ? names_.end() : names_.find(file->second);
      if (name == names_.end()) return;
      changes_folder_of(
          name->second);  // else it would wait for the lock of the process that was dumped
      needs_.locks.push_back({name->second, lock.flag() == kFlock, lock.type() == F_WRLCK,
                              static_cast<std::uint64_t>(lock.start()),
                              static_cast<std::uint64_t>(lock.len())});
    });
  }

  void add(const wire::InetSkEntry& entry) {
    const bool udp = entry.type() == SOCK_DGRAM;
    const bool ipv6 = entry.family() == AF_INET6;
    const std::size_t words = ipv6 ? 4 : 1;
    const bool known = ipv6 || entry.family() == AF_INET;
    const bool listens = entry.type() == SOCK_STREAM && entry.state() == kListeningState;
    if (!known || entry.src_port() == 0 || !(udp || listens) ||
        static_cast<std::size_t>(entry.src_addr_size()) < words) {
      return;
    }
    std::array<std::uint32_t, 4> address{};
    std::copy_n(entry.src_addr().begin(), words, address.begin());
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(ipv6 ? AF_INET6 : AF_INET, address.data(), text.data(), text.size());
    needs_.addresses.push_back(
        {ipv6, udp, text.data(), static_cast<std::uint16_t>(entry.src_port())});
  }

  const ImageSet& images_;
  Needs needs_;
  std::set<std::uint32_t> deleted_;             // ids
  std::set<std::string> changed_;               // folders
  std::map<std::string, NeededFile> files_;     // by path
  std::map<std::uint32_t, std::string> names_;  // of the same files, by id
};

}  // namespace

Needs read_needs(const ImageSet& images) {
  return NeedsReader(images).needs();
}

}  // namespace kymo::criu
