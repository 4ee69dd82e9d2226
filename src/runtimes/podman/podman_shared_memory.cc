#include "runtimes/podman/podman_shared_memory.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "base/human.h"
#include "base/patience.h"
#include "criu/whole_tar.h"
#include "kymo/scope.h"
#include "preflight/oci_spec.h"
#include "probe/process.h"
#include "runtime/command.h"
#include "runtime/scratch.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

// What may be written to /dev/shm between the look at it and the freeze.
constexpr std::uint64_t kMargin = std::uint64_t{64} << 10U;

// Nothing if the file system does not say, or does not answer.
std::optional<std::uint64_t> room_in(const std::string& folder) {
  const auto asked = within(kDiskPatience, [folder]() -> std::optional<std::uint64_t> {
    struct statvfs about {};
    if (::statvfs(folder.c_str(), &about) != 0 || about.f_blocks == 0) return std::nullopt;
    return std::uint64_t{::geteuid() == 0 ? about.f_bfree : about.f_bavail} * about.f_frsize;
  });
  return asked.value_or(std::nullopt);
}

bool is_mount_point(const std::string& folder) {
  struct stat inside {};
  struct stat above {};
  return ::stat(folder.c_str(), &inside) == 0 &&
         ::stat(fs::path(folder).parent_path().c_str(), &above) == 0 &&
         inside.st_dev != above.st_dev;
}

// podman mounts the folder shm of the container's own folder, or another /dev/shm.
bool has_own_shared_memory(const std::string& userdata) {
  const Result<std::string> spec = read_file(userdata + "/config.json");
  const std::vector<preflight::OciMount> mounts = preflight::mounts_of(userdata, spec ? *spec : "");
  return std::any_of(mounts.begin(), mounts.end(), [&](const preflight::OciMount& mount) {
    const fs::path source = mount.source;
    std::error_code error;
    return mount.destination == "/dev/shm/" && source.filename() == "shm" &&
           fs::equivalent(source.parent_path(), userdata, error);
  });
}

constexpr char kNowhere[] = "/dev/null";
constexpr char kNotOwn[] =
    "its /dev/shm is that of the host or of another container (--ipc), so it is left as it is";

FileDescriptor mount_of_its_own(const std::string& folder) {
  if (!is_mount_point(folder)) return {};
  return FileDescriptor(static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, folder.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
}

}  // namespace

PodmanSharedMemory::PodmanSharedMemory(const std::string& userdata)
    : own_(has_own_shared_memory(userdata)),
      mount_(own_ ? mount_of_its_own(userdata + "/shm") : FileDescriptor()) {}

// A path that other programs of this user can use, too.
std::string PodmanSharedMemory::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(mount_.get());
}

