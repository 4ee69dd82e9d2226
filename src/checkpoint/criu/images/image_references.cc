#include "checkpoint/criu/images/image_references.h"

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "checkpoint/criu/images/faults.h"
#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/images.pb.h"
#include "checkpoint/criu/images/memory.h"

namespace kymo::criu {
namespace {

using Message = std::span<const std::byte>;
using Messages = std::vector<Message>;

constexpr std::uint32_t kFilter = 2;  // enum seccomp_mode of CRIU's images/core.proto
// The kinds of a mapping (criu/include/image.h).
constexpr std::uint32_t kIoRing = 1U << 13U;
constexpr std::uint32_t kOfPlugin = 1U << 27U;
constexpr std::size_t kMaxFields = std::size_t{1} << 20;  // of a memory map

constexpr std::uint32_t kMemoryFile = 18;  // enum fd_types of CRIU's images/fdinfo.proto

// Whether CRIU writes a file of this type only because a process has it open or mapped, or is in it: regular files,
// pipes, FIFOs, internet sockets and terminals.
bool has_holder(std::uint32_t type) {
  return type == 1 || type == 2 || type == 3 || type == 4 || type == 11;
}

class ReferenceCheck {
 public:
  explicit ReferenceCheck(const ImageSet& images) : images_(images) {}

  References check(const std::vector<ImageProcess>& tree) {
    read_inventory();
    read_files();
    for (const ImageProcess& process : tree) check_process(process);
    check_tables();
    return std::move(found_);
  }

 private:
  void fault(const std::string& text) { add_fault(found_.faults, text); }

  bool expect(const std::string& name, const std::string& named_by) {
    if (images_.has(name)) return true;
    fault(name + ": it is missing, and " + named_by + " names it");
    return false;
  }

  // The messages of an image, in bytes that are kept until the next call. None if it cannot be read: then it is a fault.
  Messages messages_of(const std::string& name, const ImageKind& kind) {
    Result<std::vector<std::byte>> bytes = images_.read(name);
    if (!bytes) {
      fault(bytes.error().message);
      return {};
    }
    bytes_ = *std::move(bytes);
    Result<Messages> messages = image_messages(bytes_, kind, name);
    if (messages) return *std::move(messages);
    fault(messages.error().message);
    return {};
  }

  // Reads the first message of an image. Nothing else is read of it.
  template <class Entry>
  bool read_first(const std::string& name, const ImageKind& kind, Entry& entry) {
    const Messages messages = messages_of(name, kind);
    if (messages.empty() || has_more_fields(messages.front(), kMaxFields)) return false;
    if (parse_message(messages.front(), entry)) return true;
    fault(name + ": it is damaged");
    return false;
  }

  // verify_images() says what is wrong with an inventory.
  void read_inventory() {
    constexpr std::size_t kHead = 2 * sizeof(std::uint32_t);  // magic and the message's size
    const auto bytes = images_.read("inventory.img");
    if (!bytes || bytes->size() < kHead) return;
    parse_message(Message(*bytes).subspan(kHead), inventory_);
  }

  // Old versions of CRIU have an image for each type of files instead.
  void read_files() {
    has_files_ = images_.has("files.img");
    if (!has_files_) return;
    const Messages messages = messages_of("files.img", kFilesImage);
    knows_files_ = !messages.empty();
    bool of_memory = false;
    for (const Message message : messages) {
      wire::FileEntry entry;
      if (parse_message(message, entry)) {
        files_[entry.id()] = entry.type();
        of_memory |= entry.type() == kMemoryFile;
      } else {
        fault("files.img: it is damaged");
      }
    }
    if (of_memory && expect("memfd.img", "files.img")) check_memory_files();
  }

  void check_memory_files() {
    for (const Message message : messages_of("memfd.img", kMemoryFilesImage)) {
      wire::MemoryFileEntry file;
      if (!parse_message(message, file)) {
        fault("memfd.img: it is damaged");
      } else if (file.size() != 0) {
        expect(numbered("pagemap-shmem-", file.shmid()), "memfd.img");
      }
    }
  }

  // Notes that an image names this file.
  void use_file(std::uint32_t id, const std::string& named_by) {
    used_.insert(id);
    if (!has_files_) {
      if (!images_.has("reg-files.img") && !std::exchange(said_no_files_, true)) {
        fault("files.img: it is missing, and " + named_by + " names files in it");
      }
    } else if (knows_files_ && !files_.contains(id)) {
      fault("files.img: it has no file " + std::to_string(id) + ", which " + named_by + " names");
    }
  }

  void check_process(const ImageProcess& process) {
    const auto pid = static_cast<std::uint64_t>(process.pid);
    if (!check_core(pid)) return;
    for (const pid_t thread : process.threads) {
      if (thread != process.pid) check_core(static_cast<std::uint64_t>(thread));
    }
    check_ids(pid);
    if (const std::string name = numbered("fs-", pid); expect(name, "pstree.img")) {
      wire::FsEntry entry;
      if (read_first(name, kFsImage, entry)) {
        use_file(entry.cwd_id(), name);
        use_file(entry.root_id(), name);
      }
    }
    check_memory(numbered("mm-", pid));
  }

