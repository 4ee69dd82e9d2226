#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace kymo::test {

// A small file system, mounted as long as this object exists.
class SmallDisk {
 public:
  SmallDisk(std::string at, const char* size) : at_(std::move(at)) {
    std::filesystem::create_directories(at_);
    EXPECT_EQ(::mount("none", at_.c_str(), "tmpfs", 0, size), 0);
  }
  ~SmallDisk() { ::umount2(at_.c_str(), MNT_DETACH); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // Writes a file that takes all free bytes.
  void fill() const {
    std::ofstream file(at_ + "/filling");
    const std::string mebibyte(1U << 20U, 'x');
    while (file.write(mebibyte.data(), static_cast<std::streamsize>(mebibyte.size())).flush()) {
    }
  }
  void empty() const { std::filesystem::remove(at_ + "/filling"); }

  // Makes files until there is no inode for another one. Then removes so many of them.
  void take_inodes(int left = 0) {
    while (std::ofstream(at_ + "/" + std::to_string(taken_))) ++taken_;
    give_inodes(left);
  }
  void give_inodes(int count) {
    for (; count > 0 && taken_ > 0; --count)
      std::filesystem::remove(at_ + "/" + std::to_string(--taken_));
  }
  void give_all_inodes() { give_inodes(taken_); }

 private:
  std::string at_;
  int taken_ = 0;
};

}  // namespace kymo::test
