#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>

namespace kymo {

// Reads lines of text from a descriptor, which it does not own.
//
// Threads: one.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  [[nodiscard]] int fd() const { return fd_; }

  // Reads what is there. Waits for something if the descriptor does. Returns false at the end,
  // after an error, or if nothing is there.
  bool read() {
    std::array<char, 65536> part{};
    ssize_t got = 0;
    do {
      got = ::read(fd_, part.data(), part.size());
    } while (got < 0 && errno == EINTR);
    if (got > 0) text_.append(part.data(), static_cast<std::size_t>(got));
    return got > 0;
  }
  // Takes the first whole line of what was read, without its end.
  std::optional<std::string> take() {
    const std::size_t end = text_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }
  // Reads until there are so many lines to take. Returns false if the end has come before.
  bool wait_for_lines(std::size_t number) {
    while (static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n')) < number) {
      if (!read()) return false;
    }
    return true;
  }
  // Reads until there is a line. Nothing: the end has come before.
  std::optional<std::string> next() {
    for (;;) {
      if (std::optional<std::string> line = take()) return line;
      if (!read()) return std::nullopt;
    }
  }

 private:
  int fd_;
  std::string text_;
};

}  // namespace kymo
