#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "kymo/result.h"
#include "recorder/sampling/ring/ring_layout.h"

namespace kymo {

struct OpenRings;

// An existing ring file whose header was read and found to be consistent. It is not mapped: its
// owner can truncate a file at any time, and a program that has mapped it would then end by SIGBUS.
struct RingFile {
  FileDescriptor fd;
  std::string path;
  std::size_t bytes = 0;
  uid_t owner = 0;
  std::uint32_t pid = 0;  // of the recorder

  // Errors: not_found; invalid_argument (no ring, or another version); data_loss (truncated).
  static Result<RingFile> open(const std::string& path);
};

// The memory of a ring: private memory, or a mapped file whose rows survive SIGKILL.
//
// A file is allocated to its full size before it is mapped, so that a disk that fills later cannot
// raise SIGBUS. It is locked (flock) while its recorder lives. A process that gets the lock knows
// that the recorder has left the file behind.
//
// A forked child closes the file, and has zeros in place of its mapping. Otherwise the file would
// stay locked as long as the child lives: a mapping holds the lock, too.
//
// Threads:   any, after creation.
// Ownership: unmaps the memory; keeps the file unless remove_file() is called.
class RingMemory {
 public:
  struct Shape {
    std::size_t slots = 0;
    std::size_t rows_per_slot = 0;
    std::size_t stride = 0;
  };

  // The bytes of a ring of this shape, apart from its description; SIZE_MAX if they overflow.
  static std::size_t bytes_of(const Shape& shape);
  static Result<std::unique_ptr<RingMemory>> create_private(const Shape& shape);
  // Creates `path`, which must not exist. Errors: already_exists (the message says whether the ring
  // is in use or left behind, and what to do); resource_exhausted (no room on the disk).
  static Result<std::unique_ptr<RingMemory>> create_file(const Shape& shape,
                                                         const std::string& path,
                                                         std::string_view description);
  // Maps an existing ring, read-only. Check its owner before. Errors: the system's.
  static Result<std::unique_ptr<RingMemory>> map(RingFile file);
  // Opens and maps a ring of any owner. Errors: those of RingFile::open() and map().
  static Result<std::unique_ptr<RingMemory>> open_file(const std::string& path);

  ~RingMemory();
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  [[nodiscard]] RingHeader& header() const { return *static_cast<RingHeader*>(memory_); }
  [[nodiscard]] std::string_view description() const;
  [[nodiscard]] SlotHeader* slot_headers() const;
  [[nodiscard]] std::uint64_t* rows_of(std::size_t slot) const;
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // Returns true if no recorder holds the file, and then takes the lock.
  [[nodiscard]] bool try_lock() const;
  // Removes the file, but not what somebody else has put in its place.
  void remove_file();
  // Whether its path names this file no more: it was removed, renamed or replaced. False for private
  // memory, and where a file does not keep its number.
  [[nodiscard]] bool lost_file() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  RingMemory(void* memory, std::size_t bytes, FileDescriptor fd, std::string path);
  // Whether fd_ is that of the ring: a program may close descriptors that it does not know, and its
  // next file then gets the number. Sets `status` to that of fd_. The size is compared and not the
  // inode, which a restore on another disk changes.
  bool has_descriptor(struct stat* status) const;
  void format(const Shape& shape, std::string_view description);
  // In a forked child: gives up the descriptor and the mapping of the file, and with them the lock.
  // Only calls what is safe after a fork of a program with threads.
  void leave_to_parent();

  void* memory_;
  std::size_t bytes_;
  FileDescriptor fd_;
  std::string path_;
  bool knows_file_ = false;          // its path had the number of the open file when it was made
  RingMemory* next_open_ = nullptr;  // in the list of open rings, guarded by its mutex
  friend struct OpenRings;
};

}  // namespace kymo
