#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace kymo::tests {

// Holds a text against tests/report/golden/NAME, to the letter. What differs is left beside the
// test as NAME.seen, to be looked at and, where it is meant, copied there.
inline void expect_golden(const std::string& text, const std::string& name) {
  std::ifstream file(std::string(KYMO_SOURCE_DIR) + "/tests/report/golden/" + name);
  std::stringstream wanted;
  wanted << file.rdbuf();
  if (text != wanted.str()) std::ofstream(name + ".seen") << text;
  EXPECT_EQ(text, wanted.str()) << "see " << name << ".seen";
}

}  // namespace kymo::tests