  // The same of an image of which verify_images() says what is wrong with it.
  template <class Entry>
  bool read_quietly(const std::string& name, const ImageKind& kind, Entry& entry) {
    const auto bytes = images_.read(name);
    const auto messages =
        bytes ? image_messages(*bytes, kind, name) : Result<Messages>(bytes.error());
    return messages && !messages->empty() && !has_more_fields(messages->front(), kMaxFields) &&
           parse_message(messages->front(), entry);
  }

  // Returns whether its process had not ended.
  bool check_core(std::uint64_t id) {
    const std::string name = numbered("core-", id);
    wire::CoreEntry core;
    if (!read_quietly(name, kCoreImage, core)) return false;
    const bool filtered =
        core.tc().old_seccomp_mode() == kFilter || core.thread_core().seccomp_mode() == kFilter;
    if (filtered && !std::exchange(filtered_, true)) expect("seccomp.img", name);
    return !has_ended(core.tc().task_state());
  }

  void check_ids(std::uint64_t pid) {
    const std::string name = numbered("ids-", pid);
    if (!inventory_.fdinfo_per_id() || !expect(name, "pstree.img")) return;
    wire::TaskIdsEntry ids;
    if (!read_first(name, kIdsImage, ids)) return;
    if (!std::exchange(seen_first_, true)) check_namespaces(ids, name);
    const std::string table = numbered("fdinfo-", ids.files_id());
    if (!tables_.emplace(table, pid).second) return;
    if (!images_.has(table)) return;
    for (const Message message : messages_of(table, kFdinfoImage)) {
      wire::FdinfoEntry open;
      if (parse_message(message, open)) {
        use_file(open.id(), table);
      } else {
        fault(table + ": it is damaged");
      }
    }
  }

  // CRIU dumps a namespace of the first process if it is not its own.
  void check_namespaces(const wire::TaskIdsEntry& ids, const std::string& named_by) {
    const wire::TaskIdsEntry& own = inventory_.root_ids();
    const auto check = [&](std::uint32_t id, std::uint32_t of_criu, const char* prefix) {
      if (of_criu != 0 && id != 0 && id != of_criu) expect(numbered(prefix, id), named_by);
    };
    check(ids.ipc_ns_id(), own.ipc_ns_id(), "ipcns-var-");
    check(ids.uts_ns_id(), own.uts_ns_id(), "utsns-");
    check(ids.mnt_ns_id(), own.mnt_ns_id(), "mountpoints-");
    check(ids.user_ns_id(), own.user_ns_id(), "userns-");
    if (ids.time_ns_id() == 0 || own.time_ns_id() == 0) return;
    // Without a time namespace of its own, the clocks of the machine are in number 0.
    const bool same = ids.time_ns_id() == own.time_ns_id();
    expect(numbered("timens-", same ? 0 : ids.time_ns_id()), named_by);
  }

  void check_memory(const std::string& name) {
    wire::MmEntry memory;
    if (!read_quietly(name, kMmImage, memory)) return;
    if (memory.has_exe_file_id()) use_file(memory.exe_file_id(), name);
    for (const wire::VmaEntry& mapping : memory.vmas()) {
      const std::uint32_t status = mapping.status();
      if ((status & kAnonymousShared) == 0) {
        used_.insert(
            static_cast<std::uint32_t>(mapping.shmid()));  // the id of a file, if it has one
      } else if (mapping.shmid() != 0 && (status & (kIoRing | kOfPlugin)) == 0 &&
                 shared_.insert(mapping.shmid()).second) {
        expect(numbered("pagemap-shmem-", mapping.shmid()), name);
      }
    }
  }

  // A table that is missing had the files that nothing else names.
  void check_tables() {
    std::size_t unused = 0;
    for (const auto& [id, type] : files_) {
      if (has_holder(type) && !used_.contains(id)) ++unused;
    }
    for (const auto& [table, pid] : tables_) {
      if (images_.has(table)) continue;
      if (unused != 0) {
        fault(table + ": it is missing, and files.img has " + std::to_string(unused) +
              " files that no other image names");
      } else {
        add_fault(found_.unknown, table + ": it is missing, or process " + std::to_string(pid) +
                                      " had no file open");
      }
    }
  }

  const ImageSet& images_;
  References found_;
  std::vector<std::byte> bytes_;
  wire::InventoryEntry inventory_;
  std::map<std::uint32_t, std::uint32_t> files_;  // the types of all files, by id
  std::set<std::uint32_t> used_;                  // ids of files that other images name
  std::map<std::string, std::uint64_t>
      tables_;                      // of file descriptors, with the pid of one process that has it
  std::set<std::uint64_t> shared_;  // the memory that was looked for
  bool has_files_ = false;
  bool knows_files_ = false;  // files.img could be read
  bool said_no_files_ = false;
  bool filtered_ = false;    // a thread has a filter of system calls
  bool seen_first_ = false;  // the ids of the first process
};

}  // namespace

std::string numbered(const char* prefix, std::uint64_t number) {
  return prefix + std::to_string(number) + ".img";
}

References check_references(const ImageSet& images, const std::vector<ImageProcess>& tree) {
  return ReferenceCheck(images).check(tree);
}

}  // namespace kymo::criu
