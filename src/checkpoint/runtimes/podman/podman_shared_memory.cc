#include "checkpoint/runtimes/podman/podman_shared_memory.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/human.h"
#include "base/patience.h"
#include "base/proc/process.h"
#include "checkpoint/criu/images/whole_tar.h"
#include "checkpoint/preflight/oci_spec.h"
#include "checkpoint/runtimes/shared/scratch.h"

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

// The size of the archive of these files.
std::uint64_t archive_bytes(const std::string& folder) {
  constexpr std::uint64_t kBlock = 512;
  constexpr std::uint64_t kHeaders = 3 * kBlock;  // the second and third: of times and long names
  constexpr std::uint64_t kEnd = 20 * kBlock;     // tar fills the last record
  std::uint64_t bytes = kHeaders + kEnd;
  std::set<ino_t> seen;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    bytes += kHeaders;
    struct stat info {};
    if (::lstat(entry->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (!seen.insert(info.st_ino).second) continue;  // another name of the same file
    bytes += (static_cast<std::uint64_t>(info.st_size) + kBlock - 1) / kBlock * kBlock;
  }
  return bytes;
}

// Where the archive of a dump is to be written: in the work directory of the spec, or if that has no room, in the one of
// the checkpoint.
Result<std::string> place_for_archive(const std::string& folder, const DumpSpec& spec) {
  const std::uint64_t least = archive_bytes(folder) + kMargin;
  const std::string& on_disk = spec.final_work_dir.empty() ? spec.work_dir : spec.final_work_dir;
  const std::optional<std::uint64_t> disk = room_in(on_disk);
  if (disk && *disk < least) {
    return Error{Code::resource_exhausted,
                 "there is no room for the files of its /dev/shm: about " + human::bytes(least) +
                     " are needed in " + on_disk + ", and its disk has " + human::bytes(*disk) +
                     " free: free space, or name another directory with --dir"};
  }
  // Room for all that the container could write to /dev/shm until it is frozen.
  const std::uint64_t most = least + room_in(folder).value_or(0);
  const std::optional<std::uint64_t> memory = room_in(spec.work_dir);
  return (memory && *memory < most ? on_disk : spec.work_dir) + kSharedMemory;
}

}  // namespace

std::uint64_t bytes_of_shared_memory(const std::string& userdata) {
  const std::string folder = userdata + "/shm";
  std::error_code error;
  const bool any = has_own_shared_memory(userdata) && !fs::is_empty(folder, error);
  return any ? archive_bytes(folder) : 0;
}

SharedMemoryArchive::SharedMemoryArchive(const std::string& userdata, const DumpSpec& spec)
    : spec_(spec),
      own_(has_own_shared_memory(userdata)),
      place_(own_ ? place_for_archive(userdata + "/shm", spec) : std::string(kNowhere)) {
  if (!place_) return;
  if (own_) {  // a later kymod sees by the empty file what is missing
    const std::ofstream empty(*place_);
    std::error_code error;
    fs::permissions(*place_, fs::perms::owner_read | fs::perms::owner_write, error);
  }
  link_.emplace(userdata + kSharedMemory, *place_);
}

SharedMemoryArchive::~SharedMemoryArchive() {
  std::error_code error;
  if (!concluded_ && own_ && place_) fs::remove(*place_, error);
}

Result<void> SharedMemoryArchive::made() const {
  return place_ ? link_->made() : Result<void>(place_.error());
}

void SharedMemoryArchive::conclude(DumpOutcome& outcome) {
  concluded_ = true;
  if (!own_) outcome.warnings.emplace_back(kNotOwn);
  if (own_) outcome.image_bytes += criu::shared_memory_bytes(fs::path(*place_).parent_path());
  // A container that runs on has lost nothing.
  if (!own_ || probe::process_lives(spec_.process.pid, spec_.process.start_ticks)) return;
  const std::string fault = criu::look_at_tar(*place_).fault;
  if (fault.empty()) return;
  outcome.lost_part =
      Error{Code::data_loss, "the files of the container's /dev/shm could not be saved: " + fault};
}

void SharedMemoryArchive::undo(const std::string& userdata, const DumpSpec& spec) {
  CheckpointLink::undo(userdata + kSharedMemory, kNowhere);
  for (const std::string& path : in_work_dirs(spec, kSharedMemory)) {
    CheckpointLink::undo(userdata + kSharedMemory, path);
  }
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
  std::error_code error;
  if (!has_own_shared_memory(userdata)) {  // its checkpoint may be of an earlier kymod
    fault_ = kNotOwn;
  } else if (fs::exists(archive, error)) {
    const std::string fault = criu::look_at_tar(archive).fault;
    if (!fault.empty()) fault_ = "the container's /dev/shm is empty, because " + fault;
  }
  link_.emplace(userdata + kSharedMemory, fault_.empty() ? archive : no_archive(spec));
}

Result<void> SharedMemoryOfRestore::made() const {
  return !read_ || !link_ ? read_ : link_->made();
}

void SharedMemoryOfRestore::undo(const std::string& userdata, const RestoreSpec& spec) {
  CheckpointLink::undo(userdata + kSharedMemory, spec.work_dir + kSharedMemory);
  CheckpointLink::undo(userdata + kSharedMemory, no_archive(spec));
}

}  // namespace kymo::runtime
