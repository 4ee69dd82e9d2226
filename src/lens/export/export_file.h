#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::exporting {

// An unfinished file PATH.new, which is renamed to PATH when it is complete. If PATH is a symbolic
// link of this user or of root, the file is TARGET.new, and replaces the target of the link. The
// file is always a new one. It is locked, so that two exports to one path cannot mix.
//
// Threads:   one at a time.
// Ownership: owns PATH.new until publish(). If it is not published, the destructor removes it.
class PendingFile {
 public:
  // Errors: those of the system.
  //         failed_precondition if another export is writing the file.
  //         permission_denied if PATH is a link of another user.
  static Result<PendingFile> create(const std::string& asked);
  PendingFile(PendingFile&& other) noexcept = default;
  PendingFile& operator=(PendingFile&& other) = delete;
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();

  [[nodiscard]] const std::string& temporary() const { return temporary_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  Result<void> publish();

 private:
  PendingFile(std::string path, FileDescriptor fd)
      : path_(std::move(path)), temporary_(path_ + ".new"), fd_(std::move(fd)) {}

  std::string path_;
  std::string temporary_;
  FileDescriptor fd_;  // not valid after publish() and after a move
};

// Writes text to a file, to standard output ("-"), or to a pipe or device.
//
// Threads: one at a time.
// Errors:  finish() returns the first one. Text after it is dropped.
// Cost:    a buffer of a few hundred KiB.
class ExportFile {
 public:
  static Result<std::unique_ptr<ExportFile>> create(const std::string& path);

  [[nodiscard]] int fd() const { return fd_; }
  // The buffered text. Append to it, then call flush_if_large().
  std::string& text() { return text_; }
  // Writes the buffer if it is large enough.
  void flush_if_large() {
    if (text_.size() >= kEnough) flush();
  }
  // Whether writing has failed, so that further text is dropped.
  [[nodiscard]] bool failed() const { return !written_; }
  // Writes the rest.
  Result<void> finish();
  // Gives the complete file its final name.
  Result<void> publish() { return pending_ ? pending_->publish() : Result<void>(); }

 private:
  static constexpr std::size_t kEnough = 256 * 1024;

  explicit ExportFile(std::string name) : name_(std::move(name)) {}
  void flush();

  std::string name_;  // for messages
  std::unique_ptr<PendingFile> pending_;
  FileDescriptor direct_;  // of a pipe or device
  int fd_ = -1;
  std::string text_;
  Result<void> written_;
};

}  // namespace kymo::exporting
