#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::profiles {

// A child process that asks somebody over the network, and writes what it got into a pipe. It may be taken over by what it
// reads, so it has no other descriptor, is ended after a minute, and may write only so much.
//
// Threads:   the only one of the process.
// Ownership: ends the child when it is destroyed.
class PullChild {
 public:
  PullChild() = default;
  ~PullChild();
  PullChild(const PullChild&) = delete;
  PullChild& operator=(const PullChild&) = delete;

  // Runs `work` in a child, which does not return from it. `most`: it may write so many bytes.
  // Errors: the system's.
  Result<void> start(const std::function<void(int to)>& work, std::size_t most);
  [[nodiscard]] bool runs() const { return child_ != 0; }
  // Reads what it has written, and does not wait. Returns that once the child has ended or was ended. `room`: false: end it.
  std::optional<std::string> look(bool room);
  // The last one was ended, because it did not end in time.
  [[nodiscard]] bool was_late() const { return late_; }
  // That it has written so far.
  [[nodiscard]] std::size_t bytes() const { return written_.size(); }

 private:
  pid_t child_ = 0;  // 0: none runs
  FileDescriptor from_;
  std::string written_;
  std::size_t most_ = 0;
  std::uint64_t until_ns_ = 0;
  bool late_ = false;
};

}  // namespace kymo::profiles