PodmanSharedMemory::Need PodmanSharedMemory::need() const {
  constexpr std::uint64_t kBlock = 512;
  constexpr std::uint64_t kHeaders = 3 * kBlock;  // the second and third: of times and long names
  constexpr std::uint64_t kEnd = 20 * kBlock;     // tar fills the last record
  Need need{kHeaders + kEnd, 0};
  std::set<ino_t> seen;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path() + "/.", error), end; !error && entry != end;
       entry.increment(error)) {
    need.archive_bytes += kHeaders;
    struct stat info {};
    if (::lstat(entry->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (!seen.insert(info.st_ino).second) continue;  // another name of the same file
    const auto bytes = static_cast<std::uint64_t>(info.st_size);
    need.file_bytes += bytes;
    need.archive_bytes += (bytes + kBlock - 1) / kBlock * kBlock;
  }
  return need;
}

Result<std::string> PodmanSharedMemory::place_for_archive(const DumpSpec& spec) const {
  const std::uint64_t least = need().archive_bytes + kMargin;
  const std::string& on_disk = spec.final_work_dir.empty() ? spec.work_dir : spec.final_work_dir;
  const std::optional<std::uint64_t> disk = room_in(on_disk);
  if (disk && *disk < least) {
    return Error{Code::resource_exhausted,
                 "there is no room for the files of its /dev/shm: about " + human::bytes(least) +
                     " are needed in " + on_disk + ", and its disk has " + human::bytes(*disk) +
                     " free: free space, or name another directory with --dir"};
  }
  // Room for all that the container could write to /dev/shm until it is frozen.
  const std::uint64_t most = least + room_in(path() + "/.").value_or(0);
  const std::optional<std::uint64_t> memory = room_in(spec.work_dir);
  return (memory && *memory < most ? on_disk : spec.work_dir) + kSharedMemory;
}

Result<void> PodmanSharedMemory::ensure_archive(const std::string& archive) const {
  const criu::TarSeen by_podman = criu::look_at_tar(archive);
  if (by_podman.fault.empty() && by_podman.file_bytes >= need().file_bytes) return {};
  const Scope scope("save /dev/shm", {.category = "runtime"});
  Command tar;
  tar.words = {"tar", "--format=posix", "--numeric-owner", "-C", path() + "/.", "-cf", archive,
               "."};
  tar.timeout = std::chrono::minutes(10);
  const Result<CommandOutcome> done = run_command(tar);
  // A file changed meanwhile, because another container uses this /dev/shm, too.
  constexpr int kChanged = 1;
  const std::string fault = criu::look_at_tar(archive).fault;
  const bool good = done && (done->exit_status == 0 || done->exit_status == kChanged);
  if (good && fault.empty()) return {};
  const std::string said = done ? last_line(done->errors) : done.error().message;
  return Error{Code::data_loss, fault.empty() ? archive + ": " + said
                                              : fault + (said.empty() ? "" : " (" + said + ")")};
}

SharedMemoryArchive::SharedMemoryArchive(const PodmanSharedMemory& memory,
                                         const std::string& userdata, const DumpSpec& spec)
    : memory_(memory),
      podmans_(userdata + kSharedMemory),
      spec_(spec),
      place_(memory.held() ? memory.place_for_archive(spec) : std::string()) {
  if (!memory.own()) link_.emplace(podmans_, kNowhere);
  if (!place_ || place_->empty()) return;
  const std::ofstream empty(*place_);
  std::error_code error;
  fs::permissions(*place_, fs::perms::owner_read | fs::perms::owner_write, error);
  link_.emplace(podmans_, *place_);
}

SharedMemoryArchive::~SharedMemoryArchive() {
  if (concluded_ || !place_ || place_->empty()) return;
  std::error_code error;
  fs::remove(*place_, error);
}

Result<void> SharedMemoryArchive::made() const {
  if (!place_) return place_.error();
  return link_ ? link_->made() : Result<void>();
}

void SharedMemoryArchive::conclude(DumpOutcome& outcome) {
  concluded_ = true;
  if (!memory_.own()) {
    outcome.warnings.emplace_back(kNotOwn);
    return;
  }
  if (!memory_.held()) {
    if (move_file(podmans_, spec_.work_dir + kSharedMemory)) return;
    outcome.warnings.push_back("the contents of its /dev/shm stay in " + podmans_ +
                               ", because there is no room for them in " + spec_.work_dir +
                               ": restore it before podman dumps it again");
    return;
  }
  if (probe::process_lives(spec_.process.pid, spec_.process.start_ticks)) return;
  const Result<void> whole = memory_.ensure_archive(*place_);
  if (whole) return;
  outcome.lost_part =
      Error{Code::data_loss,
            "the files of the container's /dev/shm could not be saved: " + whole.error().message};
}

void SharedMemoryArchive::rescue(const std::string& userdata, const DumpSpec& spec) {
  for (const std::string& path : in_work_dirs(spec, kSharedMemory)) {
    std::error_code error;
    if (!fs::exists(path, error) || criu::look_at_tar(path).fault.empty()) continue;
    const PodmanSharedMemory memory(userdata);
    if (memory.held()) static_cast<void>(memory.ensure_archive(path).ok());
  }
}

void SharedMemoryArchive::undo(const std::string& userdata, const DumpSpec& spec) {
  CheckpointLink::undo(userdata + kSharedMemory, kNowhere);
  bool written = false;
  for (const std::string& path : in_work_dirs(spec, kSharedMemory)) {
    std::error_code error;
    written = written || fs::exists(path, error);
    CheckpointLink::undo(userdata + kSharedMemory, path);
  }
  // An earlier kymod let podman write it into its storage.
  if (!written && has_own_shared_memory(userdata))
    move_file(userdata + kSharedMemory, spec.work_dir + kSharedMemory);
}

namespace {

// There is never such a file: a link to it shows podman no archive.
std::string no_archive(const RestoreSpec& spec) {
  return spec.work_dir + kSharedMemory + ".none";
}

}  // namespace

SharedMemoryOfRestore::SharedMemoryOfRestore(const std::string& userdata, const RestoreSpec& spec) {
  const std::string archive = spec.work_dir + kSharedMemory;
  if (!disk_answers_for(archive)) {
    read_ = Error{Code::unavailable,
                  "the disk of " + spec.work_dir + " does not answer; nothing was restored"};
    return;
  }
  if (!PodmanSharedMemory(userdata).own()) {  // its checkpoint may be of an earlier kymod
    link_.emplace(userdata + kSharedMemory, no_archive(spec));
    fault_ = kNotOwn;
    return;
  }
  std::error_code error;
  if (!fs::exists(archive, error)) return;
  std::string fault = criu::look_at_tar(archive).fault;
  link_.emplace(userdata + kSharedMemory, fault.empty() ? archive : no_archive(spec));
  if (!fault.empty()) fault_ = "the container's /dev/shm is empty, because " + fault;
}

Result<void> SharedMemoryOfRestore::made() const {
  return !read_ || !link_ ? read_ : link_->made();
}

void SharedMemoryOfRestore::undo(const std::string& userdata, const RestoreSpec& spec) {
  CheckpointLink::undo(userdata + kSharedMemory, spec.work_dir + kSharedMemory);
  CheckpointLink::undo(userdata + kSharedMemory, no_archive(spec));
}

}  // namespace kymo::runtime
