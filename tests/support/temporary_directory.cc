#include "support/temporary_directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

namespace kymo::test {

TemporaryDirectory::TemporaryDirectory()
    : path_((std::filesystem::temp_directory_path() / "kymo-XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) {
    ADD_FAILURE() << "cannot make a folder like " << path_;
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string TemporaryDirectory::folder(const std::string& name) const {
  std::string path = path_ + "/" + name;
  std::filesystem::create_directories(path);
  return path;
}

std::string TemporaryDirectory::file(const std::string& name, std::string_view text,
                                     unsigned mode) const {
  std::string path = path_ + "/" + name;
  {
    std::ofstream out(path, std::ios::binary);
    out << text;
    EXPECT_TRUE(out.good()) << path;
  }
  EXPECT_EQ(chmod(path.c_str(), mode), 0) << path;
  return path;
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds within) {
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kMaxCountedOfOneLook{250};
  steady_clock::duration waited{0};
  for (auto last = steady_clock::now(); !condition();) {
    if (waited > within) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto now = steady_clock::now();
    waited += std::min<steady_clock::duration>(now - last, kMaxCountedOfOneLook);
    last = now;
  }
  return true;
}

}  // namespace kymo::test
