#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "kymo/result.h"
#include "sampling/ring_layout.h"

namespace kymo {

struct OpenRings;

// The mapping that a ring lives in: private memory, or a file whose rows outlive a SIGKILL.
//
// A file is allocated to its full size before it is mapped, so that a disk that fills later cannot
// raise SIGBUS, and locked (flock) while its recorder lives: whoever gets the lock knows that it is
// left behind.
//
// A forked child lets go of the file, which would stay locked as long as the child lives.
//
// Threads: any, after creation. Ownership: unmaps; keeps the file unless remove_file() is called.
class RingMemory {
 public:
  struct Shape {
    std::size_t slots = 0;
    std::size_t rows_per_slot = 0;
    std::size_t stride = 0;
  };

  static Result<std::unique_ptr<RingMemory>> create_private(const Shape& shape);
  // Creates `path`, which must not exist. Errors: already_exists (naming whether it is in use or
  // left behind and what to do), resource_exhausted (no room on the disk).
  static Result<std::unique_ptr<RingMemory>> create_file(const Shape& shape,
                                                         const std::string& path,
                                                         std::string_view description);
  // Maps a ring that is there, read-only. Errors: not_found, invalid_argument (foreign or another
  // version), data_loss (truncated).
  static Result<std::unique_ptr<RingMemory>> open_file(const std::string& path);

  ~RingMemory();
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  [[nodiscard]] RingHeader& header() const { return *static_cast<RingHeader*>(memory_); }
  [[nodiscard]] std::string_view description() const;
  [[nodiscard]] SlotHeader* slot_headers() const;
  [[nodiscard]] std::uint64_t* rows_of(std::size_t slot) const;
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Of the file; 0 of one that was created here.
  [[nodiscard]] uid_t owner() const { return owner_; }

  // True when no recorder holds the file; takes the lock then.
  [[nodiscard]] bool try_lock() const;
  void remove_file();

 private:
  RingMemory(void* memory, std::size_t bytes, FileDescriptor fd, std::string path);
  void format(const Shape& shape, std::string_view description);

  void* memory_;
  std::size_t bytes_;
  FileDescriptor fd_;
  std::string path_;
  uid_t owner_ = 0;
  RingMemory* next_open_ = nullptr;  // of all that this process has open, guarded by their mutex
  friend struct OpenRings;
};

}  // namespace kymo
