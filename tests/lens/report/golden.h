#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace kymo::tests {

// Compares a text with tests/lens/report/golden/NAME. If they differ, the text is written to NAME.seen
// in the folder for temporary files. If the change is intended, copy that file to golden/.
inline void expect_golden(const std::string& text, const std::string& name) {
  std::ifstream file(std::string(KYMO_SOURCE_DIR) + "/tests/lens/report/golden/" + name);
  std::stringstream wanted;
  wanted << file.rdbuf();
  const std::string seen = testing::TempDir() + name + ".seen";
  if (text != wanted.str()) std::ofstream(seen) << text;
  EXPECT_EQ(text, wanted.str()) << "see " << seen;
}

}  // namespace kymo::tests
