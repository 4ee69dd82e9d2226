#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kymo/result.h"

namespace kymo::probe {

// Sum of the sizes of the regular files directly in `path`.
// A file that disappears in the meantime is left out.
// Errors: the folder cannot be read.
Result<std::uint64_t> directory_bytes(const std::string& path);

// Watches how the files of a folder grow.
//
// Threads:   it has one thread from start() to finish(). That thread calls `report`, and it does
//            not do so after finish(). Call finish() and the destructor on one thread.
// Ownership: holds the folder open until it is destroyed.
// Errors:    start() fails if the folder cannot be opened. After a later error, the last total
//            remains.
// Cost:      a stat for each file and interval, from the kernel's cached attributes, so that a slow
//            FUSE or network file system is not asked. It lists the folder when its mtime changes,
//            and every 50 intervals.
class DirectoryBytesWatcher {
 public:
  using Report = std::function<void(std::uint64_t total)>;
  // `pages` is the part of the total that is in CRIU's images of pages ("pages-...").
  using PagesReport = std::function<void(std::uint64_t total, std::uint64_t pages)>;

  // `each_look` is called in each interval; the thread may call it even after finish(), so it must own what it uses.
  static Result<std::unique_ptr<DirectoryBytesWatcher>> start(
      const std::string& path, Report report,
      std::chrono::microseconds interval = std::chrono::milliseconds(1),
      PagesReport pages_report = nullptr, std::function<void()> each_look = nullptr);
  ~DirectoryBytesWatcher();
  DirectoryBytesWatcher(const DirectoryBytesWatcher&) = delete;
  DirectoryBytesWatcher& operator=(const DirectoryBytesWatcher&) = delete;

  // Ends the watch, and reports and returns the exact total. Totals never decrease: if files have
  // shrunk, it is the largest total so far. If the disk does not answer within two seconds, it
  // returns the last known total.
  std::uint64_t finish();

 private:
  struct State;
  explicit DirectoryBytesWatcher(std::shared_ptr<State> state);
  // Shared with the thread, which outlives this object if the disk does not answer.
  std::shared_ptr<State> state_;
};

}  // namespace kymo::probe
