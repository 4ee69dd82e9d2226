#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::exporting {

// A file in the making: PATH.new, or TARGET.new where PATH is a link of ours or root's, which
// becomes PATH when it is whole. It is always made anew. Locked, so that two exports to one place
// do not mix.
//
// Threads: one at a time. Ownership: of PATH.new until published; removes it otherwise.
class PendingFile {
 public:
  // Errors: of the system; failed_precondition where somebody else is writing it;
  // permission_denied for another user's link.
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
  FileDescriptor fd_;  // none: published, or moved from
};

// Text on its way into a file, or to standard output ("-") or another thing that is no regular
// file.
//
// Threads: one at a time. Errors: kept until commit(); what follows one is dropped.
// Cost:    a buffer of a few hundred KiB.
class ExportFile {
 public:
  static Result<std::unique_ptr<ExportFile>> create(const std::string& path);

  // The end of what is not written yet: append to it, then settle().
  std::string& text() { return text_; }
  // Writes out where enough has come together.
  void settle() {
    if (text_.size() >= kEnough) flush();
  }
  // Whether more text is of any use.
  [[nodiscard]] bool failed() const { return !written_; }
  // Writes the rest; the file has its name then.
  Result<void> commit();

 private:
  static constexpr std::size_t kEnough = 256 * 1024;

  explicit ExportFile(std::string name) : name_(std::move(name)) {}
  void flush();

  std::string name_;  // for messages
  std::unique_ptr<PendingFile> pending_;
  FileDescriptor direct_;  // of what is no regular file
  int fd_ = -1;
  std::string text_;
  Result<void> written_;
};

}  // namespace kymo::exporting
