#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "kymo/result.h"
#include "runtime/runtime.h"
#include "runtimes/podman/podman_files.h"

namespace kymo::runtime {

// The files in the /dev/shm of a container of podman. CRIU does not save them: podman writes them into an archive after
// CRIU has ended the container. If podman cannot, they would be lost, so kymod holds their file system until the archive
// is whole, and if necessary writes it itself.
//
// podman does the same with the /dev/shm of the host or of another container (--ipc=host, --ipc=container:X, pods), with
// whatever others have there: a restore would take their files back to the time of the dump, also podman's own locks.
// So of such a /dev/shm there is no archive, in a dump or in a restore.
//
// Threads: one at a time.
class PodmanSharedMemory {
 public:
  // Holds the /dev/shm of the container whose folder of podman this is.
  explicit PodmanSharedMemory(const std::string& userdata);

  // Whether the container has a /dev/shm of its own, by its config.json.
  [[nodiscard]] bool own() const { return own_; }
  // False if it is not its own, or if kymod may not hold it.
  [[nodiscard]] bool held() const { return mount_.valid(); }
  // Returns where the archive of a dump is to be written: in the work directory of the spec, or if that has no
  // room, in the one of the checkpoint.
  // Errors: resource_exhausted: the checkpoint has no room for it.
  [[nodiscard]] Result<std::string> place_for_archive(const DumpSpec& spec) const;
  // Writes the archive if the one at `archive` is not whole. Call it when the container has ended.
  // Errors: data_loss: it could not be written, either.
  [[nodiscard]] Result<void> ensure_archive(const std::string& archive) const;

 private:
  struct Need {
    std::uint64_t archive_bytes = 0;
    std::uint64_t file_bytes = 0;
  };
  [[nodiscard]] Need need() const;
  [[nodiscard]] std::string path() const;

  const bool own_;
  FileDescriptor mount_;  // a mount of its own, which lives on when podman unmounts the container's
};

// While it exists, podman writes the archive of a dump not into its own storage, which may be full, but into the
// checkpoint. There the archive is empty until podman writes it, so that a later kymod sees what is missing. If the memory
// is not held, podman writes it into its storage, and conclude() moves it. If it is not the container's own, it is written
// to nowhere.
class SharedMemoryArchive {
 public:
  SharedMemoryArchive(const PodmanSharedMemory& memory, const std::string& userdata,
                      const DumpSpec& spec);
  // Removes the archive of a dump that failed.
  ~SharedMemoryArchive();
  SharedMemoryArchive(const SharedMemoryArchive&) = delete;
  SharedMemoryArchive& operator=(const SharedMemoryArchive&) = delete;

  [[nodiscard]] Result<void> made() const;
  // Call it after a dump that has not failed. If the archive cannot be made whole, the outcome says so.
  void conclude(DumpOutcome& outcome);

  // Do the same after a kymod was killed. The container has ended, if rescue() is called.
  static void rescue(const std::string& userdata, const DumpSpec& spec);
  static void undo(const std::string& userdata, const DumpSpec& spec);

 private:
  const PodmanSharedMemory& memory_;
  const std::string podmans_;  // where podman writes it
  const DumpSpec& spec_;
  Result<std::string> place_;  // empty: none
  std::optional<CheckpointLink> link_;
  bool concluded_ = false;
};

// While it exists, podman restores /dev/shm from the archive of the checkpoint. An archive that is not whole is left out,
// because podman would refuse the restore, or restore only a part without saying so.
class SharedMemoryOfRestore {
 public:
  SharedMemoryOfRestore(const std::string& userdata, const RestoreSpec& spec);

  // Errors: unavailable: the disk of the archive does not answer.
  [[nodiscard]] Result<void> made() const;
  // Why /dev/shm is not what it was at the dump. Empty if it is.
  [[nodiscard]] const std::string& fault() const { return fault_; }

  static void undo(const std::string& userdata, const RestoreSpec& spec);

 private:
  Result<void> read_;
  std::string fault_;
  std::optional<CheckpointLink> link_;
};

}  // namespace kymo::runtime
