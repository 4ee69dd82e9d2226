#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kymo/result.h"

namespace kymo::probe {

// Sum of the sizes of the regular files directly in `path`.
// Errors: the folder cannot be read. A file that vanishes meanwhile is left out.
Result<std::uint64_t> directory_bytes(const std::string& path);

// Follows how the files of a folder grow.
//
// Threads:   start to finish a thread of its own, on which `report` is called, and not after
//            finish(). finish() and the destructor: one thread.
// Ownership: holds the folder open until destroyed.
// Errors:    start(): the folder cannot be opened. Later ones leave the last total standing.
// Cost:      a stat for each file and interval, from the kernel's cached attributes, so that a slow
//            FUSE or network file system is not asked; the folder is listed only when it changes.
class DirectoryBytesWatcher {
 public:
  using Report = std::function<void(std::uint64_t total)>;
  // With it the part of the total that lies in CRIU's images of pages ("pages-...").
  using PagesReport = std::function<void(std::uint64_t total, std::uint64_t pages)>;

  static Result<std::unique_ptr<DirectoryBytesWatcher>> start(
      const std::string& path, Report report,
      std::chrono::microseconds interval = std::chrono::milliseconds(1),
      PagesReport pages_report = nullptr);
  ~DirectoryBytesWatcher();
  DirectoryBytesWatcher(const DirectoryBytesWatcher&) = delete;
  DirectoryBytesWatcher& operator=(const DirectoryBytesWatcher&) = delete;

  // Ends the watch, reports and returns the exact total. Reported totals never decrease: should
  // files have shrunk, the largest total stands. Where the disk does not answer within two seconds,
  // what was known last stands.
  std::uint64_t finish();

 private:
  struct State;
  explicit DirectoryBytesWatcher(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // the thread's, too, which may outlive this where a disk stalls
};

}  // namespace kymo::probe
