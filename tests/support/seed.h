#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace kymo::test {

// The seed of a test that uses random numbers. It is the same in each run, unless KYMO_TEST_LONG is
// set. The test must print it.
inline unsigned seed() {
  return std::getenv("KYMO_TEST_LONG") != nullptr ? std::random_device()() : 1;
}

}  // namespace kymo::test
