#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/text_file.h"

namespace kymo {

// A test with a folder of its own, which is removed at the end.
class TemporaryFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "kymo-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string in_folder(const std::string& name) const {
    return folder_ + "/" + name;
  }

  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  // Reads a file, and decompresses it if it is compressed. If it is damaged, returns the text up to
  // the damage.
  static std::string text(const std::string& path) {
    std::string text(1 << 26, '\0');
    const Result<std::size_t> size = TextFile::open(path).value().read(text.data(), text.size());
    text.resize(size.value());
    return text;
  }
  static std::vector<std::string> lines(const std::string& path) {
    std::vector<std::string> all;
    std::istringstream file(text(path));
    for (std::string line; std::getline(file, line);) {
      all.push_back(line);
    }
    return all;
  }

  std::string folder_;
};

}  // namespace kymo
