#pragma once

#include <string>

namespace kymo::test {

// The criu that tests use: KYMO_TEST_CRIU, else what scripts/setup has put into .deps, else `criu`
// on PATH.
std::string criu_path();

// Why real checkpoints cannot be made here, for GTEST_SKIP; empty where they can: this is root and
// criu passes its own check (run once).
const std::string& why_no_criu();

}  // namespace kymo::test

// First line of a test that makes real checkpoints.
#define KYMO_NEEDS_CRIU()                          \
  do {                                             \
    if (!::kymo::test::why_no_criu().empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_no_criu(); \
    }                                              \
  } while (false)
