#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace kymo::test {

// A fresh folder below the system's temporary one; removed with all that is in it. A test fails
// where it cannot be made.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // A new folder below it.
  std::string folder(const std::string& name) const;
  // A file below it with this text and mode.
  std::string file(const std::string& name, std::string_view text, unsigned mode = 0644) const;

 private:
  std::string path_;
};

// Whether `condition` comes true within the time, which is more than a busy machine takes: for what
// the kernel gives no event. One look counts as a quarter of a second at most. So if the whole machine
// stands still, the time goes on when the machine does.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds within = std::chrono::seconds(30));

}  // namespace kymo::test
