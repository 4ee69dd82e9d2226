#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace kymo::test {

// A new folder below the system's temporary one. It is removed with its contents at the end. The test
// fails if it cannot be made.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Makes a new folder in it.
  std::string folder(const std::string& name) const;
  // Makes a file in it with this text and mode.
  std::string file(const std::string& name, std::string_view text, unsigned mode = 0644) const;

 private:
  std::string path_;
};

// Waits until `condition` is true, for events that the kernel does not report. Returns false if that
// takes longer than the limit, which is longer than a busy machine needs. One call of `condition`
// counts as at most a quarter of a second. So a standstill of the whole machine does not use up the
// time.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds within = std::chrono::seconds(30));

}  // namespace kymo::test
