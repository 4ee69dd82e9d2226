#pragma once

#include <sys/types.h>

#include <string>

#include "support/temporary_directory.h"

namespace kymo::test {

// A mounted kymo-test-moody-fs: a disk that stalls or fails on request (moody_fs.cc).
class MoodyDisk {
 public:
  explicit MoodyDisk(const TemporaryDirectory& folder);
  // Unmounts it, also if a process still uses it.
  ~MoodyDisk();
  MoodyDisk(const MoodyDisk&) = delete;
  MoodyDisk& operator=(const MoodyDisk&) = delete;

  // Sets the mood: "well", "stalls" (writes wait), "is-silent" (reads wait, too), "fails"
  // (writes fail with EIO), "is-over-quota" (EDQUOT), "is-read-only" (EROFS),
  // "stalls-at-pages" (only writes of memory images wait), "stalls-at-sync" (only fsync(2) waits),
  // "forgets" (only fsync(2) fails) or "lists-a-removed-file" (once, in a folder named recordings).
  void be(const std::string& mood) const;
  // Whether a write of memory images has begun to wait since the mood became "stalls-at-pages".
  [[nodiscard]] bool holds_pages() const;
  // The paths that were synced, one per line.
  [[nodiscard]] std::string synced() const;
  // Stops the program that serves the disk. Calls are then not even accepted, so a killed caller can
  // end. (In the mood "stalls" it cannot.)
  void stop() const;
  void go_on() const;
  // Returns false if FUSE does not work here.
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string inner_;
  std::string path_;
  pid_t pid_ = 0;
  bool mounted_ = false;
};

// Whether a thread of the process waits for an answer of such a disk.
bool waits_for_disk(pid_t process);

}  // namespace kymo::test
