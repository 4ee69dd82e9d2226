#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/criu/images/image_set.h"

namespace kymo::criu {

// A file that was open or mapped, or was a directory of a process, at the dump.
struct NeededFile {
  std::string path;
  std::optional<std::uint64_t> size{};  // not set: it may have changed
  std::uint32_t mode = 0;               // type and permissions; 0: not known
  std::string build_id{};               // of a program or library, in hexadecimal digits
};

// An address of the machine that a socket has: a listening TCP socket, or a UDP socket.
struct NeededAddress {
  bool ipv6 = false;
  bool udp = false;
  std::string address;  // as inet_ntop(3) writes it
  std::uint16_t port = 0;
};

// A file lock that the restore takes again. CRIU waits for it if another process has it.
struct NeededLock {
  std::string path;
  bool whole = false;      // of flock(2); else of fcntl(2)
  bool exclusive = false;  // for writing
  // The bytes that a lock of fcntl(2) is for.
  std::uint64_t start = 0;
  std::uint64_t length = 0;  // 0: up to the end of the file
};

// What a restore needs of the machine, beside the images.
struct Needs {
  std::vector<NeededFile> files;         // in the order of their paths
  std::vector<NeededAddress> addresses;  // without network namespaces of their own
  std::vector<NeededLock> locks;
  // The folders in which a restore makes or removes files: those of unix sockets, of deleted files,
  // and of files that are locked there. In the order of their paths.
  std::vector<std::string> changed;
  std::map<std::uint64_t, std::uint64_t> huge_pages;  // how many, by their size in bytes
  // Mounts that would get other folders in the restore than they had at the dump: CRIU mounts them with options that
  // name folders, which are then those of this machine.
  std::vector<std::string> misled_mounts;
  bool own_mounts = false;   // the processes have a mount namespace; paths are those in it
  bool own_network = false;  // the processes have a network namespace
  // Images that could not be read, one line each.
  std::vector<std::string> notes;
};

// Reads what a restore of these images needs. Files that were deleted are left out: their content
// is in the images.
// Threads: any.
// Cost:    a pass over the images of files.
Needs read_needs(const ImageSet& images);

}  // namespace kymo::criu
