#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/runtimes/podman/podman_files.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// The files in the /dev/shm of a container of podman. CRIU does not save them: podman writes them into an archive after
// CRIU has ended the container.
//
// podman does the same with the /dev/shm of the host or of another container (--ipc=host, --ipc=container:X, pods), with
// whatever others have there: a restore would take their files back to the time of the dump, also podman's own locks.
// So of such a /dev/shm there is no archive, in a dump or in a restore.

// What the archive of a dump takes now, about. 0: there is none. `userdata`: podman's folder of the container.
std::uint64_t bytes_of_shared_memory(const std::string& userdata);

// While it exists, podman writes the archive of a dump into the checkpoint, or to nowhere if the container has no /dev/shm
// of its own.
class SharedMemoryArchive {
 public:
  SharedMemoryArchive(const std::string& userdata, const DumpSpec& spec);
  // Removes the archive of a dump that failed.
  ~SharedMemoryArchive();
  SharedMemoryArchive(const SharedMemoryArchive&) = delete;
  SharedMemoryArchive& operator=(const SharedMemoryArchive&) = delete;

  // Errors: resource_exhausted: the checkpoint has no room for it.
  [[nodiscard]] Result<void> made() const;
  // Call it after a dump that has not failed. If podman could not write the archive, the outcome says so.
  void conclude(DumpOutcome& outcome);
  static void undo(const std::string& userdata, const DumpSpec& spec);

 private:
  const DumpSpec& spec_;
  const bool own_;
  Result<std::string> place_;
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
