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

// A child process that sends a request over the network, and writes the answer into a pipe. Because
// that answer may take the child over, it has no other descriptor, is killed after a minute, and
// may write only a limited number of bytes.
//
// Threads:   the only one of the process.
// Ownership: ends the child when it is destroyed.
class PullChild {
 public:
  PullChild() = default;
  ~PullChild();
  PullChild(const PullChild&) = delete;
  PullChild& operator=(const PullChild&) = delete;

  // Runs `work` in a child, which does not return from it. It may write at most `most` bytes.
  // Errors: the system's.
  Result<void> start(const std::function<void(int to)>& work, std::size_t most);
  [[nodiscard]] bool runs() const { return child_ != 0; }
  // Reads what the child has written so far, without waiting. Returns all of it once the child has
  // ended or was killed. If `room` is false, there is no memory for more, and the child is killed.
  std::optional<std::string> look(bool room);
  // Whether the last child was killed because it did not end in time.
  [[nodiscard]] bool was_late() const { return late_; }
  // How much the child has written so far.
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
