#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"

namespace kymo::probe {

// A file of /proc or /sys that stays open. Each read() reads it again from its start.
//
// Threads: one at a time. Cost: one system call a read.
class ProcFile {
 public:
  static constexpr std::size_t kMaxText = 4096;  // a longer text is cut
  using Buffer = std::array<char, kMaxText>;

  ProcFile() = default;
  explicit ProcFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  [[nodiscard]] bool valid() const { return fd_.valid(); }
  // Empty if the file cannot be read, for example because the process is gone.
  [[nodiscard]] std::string_view read(Buffer& buffer) const {
    const ssize_t got = ::pread(fd_.get(), buffer.data(), buffer.size(), 0);
    return got <= 0 ? std::string_view()
                    : std::string_view(buffer.data(), static_cast<std::size_t>(got));
  }

 private:
  FileDescriptor fd_;
};

// The number at the beginning of the text, after blanks; 0 if there is none.
inline std::uint64_t number_at(std::string_view text) {
  std::uint64_t number = 0;
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return number;
}

// Takes the first number from the text, with the blanks before it; 0 if there is none.
inline std::uint64_t take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const std::uint64_t number = number_at(text);
  text.remove_prefix(std::min(text.find_first_of(" \t\n"), text.size()));
  return number;
}

// The number after "KEY:" at the beginning of a line; 0 if there is no such line.
inline std::uint64_t value_of(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if ((at == 0 || text[at - 1] == '\n') && text.substr(at + key.size()).starts_with(':')) {
      return number_at(text.substr(at + key.size() + 1));
    }
  }
  return 0;
}

// The fields of /proc/PID/stat after the name, with the numbers of proc(5) minus 3. The name can
// contain anything: it ends at the last closing parenthesis.
class StatFields {
 public:
  enum Field : std::size_t {
    state = 0,
    parent = 1,
    minor_faults = 7,
    waited_minor_faults = 8,
    major_faults = 9,
    waited_major_faults = 10,
    user = 11,
    system = 12,
    waited_user = 13,
    waited_system = 14,
    threads = 17,
    resident_pages = 21,
    count = 22
  };

  // Returns false if the text is not as in proc(5).
  bool parse(std::string_view stat) {
    const std::size_t close = stat.rfind(") ");
    if (close == std::string_view::npos) {
      return false;
    }
    stat.remove_prefix(close + 2);
    for (std::string_view& field : fields_) {
      const std::size_t end = std::min(stat.find_first_of(" \n"), stat.size());
      field = stat.substr(0, end);
      stat.remove_prefix(std::min(end + 1, stat.size()));
    }
    return !fields_.back().empty();
  }
  [[nodiscard]] char state_letter() const { return fields_[state].front(); }
  [[nodiscard]] std::uint64_t operator[](Field field) const { return number_at(fields_[field]); }

 private:
  std::array<std::string_view, count> fields_;
};

}  // namespace kymo::probe
