#pragma once

#include <cstdint>
#include <string>

namespace kymo::criu {

// What the headers of an uncompressed tar archive tell of it.
struct TarSeen {
  std::string fault;             // why it is not whole, beginning with its path; empty: it is whole
  std::uint64_t file_bytes = 0;  // of the contents of all files in it
};

// Looks whether a tar archive is whole. Its writer ends it with a block of zeros, and a program whose disk
// became full does not come to that.
// Cost: reads one block for each file in the archive.
TarSeen look_at_tar(const std::string& path);

// podman's archive of a container's /dev/shm, in the work directory of a checkpoint.
inline constexpr char kSharedMemoryArchive[] = "devshm-checkpoint.tar";

// Its size. 0: there is none, or its disk fails. `work_dir`: of the checkpoint.
std::uint64_t shared_memory_bytes(const std::string& work_dir);

// Why this archive is not whole, and what that means for the container. `checkpoint`: its directory. Empty if the
// archive is whole, or if there is none because the container has no /dev/shm of its own.
std::string fault_of_shared_memory(const std::string& checkpoint);

}  // namespace kymo::criu
